"""Routes that go on: what happens in a session, or in one tree, as server-sent events."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, Literal, Self

import msgspec
from starlette.responses import Response

from xclaw.contracts.channels import Happened, Outgoing, Reply
from xclaw.contracts.events import Entry, RunEnded
from xclaw.contracts.journal import RunRow
from xclaw.gateway.channels.api_errors import ApiRefusal
from xclaw.gateway.channels.api_route import AnyRoute, ApiRoute, Call, HeaderUse, Nothing, Whose
from xclaw.gateway.channels.api_runs import own_run, session_of
from xclaw.gateway.channels.sse import MEDIA_TYPE, EventStream, Opening, Pace
from xclaw.gateway.frames import frame_of
from xclaw.gateway.wire import DeltaFrame, EventFrame, ReplyFrame, ServerFrame

LAST_EVENT_ID = "last-event-id"
MAX_ID = 2**63 - 1
MAX_DIGITS = 20


class EventsQuery(Whose, frozen=True, kw_only=True):
    after: Annotated[
        Annotated[int, msgspec.Meta(ge=0, le=MAX_ID)] | None,
        msgspec.Meta(description="The id of the last event that is known; Last-Event-ID goes before it."),
    ] = None


async def session_events(call: Call[Nothing, EventsQuery]) -> EventStream:
    session = call.path["session"]
    _ = call.key  # refuses a name that none can have
    return _stream(call, _session_watch(call, session, _after(call)))


async def run_events(call: Call[Nothing, EventsQuery]) -> EventStream | Response:
    row = await own_run(call)
    journal = call.gateway.journal
    root = row if row.run_id == row.root_id else await journal.run_row(row.root_id)
    if root is None:
        raise ApiRefusal("not_found", "there is no such run any more")
    after = _after(call)
    session = await session_of(call, root)
    if root.ended_at is None:
        if after is None:
            entries = await journal.read_run(root.run_id)
            after = entries[0].id - 1 if entries else 0
        return _stream(call, _tree_watch(call, session, root, after))
    told = [_outgoing(entry, root, session) for entry in await journal.read_tree(root.root_id, after or 0)]
    # A browser comes back for more after every end, unless it is answered that there is nothing.
    return _stream(call, _told(told)) if told else Response(status_code=204)


def _stream(call: Call[Nothing, EventsQuery], opening: Opening) -> EventStream:
    settings = call.gateway.settings
    return EventStream(opening, Pace(settings.keepalive_s, settings.stall_s), call.welcome)


def _after(call: Call[Nothing, EventsQuery]) -> int | None:
    text = call.headers.get(LAST_EVENT_ID, "").strip()
    if not text:
        return call.query.after
    if not (text.isascii() and text.isdigit() and len(text) < MAX_DIGITS) or int(text) > MAX_ID:
        raise ApiRefusal("bad_request", "the header Last-Event-ID is the `id` of an event of this stream")
    return int(text)


@asynccontextmanager
async def _session_watch(
    call: Call[Nothing, EventsQuery], session: str, after: int | None
) -> AsyncGenerator[AsyncIterator[ServerFrame]]:
    async with call.gateway.watch(session, after, user=call.user) as outlet:
        yield SessionFrames(outlet)


@asynccontextmanager
async def _tree_watch(
    call: Call[Nothing, EventsQuery], session: str, root: RunRow, after: int
) -> AsyncGenerator[AsyncIterator[ServerFrame]]:
    async with call.gateway.watch(session, after, user=call.user) as outlet:
        yield TreeFrames(outlet, root.run_id, root.message_id)


@asynccontextmanager
async def _told(outgoing: Sequence[Outgoing]) -> AsyncGenerator[AsyncIterator[ServerFrame]]:
    yield SessionFrames(_each(outgoing))


async def _each(outgoing: Sequence[Outgoing]) -> AsyncGenerator[Outgoing]:
    for each in outgoing:
        yield each


def _outgoing(entry: Entry, root: RunRow, session: str) -> Outgoing:
    if isinstance(entry.event, RunEnded) and entry.address.run_id == root.run_id:
        return Reply(root.message_id, session, entry, entry.event)
    return Happened(root.message_id, session, entry)


class SentEvent(msgspec.Struct, frozen=True):
    """One server-sent event."""

    data: str
    """The frame, as JSON."""
    event: Literal["event", "delta", "reply", "error"] = "event"
    id: str = ""
    """Of a stored one."""


class SessionFrames:
    """What a watch tells, as frames. Cancelling `__anext__` loses nothing that the watch does not lose."""

    def __init__(self, outgoing: AsyncIterator[Outgoing]) -> None:
        self._outgoing = outgoing

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ServerFrame:
        return frame_of(await anext(self._outgoing))


class TreeFrames:
    """Of these, the frames of one tree, up to its reply."""

    def __init__(self, outgoing: AsyncIterator[Outgoing], root: str, request: str) -> None:
        """`request`: the message that the tree answers, empty for none."""
        self._outgoing = outgoing
        self._root = root
        self._request = request
        self._runs = {root}
        self._ended = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ServerFrame:
        while not self._ended:
            frame = frame_of(await anext(self._outgoing))
            if self._is_of_tree(frame):
                self._ended = isinstance(frame, ReplyFrame)
                return frame
        raise StopAsyncIteration

    def _is_of_tree(self, frame: ServerFrame) -> bool:
        if isinstance(frame, DeltaFrame):
            return frame.run in self._runs or (self._request != "" and frame.request == self._request)
        if isinstance(frame, EventFrame | ReplyFrame) and frame.root == self._root:
            self._runs.add(frame.run)
            return True
        return False


_EVENTS = (
    "Server-sent events, named like the frames of the WebSocket: `event`, `delta`, `reply`, `error`; `data` "
    "is the frame. Stored ones have an `id`: sent back as `Last-Event-ID`, it brings everything after it, "
    "once each, in order."
)
_HEADERS = (HeaderUse("Last-Event-ID", "The id of the last event that came.", "^[0-9]{0,18}$"),)

STREAMS: tuple[AnyRoute, ...] = (
    ApiRoute(
        "GET",
        "/sessions/{session}/events",
        session_events,
        "sessions",
        "What happens in a session",
        SentEvent,
        media_types=(MEDIA_TYPE,),
        query=EventsQuery,
        headers=_HEADERS,
        details=_EVENTS + " Without `after`: from now on, also of one that nothing was said in yet.",
    ),
    ApiRoute(
        "GET",
        "/runs/{run}/events",
        run_events,
        "runs",
        "What happens in the tree of a run, up to its reply",
        SentEvent,
        media_types=(MEDIA_TYPE,),
        query=EventsQuery,
        headers=_HEADERS,
        refusals=(204,),
        details=_EVENTS + " Without `after`: from its beginning. 204 when it has ended and nothing is left.",
    ),
)
