"""An OpenAI-compatible provider that answers what it is told, as a server in this process or its own.

    async with FakeProvider() as provider:
        provider.queue(Text("hello"), Status(503), Raw(delta("hal"), Cut()))
        ...                       # point a model at provider.url
        assert provider.requests[0].body["model"] == "some-model"

As its own process: `python -m xclaw.testing.fake_provider --rules FILE.json --latency-ms N --chunks N`
prints `{"url": "http://127.0.0.1:PORT/v1"}` and serves until it is ended. The rules file is described
in `xclaw.testing.fake_rules`. `GET /stats` answers

    {"requests": asked, "finished": answered whole, "abandoned": the client went away,
     "connections": opened, "by_messages": {SHA256: finished}, "by_last_user": {SHA256: finished}}

where the keys are the SHA-256 of the request's whole `messages` array (keys sorted, no spaces), and of
the text of its last user message: a call that is paid for twice has a 2. `POST /reset` sets all to 0.
"""

import argparse
import asyncio
import signal
import sys
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
from aiohttp import StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import RawRequestMessage

from xclaw.contracts.errors import UsageError
from xclaw.testing.fake_replies import (
    DONE,
    Calls,
    Cut,
    Hang,
    Pause,
    Raw,
    Reply,
    Status,
    Text,
    Until,
    delta,
    sse,
    usage_chunk,
)
from xclaw.testing.fake_rules import FakeRules
from xclaw.testing.fake_sending import send_reply
from xclaw.testing.fake_stats import Stats

__all__ = [
    "DONE",
    "Calls",
    "Cut",
    "FakeProvider",
    "Hang",
    "Pause",
    "Raw",
    "RecordedRequest",
    "Reply",
    "Status",
    "Text",
    "Until",
    "delta",
    "sse",
    "usage_chunk",
]

MAX_BODY_BYTES = 256 * 1024 * 1024
END_S = 1.0
"""How long a dropped connection's handler may take to end."""

Answer = Callable[[dict[str, object]], Reply]


@dataclass(eq=False, slots=True)
class RecordedRequest:
    """One request as it came in, and how it ended: exactly one of the events is set in the end."""

    body: dict[str, object]
    headers: Mapping[str, str]
    path: str
    at: float
    """`loop.time()` when its body was complete."""
    client_port: int
    """Tells the connections apart."""
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    """The client went away before the answer was complete."""
    finished: asyncio.Event = field(default_factory=asyncio.Event)
    """The answer was sent as planned, a planned cut included."""
    ended_at: float | None = None
    """`loop.time()` of either."""


