"""What travels between the runtime and a worker that drives one of its runs: one JSON object per line.

Entries travel as they are journaled, so that both sides fold the same state. No code, no pickle, no key.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

import msgspec

from xclaw.contracts.agents import Agent
from xclaw.contracts.artifacts import Pointer
from xclaw.contracts.errors import (
    AllModelsFailed,
    ContextTooLong,
    Fenced,
    JournalError,
    LimitReached,
    ModelError,
    ModelInterrupted,
    ModelRejected,
    ModelUnavailable,
    NoModel,
    SpawnRefused,
    UsageError,
)
from xclaw.contracts.events import EVENT_TYPES, Address, ApprovalAnswered, Entry, Event, MessageAdded
from xclaw.contracts.messages import AssistantMessage, ChatMessage, ToolMessage, UserMessage
from xclaw.contracts.models import Attempt, Finish, ModelProfile, ModelReply, ModelRequest, ToolSpec
from xclaw.contracts.permissions import Level
from xclaw.contracts.projects import Project
from xclaw.contracts.results import Outcome
from xclaw.contracts.sandbox import BackendName
from xclaw.contracts.usage import Usage
from xclaw.runtime.ledger import Bounds
from xclaw.runtime.permissions import PermissionSettings
from xclaw.runtime.settings import RuntimeSettings

WIRE_VERSION = 1
_MESSAGES: dict[str, type[ChatMessage]] = {
    "user": UserMessage,
    "assistant": AssistantMessage,
    "tool": ToolMessage,
}
_ERRORS: dict[str, type[Exception]] = {
    error.__name__: error
    for error in (
        ModelError, ModelUnavailable, ModelInterrupted, ModelRejected, ContextTooLong, SpawnRefused,
        UsageError, NoModel, JournalError, Fenced,
    )
}  # fmt: skip


class Line(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True):
    """One line of either side."""


class WireEntry(msgspec.Struct, frozen=True):
    """An `Entry`; its address is given out apart, since most entries have the same."""

    run: str
    root: str
    parent: str
    session: str
    seq: int
    at: float
    kind: str
    event: msgspec.Raw
    id: int = 0

    @classmethod
    def of(cls, entry: Entry) -> "WireEntry":
        address = entry.address
        event = msgspec.Raw(_encoded(entry.event))
        return cls(
            address.run_id,
            address.root_id,
            address.parent_id,
            address.session_id,
            entry.seq,
            entry.at,
            entry.event.kind,
            event,
            entry.id,
        )

    def entry(self) -> Entry:
        """Raises `ValueError` for what is no event."""
        kind = EVENT_TYPES.get(self.kind)
        if kind is None:
            raise ValueError(f"there are no events of kind {self.kind[:80]!r}")
        event = msgspec.json.decode(self.event, type=kind)
        return Entry(
            Address(self.run, self.root, self.parent, self.session), self.seq, self.at, event, self.id
        )


class WireError(msgspec.Struct, frozen=True, omit_defaults=True):
    """One of the errors that cross as themselves."""

    name: str
    text: str
    limit: str = ""
    status: int | None = None
    usage: Usage | None = None
    partial: str = ""
    retry_after_s: float | None = None
    failures: tuple["WireError", ...] = ()

    @classmethod
    def of(cls, error: BaseException) -> "WireError":
        name, text = type(error).__name__, str(error)
        match error:
            case LimitReached():
                return cls(name, text, limit=error.limit)
            case AllModelsFailed():
                return cls(name, text, failures=tuple(cls.of(failure) for failure in error.failures))
            case ModelError():
                wait = error.retry_after_s if isinstance(error, ModelUnavailable) else None
                return cls(name, text, "", error.status, error.usage, error.partial, wait)
            case _ if name in _ERRORS:
                return cls(name, text)
            case _:
                return cls("ModelError", f"{name}: {text}")

    def error(self) -> Exception:
        """The error itself."""
        if self.name == "LimitReached":
            return LimitReached(cast("Any", self.limit), self.text)
        if self.name == "AllModelsFailed":
            failures = [failure.error() for failure in self.failures]
            return AllModelsFailed(self.text, tuple(f for f in failures if isinstance(f, ModelError)))
        kind = _ERRORS.get(self.name, ModelError)
        if not issubclass(kind, ModelError):
            return kind(self.text)
        error = kind(self.text, status=self.status, usage=self.usage, partial=self.partial)
        if isinstance(error, ModelUnavailable):
            error.retry_after_s = self.retry_after_s
        return error


class WireChain(msgspec.Struct, frozen=True):
    """What is known of one chain of models: its first name and profile, or why there is none."""

    chain: tuple[str, ...]
    name: str = ""
    profile: ModelProfile = ModelProfile()
    error: WireError | None = None


class WireRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """A `ModelRequest`. Its deadline stays where the clock is."""

    instructions: str
    messages: tuple[dict[str, Any], ...]
    tools: tuple[ToolSpec, ...] = ()
    output_schema: dict[str, Any] | None = None
    max_output_tokens: int | None = None
    temperature: float | None = None

    @classmethod
    def of(cls, request: ModelRequest) -> "WireRequest":
        messages = cast("tuple[dict[str, Any], ...]", tuple(msgspec.to_builtins(m) for m in request.messages))
        return cls(
            request.instructions,
            messages,
            request.tools,
            request.output_schema,
            request.max_output_tokens,
            request.temperature,
        )

    def conversation(self) -> list[ChatMessage]:
        """Raises `ValueError` for what is no message."""
        found: list[ChatMessage] = []
        for message in self.messages:
            kind = _MESSAGES.get(str(message.get("kind")))
            if kind is None:
                raise ValueError("a message of no known kind")
            found.append(msgspec.convert(message, kind))
        return found


class WireReply(msgspec.Struct, frozen=True):
    message: AssistantMessage
    usage: Usage
    model: str
    finish: Finish
    cost_usd: float | None
    first_token_s: float | None

    @classmethod
    def of(cls, reply: ModelReply) -> "WireReply":
        return cls(reply.message, reply.usage, reply.model, reply.finish, reply.cost_usd, reply.first_token_s)

    def reply(self) -> ModelReply:
        return ModelReply(
            self.message, self.usage, self.model, self.finish, self.cost_usd, self.first_token_s
        )


class WireAbove(msgspec.Struct, frozen=True):
    """One of the runs above, and what it may spend."""

    run: str
    agent: str
    bounds: Bounds


# --- from the runtime to the worker


class Past(Line, tag="past", frozen=True):
    """One entry of the run, of what was said in its session before, or of a run below it. `own`: it is
    of the conversation itself."""

    entry: WireEntry
    own: bool


class Begin(Line, tag="begin", frozen=True):
    """Everything else that the worker has to know; the first line after the past."""

    version: int
    run: str
    seq: int
    """The run's last event."""
    resumed: bool
    above: tuple[WireAbove, ...]
    """From the root to the parent."""
    session: str
    """The root's."""
    channel: str
    models: tuple[str, ...]
    dialect: str | None
    worker_timeout_s: float | None
    left_s: float | None
    agents: tuple[Agent, ...]
    chains: tuple[WireChain, ...]
    settings: RuntimeSettings
    permissions: PermissionSettings
    base: Level
    owner: str
    memory_root: str
    setup: dict[str, Any]
    script: tuple[str, ...] = ()
    """The user's own program that the run is, with its arguments."""
    sandbox: BackendName | None = None
    """What commands are kept in by; None in host mode."""
    project: Project | None = None


