"""Where the files of one run are: named at once, looked for when read, made and claimed when written.

A run that writes nothing leaves nothing on the disk, and most runs write nothing.
"""

from pathlib import Path

from xclaw.workspaces.containment import Place, Region, opened_directory
from xclaw.workspaces.deliveries import Deliveries
from xclaw.workspaces.names import MARK, safe_component


class Home:
    """The private and the delivery directory of one run.

    `exclusive`: the task was made for this run alone. Where another run has the same task id and was
    first, the home is beside its, under a name with the run's id: told by the claim on disk, so it is
    the same after a restart. Between processes the claim is made at the first write: of two runs that
    were named the same place at the same moment, the later writer moves, before it sees a file.
    """

    def __init__(
        self,
        root: tuple[str, ...],
        agent_part: str,
        task_part: str,
        run_id: str,
        *,
        exclusive: bool,
        durable: bool,
        sandboxed: bool = False,
    ) -> None:
        self._root = root
        self._agent_part = agent_part
        self._task_part = task_part
        self._run_id = run_id
        self._durable = durable
        self._sandboxed = sandboxed
        self._is_made = False
        self._is_open = exclusive
        """Somebody else may yet claim the place."""
        self._shown: tuple[Region, ...] = ()
        self._settle_at(task_part)
        if exclusive:
            self.look()

    def _settle_at(self, task_part: str) -> None:
        self.deliveries = Deliveries(self._root, task_part, durable=self._durable)
        private = ("agents", self._agent_part, task_part)
        self.private = Region(self._root, private, ("workspace",) if self._sandboxed else ())
        self.input = Region(self._root, (".inputs", task_part), ("input",) if self._sandboxed else ())
        self.own = (self.private, self.deliveries.region, *((self.input,) if self._sandboxed else ()))

    @property
    def visible(self) -> tuple[Region, ...]:
        return (*self.own, *self._shown)

    def show(self, directory: str, inside: str) -> None:
        """A directory that can be read and is not the run's."""
        parts = tuple(part for part in directory.split("/") if part)
        named = tuple(part for part in inside.split("/") if part)
        region = Region(parts, (), named if self._sandboxed else ())
        if region not in self._shown:
            self._shown = (*self._shown, region)

    @property
    def shown(self) -> tuple[str, ...]:
        """Those directories, as the run's model names them."""
        return tuple(Place(region, ()).shown for region in self._shown)

    @property
    def run_id(self) -> str:
        return self._run_id

    def look(self) -> None:
        """Before files are read: whose is it by now?"""
        if self._is_open and self.deliveries.is_recorded():
            self.claim()

    def claim(self) -> None:
        """Before files are written: take the place, or move to one that nobody else can have."""
        if not self._is_made:
            Path("/", *self._root).mkdir(mode=0o700, parents=True, exist_ok=True)
            self._is_made = True
        if not self._is_open:
            return
        if not self.deliveries.claim(self._run_id):
            self._settle_at(f"{self._task_part}{MARK}{safe_component(self._run_id)}")
        self._is_open = False

    def make(self) -> None:
        """Make the directories."""
        self.claim()
        for region in self.own:
            with opened_directory(Place(region, ()), (), create=True):
                pass
