"""The Tool contract."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from xclaw.contracts.coordination import Coordination, not_begun
from xclaw.contracts.events import Event
from xclaw.contracts.messages import ImageRef, ToolCall
from xclaw.contracts.models import ToolSpec
from xclaw.contracts.projects import ProjectPort
from xclaw.contracts.sandbox import Sandbox, no_sandbox
from xclaw.contracts.spawn import Spawn
from xclaw.contracts.workspaces import Workspace


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a tool answers. The loop bounds `content` and spills the rest; tools need not."""

    content: str
    ok: bool = True
    exit_code: int | None = None
    refused: bool = False
    """Said by the loop, of a call that was not permitted; no tool says it."""
    images: tuple[ImageRef, ...] = ()
    """Shown beside `content` to a model that can see; `content` has to do for one that cannot."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What one call may touch. Made anew for each call."""

    run_id: str
    session_id: str
    agent: str
    call_id: str
    request: str
    """What the run was asked: the user's message or the task."""
    workspace: Workspace
    spawn: Spawn
    record: Callable[[Event], None]
    """Journal an event in this run's stream."""
    turn_calls: tuple[ToolCall, ...] = ()
    """Every call that the model made in this turn, this one among them, in order."""
    sandbox: Callable[[], Awaitable[Sandbox]] = no_sandbox
    """Where the run's commands are executed; started on first use. Raises `SandboxUnavailable`."""
    project: ProjectPort | None = None
    """What the run may do with the user's project; None without one."""
    coordination: Callable[[], Coordination] = not_begun
    """How the phases of a coordinator's run stand now."""
    inline_chars: int = 8_000
    """How long an answer may be without being spilled, in characters of ASCII."""


class Tool(Protocol):
    """A thing a model can ask for. Shared by all runs: no state of a call lives in it.

    `run` gets arguments that passed the schema. It raises `ToolFailed` for what the model can act
    on; any other exception becomes a failure without its traceback. Cancelling `run` ends whatever
    it started.
    """

    @property
    def spec(self) -> ToolSpec: ...

    @property
    def replayable(self) -> bool:
        """Running it again after a crash is harmless: it reads, or finds what it had started."""
        ...

    @property
    def timeout_s(self) -> float | None:
        """How long a call may take; None: as long as its run may."""
        ...

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput: ...


@runtime_checkable
class Quoting(Protocol):
    """A tool that says what a call will cost at most, for whoever is asked to allow it."""

    async def quote(self, arguments: Mapping[str, object], left: str) -> str:
        """One line. `left` is what the run may still spend, as text; empty without a bound. Raises
        `ToolFailed` for a call that would be refused anyway."""
        ...


ToolSet = Mapping[str, Tool]
