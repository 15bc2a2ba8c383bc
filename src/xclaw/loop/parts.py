"""What one run is made of. The runtime fills it in; the loop only uses it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from xclaw.contracts.agents import Agent
from xclaw.contracts.artifacts import Pointer
from xclaw.contracts.events import Event
from xclaw.contracts.ledger import Ledger
from xclaw.contracts.messages import ChatMessage, ToolCall
from xclaw.contracts.models import Model, ToolSpec
from xclaw.contracts.projects import ProjectPort
from xclaw.contracts.results import Outcome
from xclaw.contracts.sandbox import Sandbox
from xclaw.contracts.spawn import Spawn
from xclaw.contracts.tasks import Task
from xclaw.contracts.tools import Tool, ToolSet
from xclaw.contracts.workspaces import Workspace
from xclaw.loop.dialects import Dialect
from xclaw.loop.state import RunState


class Log(Protocol):
    """The run's own stream of events."""

    def record(self, *events: Event) -> None:
        """Fold the events into the run's state and queue them for the journal, as one transaction."""
        ...

    def delta(self, text: str) -> None:
        """Streamed text; shown, not stored."""
        ...

    async def durable(self) -> None:
        """Return once everything recorded so far is. Raises `JournalError`."""
        ...


class Inbox(Protocol):
    """What comes to a run from outside: notifications of background children, what the user says meanwhile."""

    def take(self) -> bool:
        """Record those that have arrived, acknowledged, as messages; true if there were any."""
        ...

    async def wait(self) -> bool:
        """Wait until a background child ends or something is said; false at once if none is running."""
        ...


@dataclass(frozen=True, slots=True)
class Admitted:
    """A call that may run, as it will."""

    arguments: dict[str, object]
    written: str
    """Their JSON text."""
    note: str = ""
    """What the model is told beside the tool's answer."""


class Gate(Protocol):
    """Decides whether the calls of one run may run (SPEC J1, J2)."""

    async def admit(self, tool: Tool, call: ToolCall, arguments: dict[str, object]) -> Admitted:
        """Answer at once, or once a person has decided. Raises `ToolFailed` for a call that may not run;
        the text says why. Cancelling it withdraws the question when the run ends."""
        ...


class Schema(Protocol):
    """What the next reply of a small model may be, from the state as it is."""

    def __call__(self, final: dict[str, object] | None, is_over: bool) -> dict[str, object]:
        """`final`: the result form's schema, None for an answer in text. `is_over`: only the end."""
        ...


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of one run, resolved."""

    max_turns: int
    deadline: float | None
    """On `loop.time()`'s clock."""
    inline_limit_chars: int


@dataclass(slots=True)
class Parts:
    """One run's collaborators. `state` changes only through `log.record`."""

    agent: Agent
    model: Model
    dialect: Dialect
    instructions: str
    tools: ToolSet
    specs: tuple[ToolSpec, ...]
    state: RunState
    log: Log
    ledger: Ledger
    workspace: Workspace
    inbox: Inbox
    gate: Gate
    bounds: Bounds
    spawn_for: Callable[[str], Spawn]
    """The spawn port of one tool call, by its id."""
    board: Callable[[], str]
    """What the runtime shows the agent each turn (task state, budget); empty: nothing."""
    resolve_tool: Callable[[str], str]
    """The tool a model meant by a name with debris around it; the name itself when unknown."""
    run_id: str
    session_id: str
    sandbox: Callable[[], Awaitable[Sandbox]]
    """Where its commands are executed."""
    shots: tuple[ChatMessage, ...] = ()
    """Worked examples in front of the conversation, for models that need them."""
    schema: Schema | None = None
    """The schema of one reply, for models that need a tighter one than the dialect's."""
    task: Task | None = None
    output_schema: dict[str, object] | None = None
    """What a root's final text has to be; a task has its own."""
    project: ProjectPort | None = None
    unfinished: str = ""
    """What the model had said of an answer that was cut off by a cancellation."""

    @property
    def coached(self) -> bool:
        """Its model is a small one, which gets a brief, examples and a tight schema."""
        return self.schema is not None


@dataclass(frozen=True, slots=True)
class Ending:
    """How the loop left off; the runtime turns it into a `Result`."""

    outcome: Outcome
    text: str = ""
    reason: str = ""
    summary_data: object = None
    pointers: tuple[tuple[str, Pointer], ...] = ()
    structured: bool = True
