"""One request and its answer over an HTTP connection, for as long as the client is there.

The run is the client's: it ends when the client goes away, whether it was being streamed to or not.
"""

import asyncio
from collections.abc import Coroutine
from typing import Protocol

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from xclaw.contracts.channels import Wishes
from xclaw.contracts.errors import UsageError
from xclaw.contracts.messages import Message
from xclaw.gateway.gateway import Gateway
from xclaw.gateway.protocols.openai.answer import Answer
from xclaw.gateway.protocols.openai.ask import Ask
from xclaw.gateway.protocols.openai.live_answer import LiveAnswer
from xclaw.gateway.protocols.openai.refused import Refused, refusal_response, refused_by_usage
from xclaw.gateway.protocols.openai.transcript import Piece
from xclaw.runtime.runs import RunHandle

CHANNEL = "openai"
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
        live = LiveAnswer(self._start)
        try:
            await live.begin(self._ask)
            if self._ask.is_streamed:
                await _Stream(self._form, send, self._keepalive_s).send_all(live)
            else:
                await (await self._whole(live))(scope, receive, send)
        except Refused as refused:
            await refusal_response(refused)(scope, receive, send)
        finally:
            await live.end()

    async def _start(self, ask: Ask) -> RunHandle:
        message = Message("", "", CHANNEL, ask.text, 0.0)
        try:
            return await self._gateway.converse(
                message, Wishes(agent=ask.agent), ask.brought, user=self._user
            )
        except UsageError as error:
            raise refused_by_usage(error, closing=self._gateway.closing) from None

    async def _whole(self, live: LiveAnswer) -> Response:
        answer = None
        while answer is None:
            await live.wait(self._keepalive_s)
            await live.take()
            answer = await live.settle()
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
        """Raises `Refused` while nothing has been sent."""
        try:
            answer = await self._send_until_settled(live)
        except Refused as refused:
            if not self._has_begun:
                raise
            await self._write(self._form.fail(refused), last=True)
            return
        await self._send_pieces(await live.take())
        await self._begin()
        await self._write(self._form.end(answer), last=True)

    async def _send_until_settled(self, live: LiveAnswer) -> Answer:
        while True:
            if await live.wait(self._keepalive_s):
                await self._send_pieces(await live.take())
            else:
                await self._begin()
                await self._write(KEEP_ALIVE)
            answer = await live.settle()
            if answer is not None:
                return answer

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
