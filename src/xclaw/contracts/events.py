"""What happened: a closed union of facts, from which everything else is read.

A reservation of the ledger is part of `TurnStarted`, its settlement part of `ModelAnswered` or
`AttemptFailed`: the same fact, one row instead of two.
"""

from dataclasses import dataclass, field
from typing import Literal

from xclaw.contracts.agents import Limits
from xclaw.contracts.artifacts import Pointer
from xclaw.contracts.messages import AssistantMessage, Caller, ImageRef, Origin, Said
from xclaw.contracts.models import ToolSpec
from xclaw.contracts.permissions import Permissions
from xclaw.contracts.plans import CheckRun, Phase, PlannedTask, Verdict
from xclaw.contracts.projects import Project, ProjectMerged
from xclaw.contracts.results import Outcome, Result
from xclaw.contracts.routing import Route
from xclaw.contracts.sandbox import BackendName
from xclaw.contracts.tasks import Task
from xclaw.contracts.team_events import BoardChanged, MailSent
from xclaw.contracts.usage import Usage
from xclaw.contracts.workflows import WorkflowNoted


@dataclass(frozen=True, slots=True)
class RunStarted:
    agent: str
    input: str
    """The user's message, or the task with its headers."""
    caller: Caller
    depth: int
    """0 for a root."""
    instructions: str
    """The system prompt as sent."""
    tools: tuple[str, ...]
    models: tuple[str, ...]
    dialect: Literal["native", "json"]
    limits: Limits
    parent_call_id: str = ""
    task_id: str = ""
    task: Task | None = None
    channel: str = ""
    message_id: str = ""
    """Of the channel's message that it answers; empty for a child."""
    scripted: bool = False
    route: Route | None = None
    """How a root's message came to this agent."""
    history: tuple[Said, ...] = ()
    """What had been said before, where the client keeps the conversation and sends it along."""
    client_tools: tuple[ToolSpec, ...] = ()
    """Tools that the client runs itself: a turn that asks for them ends the run."""
    output_schema: dict[str, object] | None = None
    """Constrains the final text of a root."""
    permissions: Permissions = Permissions()
    """What it may do, narrowed by everybody above it."""
    script: tuple[str, ...] = ()
    """The user's program that the run is, with its arguments."""
    tree_models: tuple[str, ...] = ()
    """Of a root: the chain of the agents below it that name none."""
    sandbox: BackendName | Literal[""] = ""
    """What its commands are kept in by; empty in host mode."""
    project: Project | None = None
    """The user's directory that the tree works on."""
    worktree: bool = False
    """It works in a private tree of that, instead of reading it."""
    kind: Literal["run_started"] = "run_started"


@dataclass(frozen=True, slots=True)
class RunResumed:
    """A process took the run over after a crash and goes on."""

    owner: str
    kind: Literal["run_resumed"] = "run_resumed"


@dataclass(frozen=True, slots=True)
class TurnStarted:
    turn: int
    """From 1."""
    model: str
    reserved_tokens: int
    reserved_usd: float | None
    kind: Literal["turn_started"] = "turn_started"


@dataclass(frozen=True, slots=True)
class TextDelta:
    """Streamed text. Never stored; the whole message is, in `ModelAnswered`."""

    text: str
    kind: Literal["text_delta"] = "text_delta"


@dataclass(frozen=True, slots=True)
class AttemptFailed:
    """A model failed; what it had said is retracted."""

    turn: int
    model: str
    error: str
    status: int | None
    usage: Usage
    cost_usd: float | None
    retracted: str
    next_model: str | None
    kind: Literal["attempt_failed"] = "attempt_failed"


@dataclass(frozen=True, slots=True)
class ModelAnswered:
    """A finished, paid model call. It is never made again."""

    turn: int
    message: AssistantMessage
    """As the conversation keeps it; `completion` is what the model wrote, when that differs."""
    usage: Usage
    cost_usd: float | None
    model: str
    finish: str
    duration_s: float
    first_token_s: float | None = None
    completion: str = ""
    kind: Literal["model_answered"] = "model_answered"


@dataclass(frozen=True, slots=True)
class ToolCallStarted:
    call_id: str
    name: str
    arguments: str
    kind: Literal["tool_call_started"] = "tool_call_started"


@dataclass(frozen=True, slots=True)
class ToolCallEnded:
    call_id: str
    name: str
    ok: bool
    content: str
    """What the model sees: bounded; a longer output is in `spilled`."""
    duration_s: float
    spilled: str = ""
    """Path of the file that holds the whole output."""
    exit_code: int | None = None
    """Of a command: the receipt that a claim can point to."""
    refused: bool = False
    """It was not permitted, and did not run."""
    images: tuple[ImageRef, ...] = ()
    """What the model was shown beside `content`, as long as the files stay as they are."""
    kind: Literal["tool_call_ended"] = "tool_call_ended"


@dataclass(frozen=True, slots=True)
class ApprovalAsked:
    """A call waits for a person. Durable before anybody is shown it."""

    approval_id: str
    call_id: str
    tool: str
    arguments: str
    why: str
    rule: str
    """What "session" and "always" would allow from then on; empty: they are not on offer."""
    path: tuple[str, ...]
    """Names of the agents from the root to the asker."""
    kind: Literal["approval_asked"] = "approval_asked"


@dataclass(frozen=True, slots=True)
class ApprovalAnswered:
    """The wait is over: exactly that call now runs, once, or it does not."""

    approval_id: str
    decision: Literal["once", "session", "always", "deny", "edit", "void"]
    """"void": the run ended first."""
    by: str
    """The user, or "xclaw" for a denial that nobody gave."""
    reason: str = ""
    arguments: str = ""
    """Of "edit": JSON text of what ran instead."""
    rule: str = ""
    """What was allowed from then on, of "session" and "always"."""
    kind: Literal["approval_answered"] = "approval_answered"


@dataclass(frozen=True, slots=True)
class ChildSpawned:
    """In the parent's stream, before the child's first event."""

    call_id: str
    child_run_id: str
    child_session_id: str
    task_id: str
    task: Task
    background: bool = False
    kind: Literal["child_spawned"] = "child_spawned"


@dataclass(frozen=True, slots=True)
class ChildEnded:
    """The parent took the child's result: the acknowledgement of the outbox."""

    child_run_id: str
    result: Result
    call_id: str = ""
    """The tool call that took it; empty when it came as a notification."""
    kind: Literal["child_ended"] = "child_ended"


@dataclass(frozen=True, slots=True)
class ArtifactDelivered:
    pointer: Pointer
    name: str
    kind: Literal["artifact_delivered"] = "artifact_delivered"


@dataclass(frozen=True, slots=True)
class NotificationQueued:
    """In a background child's stream, in one transaction with its `RunEnded`."""

    parent_run_id: str
    kind: Literal["notification_queued"] = "notification_queued"


@dataclass(frozen=True, slots=True)
class MessageAdded:
    """Text that entered the conversation while the run went on: a notification, a correction of
    the result form, a loop warning, a steering message."""

    text: str
    origin: Origin
    message_id: str = ""
    """Of the channel's message or the mail that it is."""
    kind: Literal["message_added"] = "message_added"


@dataclass(frozen=True, slots=True)
class PhaseChanged:
    """How a coordinator's work stands (SPEC H1): a phase began, a part of it has ended, or the next one
    may begin."""

    phase: Phase
    round: int
    """From 1: a plan, its implementation and its verification."""
    rounds: int
    """At most."""
    call_id: str
    """The call of the phase's tool."""
    done: int = 0
    total: int = 0
    """Parts of the phase."""
    part: str = ""
    """Which part has just ended: the number of a question or a check, the id of a task."""
    agent: str = ""
    """Who worked on it."""
    outcome: str = ""
    """How that ended; "blocked" if it was not begun because another part had failed."""
    plan: tuple[PlannedTask, ...] = ()
    """Of a plan that was accepted."""
    verdict: Verdict | None = None
    checks: tuple[CheckRun, ...] = ()
    """What the verdict was reached by."""
    kind: Literal["phase_changed"] = "phase_changed"


WarningCode = Literal[
    "parse_failed",
    "repeated_call",
    "stream_interrupted",
    "fan_out",
    "same_model",
    "not_self_contained",
    "unverified",
    "compaction",
    "agent_file",
    "queued",
    "late",
]


@dataclass(frozen=True, slots=True)
class Warned:
    """Something a person reading the trace should see."""

    code: WarningCode
    text: str
    kind: Literal["warned"] = "warned"


@dataclass(frozen=True, slots=True)
class Compacted:
    """Everything before message `kept_from` (counted in the uncompacted conversation) is now `summary`."""

    kept_from: int
    summary: str
    tokens_before: int
    tokens_after: int
    usage: Usage = Usage()
    cost_usd: float | None = 0.0
    kind: Literal["compacted"] = "compacted"


@dataclass(frozen=True, slots=True)
class RunEnded:
    result: Result
    outcome: Outcome
    turns: int
    artifacts: tuple[Pointer, ...] = field(default=())
    """What the run delivered; for a root, what its whole tree delivered."""
    kind: Literal["run_ended"] = "run_ended"


Event = (
    RunStarted
    | RunResumed
    | TurnStarted
    | TextDelta
    | AttemptFailed
    | ModelAnswered
    | ToolCallStarted
    | ToolCallEnded
    | ApprovalAsked
    | ApprovalAnswered
    | ChildSpawned
    | ChildEnded
    | ArtifactDelivered
    | NotificationQueued
    | MessageAdded
    | MailSent
    | BoardChanged
    | PhaseChanged
    | WorkflowNoted
    | ProjectMerged
    | Warned
    | Compacted
    | RunEnded
)

EVENT_TYPES: dict[str, type[Event]] = {
    "run_started": RunStarted,
    "run_resumed": RunResumed,
    "turn_started": TurnStarted,
    "text_delta": TextDelta,
    "attempt_failed": AttemptFailed,
    "model_answered": ModelAnswered,
    "tool_call_started": ToolCallStarted,
    "tool_call_ended": ToolCallEnded,
    "approval_asked": ApprovalAsked,
    "approval_answered": ApprovalAnswered,
    "child_spawned": ChildSpawned,
    "child_ended": ChildEnded,
    "artifact_delivered": ArtifactDelivered,
    "notification_queued": NotificationQueued,
    "message_added": MessageAdded,
    "mail_sent": MailSent,
    "board_changed": BoardChanged,
    "phase_changed": PhaseChanged,
    "workflow_noted": WorkflowNoted,
    "project_merged": ProjectMerged,
    "warned": Warned,
    "compacted": Compacted,
    "run_ended": RunEnded,
}


@dataclass(frozen=True, slots=True)
class Address:
    """Where an event belongs."""

    run_id: str
    root_id: str
    """The root's run id: the trace id of the tree."""
    parent_id: str
    """Empty for a root."""
    session_id: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One event in its place.

    `seq` counts the run's stored events from 1; the run's owner gives it out, and two owners that
    give out the same one are how a zombie is noticed. `id` is the journal's own number over all
    runs, rising in commit order: what a client resumes from. Both are 0 for a `TextDelta`, and
    `id` is 0 until the entry is durable.
    """

    address: Address
    seq: int
    at: float
    """Unix time, seconds."""
    event: Event
    id: int = 0
