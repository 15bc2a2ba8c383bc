"""One tree of runs: who is in it, what bounds it, whether it is being cancelled."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from xclaw.contracts.artifacts import Pointer
from xclaw.contracts.coordination import is_coordinator
from xclaw.contracts.errors import SpawnRefused
from xclaw.contracts.events import ArtifactDelivered, ChildEnded, ChildSpawned, Entry, MessageAdded
from xclaw.contracts.ids import task_id_from
from xclaw.contracts.projects import Project
from xclaw.contracts.results import Outcome, Result
from xclaw.contracts.sandbox import BackendName
from xclaw.contracts.spawn import Child
from xclaw.contracts.teams import Strategy
from xclaw.contracts.usage import Spend
from xclaw.loop.state import RunState, fold
from xclaw.runtime.attempts import AttemptCounter
from xclaw.runtime.ledger import TreeLedger
from xclaw.runtime.mail import Mail
from xclaw.runtime.settings import RuntimeSettings
from xclaw.runtime.stream import RunLog, TreeStream
from xclaw.runtime.team import Team


@dataclass(frozen=True, slots=True)
class NodeEnd:
    """How one run of a cancelled tree ended. `late`: it had not ended when the report was made."""

    run_id: str
    agent: str
    outcome: Outcome
    late: bool = False


@dataclass(slots=True, eq=False)
class Node:
    """One run while it is in this process."""

    run_id: str
    agent: str
    depth: int
    log: RunLog
    ledger: TreeLedger
    parent: "Node | None" = None
    task_id: str = ""
    deadline: float | None = None
    """On the loop's clock; None until it runs, or without a limit."""
    child: Child | None = None
    background: bool = False
    result: Result | None = None
    holds_slot: bool = False
    steer: Callable[[MessageAdded], None] | None = None
    """Has it read a message at its next turn."""
    waiting_calls: int = 0
    """Tool calls of this run that wait for children or people: meanwhile it needs no slot."""
    timer: asyncio.Timeout | None = None
    """What stops it at its deadline, while it runs."""
    waits_for_people: int = 0
    """Questions of this run and those below it that wait for an answer, and its own waits for team mates:
    meanwhile its clock stands still."""
    stopped_at: float = 0.0
    """When the clock was stopped, on the loop's clock."""
    moved: Callable[[float | None], None] | None = None
    """Told of a deadline that was put off."""


Above = Callable[[Node, str, str], Awaitable[None]]
"""Whether `Node` may hand this agent this task. Raises `SpawnRefused`."""


