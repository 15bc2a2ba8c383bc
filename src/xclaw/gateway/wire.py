"""What travels between a gateway and its clients: typed, versioned, one JSON object per frame.

A client's frame names what it wants by `type`; `ref` is the client's own mark and comes back in the
answer. Fields that this version does not know are left out; an unknown `type` is an error with a text.
"""

from typing import Any, Literal

import msgspec

from xclaw.contracts.agents import Limits
from xclaw.contracts.sessions import Manner

WIRE_VERSION = 1
MAX_NAME = 200
"""Characters of a session's name, an agent's, a client's id."""

Data = dict[str, Any]
"""A journal event as JSON: its fields and its `kind`, without what only a model needs to see."""


class Frame(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True):
    """One message of either side."""


# --- what a client says


class Watch(Frame, tag="watch", frozen=True):
    """Send everything of a session that comes after entry `after`; without it, from now on."""

    session: str
    after: int | None = None
    ref: str = ""


class Unwatch(Frame, tag="unwatch", frozen=True):
    session: str
    ref: str = ""


class Say(Frame, tag="message", frozen=True):
    """A message for the session's agents. Under a `client_id` that was used before it is the same one."""

    session: str
    text: str
    client_id: str = ""
    agent: str = ""
    manner: Manner = "queue"
    models: tuple[str, ...] = ()
    limits: Limits = Limits()
    ref: str = ""


class Cancel(Frame, tag="cancel", frozen=True):
    """End a run by its id; or, with a session, what runs in it and what waits."""

    session: str = ""
    run: str = ""
    reason: str = "cancelled by the user"
    ref: str = ""


class Answer(Frame, tag="answer", frozen=True):
    """Decide an approval."""

    approval: str
    decision: Literal["once", "session", "always", "deny", "edit"]
    reason: str = ""
    arguments: dict[str, Any] | None = None
    ref: str = ""


class Ping(Frame, tag="ping", frozen=True):
    ref: str = ""


ClientFrame = Watch | Unwatch | Say | Cancel | Answer | Ping


# --- what the gateway says


class Hello(Frame, tag="hello", frozen=True):
    """The first frame of a connection."""

    v: int
    server: str
    """The gateway's version."""
    user: str
    scopes: tuple[str, ...]
    max_message_bytes: int


class Watching(Frame, tag="watching", frozen=True):
    """The watch has begun. `after` is where: everything later comes, each once, in order."""

    session: str
    after: int
    running: tuple[str, ...] = ()
    """The requests that are being answered, by message id."""
    ref: str = ""


class SayAccepted(Frame, tag="accepted", frozen=True):
    """The message is durable. `after`: watching from here misses nothing of its answer."""

    session: str
    request: str
    after: int
    client_id: str = ""
    waiting: int = 0
    duplicate: bool = False
    ref: str = ""


class Cancelled(Frame, tag="cancelled", frozen=True):
    runs: int
    session: str = ""
    ref: str = ""


class Answered(Frame, tag="answered", frozen=True):
    approval: str
    ref: str = ""


class Done(Frame, tag="done", frozen=True):
    """A frame that has nothing to tell was carried out."""

    ref: str = ""


class Pong(Frame, tag="pong", frozen=True):
    ref: str = ""


class DeltaFrame(Frame, tag="delta", frozen=True):
    """Streamed text. `offset` counts the characters since the run's last stored entry, `after`."""

    request: str
    session: str
    run: str
    agent: str
    after: int
    offset: int
    content: str


class EventFrame(Frame, tag="event", frozen=True):
    """A stored event. `id` is what to resume from."""

    request: str
    session: str
    id: int
    seq: int
    at: float
    run: str
    root: str
    parent: str
    run_session: str
    data: Data


class ReplyFrame(Frame, tag="reply", frozen=True):
    """The request has its answer. `outcome` says how good it is; `data` is the run's last event."""

    request: str
    session: str
    content: str
    outcome: str
    id: int
    seq: int
    at: float
    run: str
    root: str
    parent: str
    run_session: str
    data: Data


class ErrorFrame(Frame, tag="error", frozen=True):
    """What could not be done, and what to do. `code` is one of a stable list (docs/gateway.md)."""

    code: str
    content: str
    request: str = ""
    session: str = ""
    client_id: str = ""
    ref: str = ""


ServerFrame = (
    Hello
    | Watching
    | SayAccepted
    | Cancelled
    | Answered
    | Done
    | Pong
    | DeltaFrame
    | EventFrame
    | ReplyFrame
    | ErrorFrame
)

_ENCODER = msgspec.json.Encoder()
_CLIENT = msgspec.json.Decoder(ClientFrame)
_SERVER = msgspec.json.Decoder(ServerFrame)


class BadFrame(ValueError):
    """A frame that is none; the text says why."""


def encode(frame: Frame) -> str:
    return _ENCODER.encode(frame).decode()


def decode_client(text: str | bytes) -> ClientFrame:
    """Raises `BadFrame`."""
    return _decoded(_CLIENT, text)


def decode_server(text: str | bytes) -> ServerFrame:
    """Raises `BadFrame`, also for a frame of a newer gateway."""
    return _decoded(_SERVER, text)


def _decoded(decoder: msgspec.json.Decoder[Any], text: str | bytes) -> Any:
    try:
        return decoder.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise BadFrame(f"this is no frame of version {WIRE_VERSION}: {error}") from None
