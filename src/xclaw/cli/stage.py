"""Where a session is shown: each tree of runs by a watcher of its own, beside what else is to be said."""

from collections.abc import Callable, Iterable
from typing import Protocol, runtime_checkable

from xclaw.cli.output import Watcher
from xclaw.cli.project_lines import ProjectWork, note_line
from xclaw.cli.text import one_line, printable
from xclaw.cli.unbroken import Piece, StartedAgain
from xclaw.contracts.events import Entry, RunEnded, RunStarted
from xclaw.contracts.results import Result

MAX_SHOWN = 64
"""Trees that are shown at once; of more, the oldest is let go of."""


@runtime_checkable
class Drawing(Protocol):
    """A watcher that draws, so that nobody else may write to the terminal meanwhile."""

    def note(self, text: str, /) -> None: ...


class SessionStage:
    """Called on the event loop that hears the gateway."""

    def __init__(self, new_watcher: Callable[[], Watcher], note: Callable[[str], None]) -> None:
        """`new_watcher` makes one for a tree that begins; `note` says a line to the user."""
        self._new_watcher = new_watcher
        self._note = note
        self._watchers: dict[str, Watcher] = {}
        self._work: dict[str, ProjectWork] = {}
        """By root, as long as it is shown."""
        self._said: set[str] = set()
        """What of a project was left out, and has been said."""
        self.closed = False
        """Nobody reads the output any more."""
        self.on_closed: Callable[[], None] | None = None
        """Called once, when that is noticed."""

    def note(self, text: str, /) -> None:
        """Say something of xclaw's own. From any thread."""
        drawing = next((each for each in list(self._watchers.values()) if isinstance(each, Drawing)), None)
        if drawing is not None:
            drawing.note(f"xclaw: {printable(text)}")
        else:
            self._note(text)

    def learn(self, entries: Iterable[Entry]) -> None:
        """What happened before in a tree that goes on."""
        entries = list(entries)
        if entries:
            watcher = self._watcher(entries[0].address.root_id)
            watcher.learn(entries)
            for entry in entries:
                self._work[entry.address.root_id].receive(entry)

    def show(self, piece: Piece, *, own: bool) -> None:
        address = piece.address
        if not own and isinstance(piece, Entry) and isinstance(piece.event, RunStarted):
            self._other_user(piece, piece.event)
        watcher = self._watcher(address.root_id)
        if isinstance(piece, StartedAgain):
            watcher.start_again(address)
            return
        watcher.receive(piece)
        self._work[address.root_id].receive(piece)
        if isinstance(piece.event, RunEnded) and not address.parent_id:
            watcher.finish(piece.event.result)
            del self._watchers[address.root_id]
            self._say_what_changed(self._work.pop(address.root_id), piece.event.result)
        if watcher.closed and not self.closed:
            self.closed = True
            if self.on_closed is not None:
                self.on_closed()

    def close(self) -> None:
        """Give the terminal back."""
        for watcher in self._watchers.values():
            watcher.close()
        self._watchers.clear()
        self._work.clear()

    def _other_user(self, entry: Entry, event: RunStarted) -> None:
        """A message that came from another client of the session."""
        if not entry.address.parent_id:
            self.note(f"from {one_line(event.channel, 20) or 'elsewhere'}: {one_line(event.input, 300)}")

    def _watcher(self, root_id: str) -> Watcher:
        watcher = self._watchers.get(root_id)
        if watcher is None:
            while len(self._watchers) >= MAX_SHOWN:
                oldest = next(iter(self._watchers))
                self._watchers.pop(oldest).close()
                del self._work[oldest]
            watcher = self._watchers[root_id] = self._new_watcher()
            self._work[root_id] = ProjectWork()
        return watcher

    def _say_what_changed(self, work: ProjectWork, result: Result) -> None:
        """How to take the work on a project over; what was left out of it, once."""
        notes = [note_line(note) for note in work.project.notes] if work.project else []
        for line in [*(note for note in notes if note not in self._said), *work.lines(result)]:
            self.note(line)
        self._said.update(notes)