class Committed(Line, tag="committed", frozen=True):
    number: int
    ids: tuple[int, ...] = ()
    error: WireError | None = None


class Streamed(Line, tag="streamed", frozen=True):
    id: int
    text: str


class AttemptOver(Line, tag="attempt", frozen=True):
    id: int
    attempt: Attempt


class Answered(Line, tag="answered", frozen=True):
    """The end of an `Ask` or a `Want`."""

    id: int
    reply: WireReply | None = None
    answer: ApprovalAnswered | None = None
    rules: tuple[str, ...] = ()
    seconds: float | None = None
    error: WireError | None = None


class Steer(Line, tag="steer", frozen=True):
    message: MessageAdded


class Stop(Line, tag="stop", frozen=True):
    """End a run: the worker's own, which ends the worker, or one below it."""

    run: str
    reason: str


Down = Past | Begin | Committed | Streamed | AttemptOver | Answered | Steer | Stop


# --- from the worker to the runtime


class Append(Line, tag="append", frozen=True):
    number: int
    entries: tuple[WireEntry, ...]


class Delta(Line, tag="delta", frozen=True):
    run: str
    text: str


class Ask(Line, tag="ask", frozen=True):
    id: int
    run: str
    request: WireRequest


class Want(Line, tag="want", frozen=True):
    """Something that only the runtime can give. "place": for one more worker at once; "admit": may one
    more child start; "approval": the answer to a question; "deny": one that nobody answered; "asked": for
    how long it has waited; "granted": the rules that answers gave."""

    id: int
    what: Literal["place", "admit", "approval", "deny", "asked", "granted"]
    run: str
    agent: str = ""
    text: str = ""
    timeout_s: float | None = None


class Drop(Line, tag="drop", frozen=True):
    """Nobody waits for the answer any more."""

    id: int


class GivePlace(Line, tag="give_place", frozen=True):
    pass


class Ended(Line, tag="ended", frozen=True):
    """The loop's ending; the last line."""

    outcome: Outcome
    text: str = ""
    reason: str = ""
    summary_data: Any = None
    pointers: tuple[tuple[str, Pointer], ...] = ()
    structured: bool = True
    unfinished: str = ""


Up = Append | Delta | Ask | Want | Drop | GivePlace | Ended

_ENCODER = msgspec.json.Encoder()
_UP = msgspec.json.Decoder(Up)
_DOWN = msgspec.json.Decoder(Down)


def encode(line: Line) -> bytes:
    """Text that is not well-formed Unicode is mended."""
    return _encoded(line)


def decode_up(line: bytes) -> Up:
    """Raises `ValueError` for what a worker cannot say."""
    return _UP.decode(line)


def decode_down(line: bytes) -> Down:
    """Raises `ValueError` for what the runtime cannot say."""
    return _DOWN.decode(line)


def same_event(first: Event, second: Event) -> bool:
    """Whether they would be journaled alike."""
    return _encoded(first) == _encoded(second)


def chain_of(chain: Sequence[str], models: Mapping[tuple[str, ...], WireChain]) -> WireChain:
    """Raises `UsageError` for a chain of which nothing is known, or that there is none of."""
    found = models.get(tuple(chain))
    if found is None:
        raise UsageError(f"the models {', '.join(chain)} are not known to this worker")
    if found.error is not None:
        raise found.error.error()
    return found


def _encoded(value: object) -> bytes:
    try:
        return _ENCODER.encode(value)
    except UnicodeEncodeError:
        return _ENCODER.encode(_mended(msgspec.to_builtins(value)))


def _mended(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list | tuple):
        return [_mended(item) for item in cast("Sequence[object]", value)]
    if isinstance(value, dict):
        items = cast("dict[object, object]", value).items()
        return {_mended(key): _mended(item) for key, item in items}
    return value
