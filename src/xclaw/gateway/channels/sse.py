"""Server-sent events: frames to a client that can only read, for as long as it does."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass

from starlette.types import Receive, Scope, Send

from xclaw.contracts.errors import JournalError, UsageError
from xclaw.gateway.channels.api_errors import error_response, new_mark, refusal_from, unexpected
from xclaw.gateway.wire import ErrorFrame, EventFrame, ReplyFrame, ServerFrame, encode

logger = logging.getLogger(__name__)

MEDIA_TYPE = "text/event-stream"
_WELCOME = b": welcome\n\n"
_KEEP_ALIVE = b": still here\n\n"
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]

Opening = AbstractAsyncContextManager[AsyncIterator[ServerFrame]]
"""Opens a watch. Of its iterator `__anext__` may be cancelled, and nothing is lost."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Times in seconds."""

    keepalive_s: float
    """Between signs of life while nothing happens."""
    stall_s: float
    """A client that reads nothing for so long is dropped."""


def event_text(frame: ServerFrame) -> bytes:
    """One event. Stored ones have an `id`, which a client that comes back sends as `Last-Event-ID`."""
    number = f"id: {frame.id}\n" if isinstance(frame, EventFrame | ReplyFrame) else ""
    return f"{number}event: {frame.__struct_config__.tag}\ndata: {encode(frame)}\n\n".encode()


class EventStream:
    """An ASGI response of frames. Ends when they do, when the client goes away or reads nothing for too
    long, and when `welcome` says no; everything that it had begun has ended by then, too."""

    def __init__(self, opening: Opening, pace: Pace, welcome: Callable[[], bool]) -> None:
        """`opening` may raise `UsageError` when it is entered, which is answered as an error."""
        self._opening = opening
        self._pace = pace
        self._welcome = welcome

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with AsyncExitStack() as stack:
            try:
                frames = await stack.enter_async_context(self._opening)
            except UsageError as error:
                await error_response(refusal_from(error))(scope, receive, send)
                return
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            async with asyncio.TaskGroup() as group:
                gone = group.create_task(_gone(receive))
                sending = group.create_task(self._send_all(frames, send))
                await asyncio.wait((gone, sending), return_when=asyncio.FIRST_COMPLETED)
                gone.cancel()
                sending.cancel()

    async def _send_all(self, frames: AsyncIterator[ServerFrame], send: Send) -> None:
        try:
            await self._write(_WELCOME, send)
            try:
                await self._send_frames(frames, send)
            except JournalError:
                mark = new_mark()
                logger.exception("the journal cannot be read [%s]", mark)
                failed = ErrorFrame(code="internal", content=unexpected(mark))
                await self._write(event_text(failed), send)
            await self._write(b"", send, last=True)
        except TimeoutError:
            return  # it reads nothing: the server drops a response that was not brought to its end

    async def _send_frames(self, frames: AsyncIterator[ServerFrame], send: Send) -> None:
        clock = asyncio.get_running_loop().time
        checked_at = clock()
        while True:
            try:
                async with asyncio.timeout(self._pace.keepalive_s):
                    frame = await anext(frames, None)
                if frame is None:
                    return
                text = event_text(frame)
            except TimeoutError:
                text = _KEEP_ALIVE
            if clock() - checked_at >= self._pace.keepalive_s:
                if not self._welcome():
                    return
                checked_at = clock()
            await self._write(text, send)

    async def _write(self, text: bytes, send: Send, *, last: bool = False) -> None:
        """Raises `TimeoutError` when the client does not read."""
        async with asyncio.timeout(self._pace.stall_s):
            await send({"type": "http.response.body", "body": text, "more_body": not last})


async def _gone(receive: Receive) -> None:
    """Wait until the client is."""
    while (await receive())["type"] != "http.disconnect":
        continue
