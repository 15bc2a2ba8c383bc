"""One request and its answer over an HTTP connection, for as long as the client is there.

The run is the client's: it ends when the client goes away, whether it was being streamed to or not.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Protocol

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from xclaw.contracts.channels import Wishes
from xclaw.contracts.errors import UsageError
from xclaw.contracts.events import Entry
from xclaw.contracts.messages import Message
from xclaw.contracts.results import Result
from xclaw.gateway.gateway import Gateway
from xclaw.gateway.protocols.openai.answer import Answer, answer_of
from xclaw.gateway.protocols.openai.ask import Ask
from xclaw.gateway.protocols.openai.refused import Refused, refusal_response, refused_by_usage
from xclaw.gateway.protocols.openai.transcript import Piece, Showing, Transcript
from xclaw.runtime.runs import RunHandle

CHANNEL = "openai"
GONE = "the client went away"
KEEP_ALIVE = b": keep-alive\n\n"
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


class Form(Protocol):
    """How one wire writes an answer. Made for one answer; its methods are called in the order of the stream."""

    def document(self, answer: Answer) -> dict[str, object]:
        """The whole answer at once."""
        ...

    def begin(self) -> bytes:
        """The events before everything else."""
        ...

    def piece(self, piece: Piece) -> bytes: ...

    def end(self, answer: Answer) -> bytes:
        """The last events; the text has been sent."""
        ...

    def fail(self, refused: Refused) -> bytes:
        """The last events of a stream that has no answer."""
        ...


class LiveAnswer:
    """A run that goes on, and what of it a client has still to be shown."""

    def __init__(self, handle: RunHandle, ask: Ask) -> None:
        """From the same step of the event loop in which the run began, so that it misses nothing."""
        self._handle = handle
        self._ask = ask
        showing = Showing(ask.is_streamed, ask.format is not None, ask.max_tokens, ask.with_progress)
        self._transcript = Transcript(handle.root_id, showing)
        self._news = asyncio.Event()
        self._unsubscribe = handle.subscribe(self._hear)
        self._result: asyncio.Future[Result] = asyncio.ensure_future(handle.result())
        self._result.add_done_callback(lambda _: self._news.set())

    async def wait(self, within_s: float) -> bool:
        """Whether there was news before the time was over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._news.wait()
            return True
        return False

    async def take(self) -> list[Piece]:
        """What came meanwhile. Ends a run of which nothing more can be shown."""
        self._news.clear()
        if self._result.done():
            self._news.set()
        if self._transcript.must_stop and not self._result.done():
            await self._handle.cancel("its client takes no more of it")
        return self._transcript.take()

    @property
    def has_ended(self) -> bool:
        return self._result.done()

    def answer(self) -> Answer:
        """Of a run that has ended. Raises `Refused`. What it adds to the text can be taken after it."""
        return answer_of(self._transcript, self._result.result(), self._ask, self._handle.run_id)

    async def end(self) -> None:
        """End the run, if it goes on."""
        if not self._result.done():
            await self._handle.cancel(GONE)
        self._unsubscribe()
        self._result.cancel()

    def _hear(self, entry: Entry) -> None:
        self._transcript.feed(entry)
        if self._transcript.has_news:
            self._news.set()


class Exchange:
    """An ASGI response to one `Ask`."""

    def __init__(self, gateway: Gateway, ask: Ask, form: Form, user: str) -> None:
        self._gateway = gateway
        self._ask = ask
        self._form = form
        self._user = user
        self._keepalive_s = gateway.settings.keepalive_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await while_connected(receive, self._run(scope, receive, send))

    async def _run(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            live = await self._start()
        except Refused as refused:
            await refusal_response(refused)(scope, receive, send)
            return
        try:
            if self._ask.is_streamed:
                await _Stream(self._form, send, self._keepalive_s).send_all(live)
            else:
                await (await self._whole(live))(scope, receive, send)
        finally:
            await live.end()

    async def _start(self) -> LiveAnswer:
        message = Message("", "", CHANNEL, self._ask.text, 0.0)
        wishes = Wishes(agent=self._ask.agent)
        try:
            handle = await self._gateway.converse(message, wishes, self._ask.brought, user=self._user)
        except UsageError as error:
            raise refused_by_usage(error, closing=self._gateway.closing) from None
        return LiveAnswer(handle, self._ask)

    async def _whole(self, live: LiveAnswer) -> Response:
        while not live.has_ended:
            await live.wait(self._keepalive_s)
            await live.take()
        try:
            answer = live.answer()
        except Refused as refused:
            return refusal_response(refused)
        body = msgspec.json.encode(self._form.document(answer))
        return Response(body, media_type="application/json")


class _Stream:
    """The body of a streamed answer. Begins with the first thing to say, so that a run that fails before
    it is an HTTP error, as clients expect; after `keepalive_s` it begins anyway."""

    def __init__(self, form: Form, send: Send, keepalive_s: float) -> None:
        self._form = form
        self._send = send
        self._keepalive_s = keepalive_s
        self._has_begun = False

    async def send_all(self, live: LiveAnswer) -> None:
        while not live.has_ended:
            if await live.wait(self._keepalive_s):
                await self._send_pieces(await live.take())
            else:
                await self._begin()
                await self._write(KEEP_ALIVE)
        await self._send_pieces(await live.take())
        try:
            answer = live.answer()
        except Refused as refused:
            await self._refuse(refused)
            return
        await self._send_pieces(await live.take())
        await self._begin()
        await self._write(self._form.end(answer), last=True)

    async def _refuse(self, refused: Refused) -> None:
        if self._has_begun:
            await self._write(self._form.fail(refused), last=True)
            return
        response = refusal_response(refused)
        await self._send(
            {"type": "http.response.start", "status": refused.status, "headers": response.raw_headers}
        )
        await self._send({"type": "http.response.body", "body": response.body})

    async def _send_pieces(self, pieces: list[Piece]) -> None:
        for piece in pieces:
            await self._begin()
            await self._write(self._form.piece(piece))

    async def _begin(self) -> None:
        if self._has_begun:
            return
        self._has_begun = True
        await self._send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        await self._write(self._form.begin())

    async def _write(self, text: bytes, *, last: bool = False) -> None:
        await self._send({"type": "http.response.body", "body": text, "more_body": not last})


async def while_connected(receive: Receive, work: Coroutine[object, object, None]) -> None:
    """Do `work` until it is done or the client goes away, which cancels it and waits until it has ended.

    Raises what it raises.
    """
    working = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait((working, gone), return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone.cancel()
        working.cancel()
        await asyncio.wait((working, gone))
    if not working.cancelled():
        working.result()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue
