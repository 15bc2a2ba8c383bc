"""Routes for messages: say something, see what became of it, take it back."""

import hashlib
import time
from typing import Annotated, Literal

import msgspec

from xclaw.contracts.agents import Limits
from xclaw.contracts.channels import Wishes
from xclaw.contracts.errors import UsageError
from xclaw.contracts.events import RunEnded
from xclaw.contracts.messages import Message
from xclaw.contracts.results import Outcome
from xclaw.contracts.sessions import Inbound, Manner
from xclaw.gateway.channels.api_errors import ApiRefusal
from xclaw.gateway.channels.api_route import AnyRoute, ApiRoute, Call, HeaderUse, Name, Nothing, Whose
from xclaw.gateway.desk import client_name
from xclaw.gateway.gateway import Gateway
from xclaw.gateway.names import MAX_CHARACTERS

CHANNEL = "api"
IDEMPOTENCY_KEY = "idempotency-key"

Status = Literal["waiting", "running", "ended", "dropped"]


class LimitsBody(msgspec.Struct, frozen=True, kw_only=True):
    """What the run may use. Null: no limit of its own."""

    max_turns: Annotated[int, msgspec.Meta(ge=1, le=100_000)] | None = None
    timeout_s: Annotated[float, msgspec.Meta(gt=0, le=31_536_000)] | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000_000)] | None = None
    max_usd: Annotated[float, msgspec.Meta(gt=0, le=1_000_000)] | None = None


class MessageBody(msgspec.Struct, frozen=True, kw_only=True):
    """A message for the session's agents."""

    text: Annotated[str, msgspec.Meta(extra_json_schema={"pattern": r"\S"})]
    client_id: Annotated[
        Name,
        msgspec.Meta(description="Under one that was used before in the session it is the same message."),
    ] = ""
    agent: Annotated[Name, msgspec.Meta(description="Ask this one, without the router.")] = ""
    manner: Annotated[
        Manner,
        msgspec.Meta(
            description="While a run goes on: wait for it, be read at its next turn, or take its place."
        ),
    ] = "queue"
    models: Annotated[
        tuple[Annotated[Name, msgspec.Meta(min_length=1)], ...],
        msgspec.Meta(max_length=16, description="The fallback chain, as provider:model."),
    ] = ()
    limits: LimitsBody = LimitsBody()


class RunBody(MessageBody, frozen=True, kw_only=True):
    """A message, in a session of its own where none is named."""

    session: Annotated[Name, msgspec.Meta(description="Empty: a fresh one.")] = ""


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """The message is durable and will be answered. Watching from `after` misses nothing of the answer."""

    request: str
    session: str
    after: int
    waiting: int
    duplicate: bool


class MessageAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a message."""

    request: str
    session: str
    status: Status
    run: str
    outcome: Outcome | None
    text: str
    reason: str


async def say(call: Call[MessageBody, Whose]) -> Accepted:
    _ = call.key  # refuses a name that none can have
    return await _dispatch(call, call.path["session"], _client_id(call))


async def start_run(call: Call[RunBody, Whose]) -> Accepted:
    client_id = _client_id(call)
    session = call.body.session or _fresh_session(call.user, client_id)
    return await _dispatch(call, session, client_id)


async def show_message(call: Call[Nothing, Whose]) -> MessageAnswer:
    inbound = await _own_message(call)
    row = await call.gateway.journal.run_row(inbound.run_id) if inbound.run_id else None
    status: Status = "waiting"
    if inbound.dropped:
        status = "dropped"
    elif inbound.run_id:
        status = "ended" if row is None or row.ended_at is not None else "running"
    text, reason = "", inbound.dropped
    if status == "ended":
        text, reason = await _ending(call.gateway, inbound.run_id)
    return MessageAnswer(
        request=inbound.message.id,
        session=client_name(inbound.message.session_id),
        status=status,
        run=inbound.run_id,
        outcome=row.outcome if row else None,
        text=text,
        reason=reason,
    )


async def drop_message(call: Call[Nothing, Whose]) -> None:
    inbound = await _own_message(call)
    if not await call.gateway.drop(inbound.message.id, "taken back by the user", user=call.user):
        raise ApiRefusal("busy", "this message waits no longer; to end its run, cancel that")


async def _dispatch(call: Call[MessageBody, Whose], session: str, client_id: str) -> Accepted:
    body = call.body
    limits = Limits(body.limits.max_turns, body.limits.timeout_s, body.limits.max_tokens, body.limits.max_usd)
    wishes = Wishes(body.agent, body.models, limits, body.manner, client_id)
    message = Message("", session, CHANNEL, body.text, time.time())
    try:
        accepted = await call.gateway.dispatch(message, wishes, user=call.user)
    except UsageError as error:
        if call.gateway.closing:
            raise ApiRefusal("closing", str(error)) from None
        raise
    return Accepted(
        request=accepted.message_id,
        session=accepted.session_id,
        after=accepted.after,
        waiting=accepted.waiting,
        duplicate=accepted.duplicate,
    )


def _client_id(call: Call[MessageBody, Whose]) -> str:
    """The client's own id of a message, from its body or from the header that HTTP clients send."""
    named, key = call.body.client_id, call.headers.get(IDEMPOTENCY_KEY, "")
    if named and key and named != key:
        raise ApiRefusal("bad_request", "`client_id` and the header Idempotency-Key differ; send one of them")
    if len(key) > MAX_CHARACTERS or not key.isascii() or not key.isprintable():
        raise ApiRefusal("bad_request", f"Idempotency-Key has at most {MAX_CHARACTERS} letters of ASCII")
    return named or key


def _fresh_session(user: str, client_id: str) -> str:
    """A session's name that nobody has; of a request that is sent again it is the same one."""
    if not client_id:
        return ""
    digest = hashlib.sha256(f"{user}\0{client_id}".encode()).hexdigest()
    return f"web-{digest[:24]}"


async def _own_message(call: Call[Nothing, Whose]) -> Inbound:
    wanted = call.path["request"]
    inbound = await call.gateway.sessions.inbound(wanted)
    if inbound is None or inbound.user != call.user:
        raise ApiRefusal("not_found", f"there is no message {wanted[:80]!r}")
    return inbound


async def _ending(gateway: Gateway, run_id: str) -> tuple[str, str]:
    """What a run that has ended answered, and why it ended so."""
    entries = await gateway.journal.read_run(run_id)
    ended = next((entry.event for entry in entries if isinstance(entry.event, RunEnded)), None)
    return (ended.result.text, ended.result.reason) if ended else ("", "")


_IDEMPOTENCY_KEY = (
    HeaderUse("Idempotency-Key", "Another way to give a `client_id`.", r"^[\x20-\x7e]{0,200}$"),
)

MESSAGES: tuple[AnyRoute, ...] = (
    ApiRoute(
        "POST",
        "/sessions/{session}/messages",
        say,
        "messages",
        "Say something to a session's agents",
        Accepted,
        202,
        body=MessageBody,
        query=Whose,
        refusals=(503,),
        headers=_IDEMPOTENCY_KEY,
        details="202 once the message is durable; it will be answered whatever happens to the gateway.",
    ),
    ApiRoute(
        "POST",
        "/runs",
        start_run,
        "messages",
        "Say something in a session of its own",
        Accepted,
        202,
        body=RunBody,
        query=Whose,
        refusals=(503,),
        headers=_IDEMPOTENCY_KEY,
    ),
    ApiRoute(
        "GET",
        "/messages/{request}",
        show_message,
        "messages",
        "What became of a message",
        MessageAnswer,
        query=Whose,
    ),
    ApiRoute(
        "DELETE",
        "/messages/{request}",
        drop_message,
        "messages",
        "Take back a message that waits",
        status=204,
        query=Whose,
        refusals=(409,),
    ),
)