class FakeProvider:
    """A server of the chat-completions wire on a free port of 127.0.0.1.

    Queued replies go first, in order; then `answer_with`'s function answers; with neither, the answer
    is a 400 that says so. Leaving the context drops every connection at once, and raises what the
    function raised, if it did (its request got a 500).
    """

    def __init__(self, *, port: int = 0, latency_s: float = 0.0, record: bool = True) -> None:
        """`latency_s` passes before each answer; without `record` requests are only counted."""
        self.requests: list[RecordedRequest] = []
        self.stats = Stats()
        self.url = ""
        self._port = port
        self._latency_s = latency_s
        self._record = record
        self._queue: deque[Reply] = deque()
        self._answer: Answer = _nothing_queued
        self._failure: Exception | None = None
        self._arrived = asyncio.Condition()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        server = web.Server(
            self._handle, request_factory=_request, handler_cancellation=True, access_log=None
        )

        def connected() -> asyncio.Protocol:
            self.stats.connections += 1
            return server()

        listener = await asyncio.get_running_loop().create_server(connected, "127.0.0.1", self._port)
        self._stack.push_async_callback(_end, server, listener)
        self.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()
        if self._failure is not None and kind is None:
            raise self._failure

    @property
    def connections(self) -> int:
        """Opened so far."""
        return self.stats.connections

    def queue(self, *replies: Reply) -> None:
        """Answer the next requests with these, in the order in which they arrive."""
        self._queue.extend(replies)

    def answer_with(self, answer: Answer) -> None:
        """Answer by the request's body whenever the queue is empty."""
        self._answer = answer

    async def wait_requests(self, count: int) -> list[RecordedRequest]:
        """Wait until `count` requests have arrived since the start; answers all there are."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: len(self.requests) >= count)
        return self.requests

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method == "POST" and request.path.endswith("/chat/completions"):
            return await self._complete(request)
        if request.path == "/stats":
            return web.json_response(body=self.stats.as_json())
        if request.method == "POST" and request.path == "/reset":
            self.stats.reset()
            return web.json_response({})
        if request.path.endswith("/models"):
            return web.json_response({"object": "list", "data": [{"id": "fake-model", "object": "model"}]})
        return web.json_response({"error": {"message": f"no such path: {request.path}"}}, status=404)

    async def _complete(self, request: web.BaseRequest) -> web.StreamResponse:
        loop = asyncio.get_running_loop()
        try:
            body = msgspec.json.decode(await request.read(), type=dict[str, object])
        except msgspec.DecodeError as error:
            return web.json_response(
                {"error": {"message": f"the body is no JSON object: {error}"}}, status=400
            )
        peer: tuple[str, int] = request.get_extra_info("peername", ("", 0))
        recorded = RecordedRequest(body, request.headers.copy(), request.path, loop.time(), peer[1])
        await self._note(recorded)
        try:
            if self._latency_s:
                await asyncio.sleep(self._latency_s)
            reply = self._queue.popleft() if self._queue else self._answered(body)
            response = await send_reply(request, reply, body)
        except (asyncio.CancelledError, ConnectionError):
            recorded.ended_at = loop.time()
            recorded.closed.set()
            self.stats.abandoned += 1
            raise
        recorded.ended_at = loop.time()
        recorded.finished.set()
        self.stats.finish(body.get("messages"))
        return response

    async def _note(self, recorded: RecordedRequest) -> None:
        self.stats.requests += 1
        if self._record:
            async with self._arrived:
                self.requests.append(recorded)
                self._arrived.notify_all()

    def _answered(self, body: dict[str, object]) -> Reply:
        try:
            return self._answer(body)
        except Exception as error:
            self._failure = error
            raise


def _request(
    message: RawRequestMessage,
    payload: StreamReader,
    protocol: web.RequestHandler,
    writer: AbstractStreamWriter,
    task: "asyncio.Task[None]",
) -> web.BaseRequest:
    """Without aiohttp's limit of one megabyte a request."""
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=MAX_BODY_BYTES)


async def _end(server: web.Server, listener: asyncio.Server) -> None:
    """Drop every connection; a handler is cancelled when it loses its own."""
    listener.close()
    for connection in server.connections:
        connection.force_close()
    await server.shutdown(END_S)


def _nothing_queued(body: dict[str, object]) -> Reply:
    return Status(400, {"error": {"message": "FakeProvider: no reply is queued", "code": "nothing_queued"}})


async def _serve(rules: FakeRules, port: int, latency_s: float) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with FakeProvider(port=port, latency_s=latency_s, record=False) as provider:
        provider.answer_with(rules.answer)
        sys.stdout.write(msgspec.json.encode({"url": provider.url}).decode() + "\n")
        sys.stdout.flush()
        await ended.wait()


def main() -> int:
    """The command described at the top."""
    parser = argparse.ArgumentParser(prog="python -m xclaw.testing.fake_provider")
    parser.add_argument("--rules", type=Path, required=True, help="script file, YAML or JSON")
    parser.add_argument("--latency-ms", type=float, default=0.0, help="passes before each answer")
    parser.add_argument("--chunks", type=int, default=0, help="cut each text into about this many deltas")
    parser.add_argument("--port", type=int, default=0, help="default: a free one")
    options = parser.parse_args()
    try:
        rules = FakeRules.from_file(options.rules, options.chunks)
    except UsageError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    asyncio.run(_serve(rules, options.port, options.latency_ms / 1000))
    return 0


if __name__ == "__main__":
    sys.exit(main())