@dataclass(slots=True, eq=False)
class Tree:
    """Shared by all runs below one root. Changes on the event loop only."""

    root_id: str
    session_id: str
    stream: TreeStream
    settings: RuntimeSettings
    slots: asyncio.Semaphore
    models: tuple[str, ...]
    dialect: str | None
    worker_timeout_s: float | None
    channel: str
    attempts: AttemptCounter = field(default_factory=AttemptCounter)
    mail: Mail = field(default_factory=Mail)
    nodes: dict[str, Node] = field(default_factory=dict[str, Node])
    past: dict[str, list[Entry]] = field(default_factory=dict[str, list[Entry]])
    """What the journal had of each run when the tree was taken up again."""
    promised: int = 0
    """Runs that workers in other processes may start and have not recorded yet."""
    announced: set[str] = field(default_factory=set[str])
    """Runs that such workers recorded as children, and of which nothing else has come yet."""
    sandbox: BackendName | None = None
    """What commands of its runs are kept in by; None in host mode."""
    project: Project | None = None
    """The user's directory that it works on."""
    above: Above | None = None
    """In a worker: asks the runtime for what the tree as a whole decides."""
    teams: dict[tuple[str, str], Team] = field(default_factory=dict[tuple[str, str], Team])
    """By the lead's run and the call that made each."""
    cancelled: str = ""
    """Why no new run may start; empty while they may."""
    _task_ids: set[str] = field(default_factory=set[str])

    def admit(self, parent: Node, children: int) -> None:
        """Raise `SpawnRefused` unless `parent` may start one more child."""
        settings = self.settings
        if self.cancelled:
            raise SpawnRefused(f"no new work: {self.cancelled}")
        if parent.depth >= settings.max_depth:
            raise SpawnRefused(
                f"depth limit: a run at depth {parent.depth} may not hand work out; finish with your own tools"
            )
        most = most_children(parent, settings)
        if children >= most:
            raise SpawnRefused(f"width limit: one run may start {most} children at most")
        if len(self.nodes) + len(self.announced) + self.promised >= settings.max_runs:
            raise SpawnRefused(f"the tree has reached its limit of {settings.max_runs} runs")

    def new_task_id(self, run_id: str) -> str:
        """Six hex digits that no other task of the tree has; replays read them from the journal."""
        attempt = 0
        while (task_id := task_id_from(run_id, attempt)) in self._task_ids:
            attempt += 1
        self._task_ids.add(task_id)
        return task_id

    def team(self, lead: Node, call_id: str, strategy: Strategy) -> Team:
        """The team that a call of `lead` has made."""
        key = (lead.run_id, call_id)
        if key not in self.teams:
            self.teams[key] = Team(lead.log.state, call_id, strategy == "round-robin")
        return self.teams[key]

    def delivered(self) -> list[Pointer]:
        """Everything the tree delivered, also before it was taken up again."""
        before = [
            entry.event.pointer
            for run_id, entries in self.past.items()
            if run_id not in self.nodes
            for entry in entries
            if isinstance(entry.event, ArtifactDelivered)
        ]
        return before + [p for node in self.nodes.values() for p in node.log.state.delivered]

    def recall(self, entries: Sequence[Entry]) -> None:
        """Take the counters back from the journal, for a tree that is taken up again."""
        self.past = by_run(entries)
        self.mail.recall(entries)
        tasks: dict[str, ChildSpawned] = {}
        for entry in entries:
            match entry.event:
                case ChildSpawned() as spawned:
                    tasks[spawned.child_run_id] = spawned
                    self._task_ids.add(spawned.task_id)
                case ChildEnded(child_run_id, result) if child_run_id in tasks:
                    task = tasks[child_run_id].task
                    self.attempts.note(task.agent, task.text, result.outcome, succeeded=result.succeeded)
                case _:
                    pass

    def spent_by_ended(self, state: RunState) -> Spend:
        """What the children of a run that is taken up again had used, those that had ended."""
        total = Spend()
        for run_id in state.children:
            result = state.child_results.get(run_id)
            if result is None:
                ended = fold(self.past.get(run_id, [])).ended
                result = ended.result if ended else None
            if result is not None:
                total += result.spend
        return total

    def below(self, run_id: str) -> list[Node]:
        """A run and its descendants, parents first."""
        return [node for node in self.nodes.values() if _is_below(node, run_id)]

    def ends(self, below: str = "") -> list[NodeEnd]:
        """How each run stands, children before their parents; of one run and its descendants if named."""
        chosen = self.below(below) if below else list(self.nodes.values())
        return [
            NodeEnd(
                node.run_id, node.agent, node.result.outcome if node.result else "cancelled", not node.result
            )
            for node in sorted(chosen, key=lambda node: -node.depth)
        ]


def most_children(node: Node, settings: RuntimeSettings) -> int:
    """How many children a run may start."""
    started = node.log.state.started_event
    coordinates = started is not None and is_coordinator(started.tools)
    return settings.coordinator_children if coordinates else settings.max_children


def _is_below(node: Node, run_id: str) -> bool:
    current: Node | None = node
    while current is not None:
        if current.run_id == run_id:
            return True
        current = current.parent
    return False


async def take_slot(tree: Tree, node: Node) -> None:
    """Wait for one of the places for workers that run at once. A root needs none."""
    if node.depth > 0 and not node.holds_slot:
        await tree.slots.acquire()
        node.holds_slot = True


def give_slot(tree: Tree, node: Node) -> None:
    if node.holds_slot:
        node.holds_slot = False
        tree.slots.release()


@asynccontextmanager
async def without_slot(tree: Tree, node: Node) -> AsyncGenerator[None]:
    """Give the worker's place away while the block waits, and wait for one again afterwards."""
    node.waiting_calls += 1
    give_slot(tree, node)
    try:
        yield
    finally:
        node.waiting_calls -= 1
    if not node.waiting_calls:
        await take_slot(tree, node)


def by_run(entries: Sequence[Entry]) -> dict[str, list[Entry]]:
    """Entries of a tree, per run, order kept."""
    runs: dict[str, list[Entry]] = {}
    for entry in entries:
        runs.setdefault(entry.address.run_id, []).append(entry)
    return runs
