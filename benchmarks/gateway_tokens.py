"""A provider that streams at a person's reading speed: each token is the time at which it was sent."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


def chunk(content: str, finish: str | None = None) -> bytes:
    choice: dict[str, object] = {"index": 0, "delta": {"content": content}, "finish_reason": finish}
    body: dict[str, object] = {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [choice],
    }
    return b"data: " + json.dumps(body, separators=(",", ":")).encode() + b"\n\n"


def stamp() -> str:
    """Microseconds of a clock that all processes of this machine share."""
    return f"{time.monotonic_ns() // 1000} "


def age_ms(token: str) -> float:
    return (time.monotonic_ns() // 1000 - int(token)) / 1000


class Stream(asyncio.Protocol):
    """One request: so many tokens, so many seconds apart."""

    def __init__(self, tokens: int, every_s: float) -> None:
        self._left = tokens
        self._every_s = every_s
        self._head = b""
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._timer is None:
            self._transport.write(HEAD)
            self._next_at = asyncio.get_running_loop().time()
            self._token()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _token(self) -> None:
        if not self._left:
            self._transport.write(chunk("", "stop") + b"data: [DONE]\n\n")
            self._transport.close()
            return
        self._left -= 1
        self._transport.write(chunk(stamp()))
        self._next_at += self._every_s
        self._timer = asyncio.get_running_loop().call_at(self._next_at, self._token)


@asynccontextmanager
async def token_provider(tokens: int, every_s: float) -> AsyncGenerator[str]:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Stream(tokens, every_s), "127.0.0.1", 0, backlog=1024)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
