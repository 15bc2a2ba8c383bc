"""A real uvicorn on loopback with the gateway's wall and bounds, and clients that speak bytes."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from xclaw.gateway.connections import ConnectionConfig, GatewayWebSocket
from xclaw.gateway.guards import Guards, identity_of
from xclaw.gateway.settings import GatewaySettings
from xclaw.gateway.tokens import TokenBook

MASK = b"\0\0\0\0"


@dataclass(slots=True)
class Seen:
    """What reached the app behind the wall."""

    requests: list[str] = field(default_factory=list[str])
    messages: list[str] = field(default_factory=list[str])
    dropped: int = 0
    has_dropped: asyncio.Event = field(default_factory=asyncio.Event)

    def drop(self) -> None:
        self.dropped += 1
        self.has_dropped.set()


@dataclass(slots=True)
class Served:
    port: int
    token: str
    book: TokenBook
    seen: Seen
    server: uvicorn.Server

    @property
    def host(self) -> str:
        return f"Host: localhost:{self.port}"

    @property
    def bearer(self) -> str:
        return f"Authorization: Bearer {self.token}"


async def health(_request: Request) -> PlainTextResponse:
    return PlainTextResponse("ok")


async def echo(request: Request) -> JSONResponse:
    seen_by(request.app).requests.append(request.url.path)
    body = await request.body()
    return JSONResponse({"user": identity_of(request.scope).user, "length": len(body)})


async def flood(_request: Request) -> StreamingResponse:
    async def parts() -> AsyncGenerator[bytes]:
        while True:
            await asyncio.sleep(0)  # what is sent to nobody does not wait
            yield b"x" * 65_536

    return StreamingResponse(parts(), media_type="text/event-stream")


async def breaks(_request: Request) -> JSONResponse:
    raise RuntimeError("a secret of the inside")


async def talk(websocket: WebSocket) -> None:
    seen = seen_by(websocket.app)
    await websocket.accept()
    await websocket.send_text(identity_of(websocket.scope).user)
    try:
        while True:
            seen.messages.append(await websocket.receive_text())
            await websocket.send_text(f"heard {len(seen.messages)}")
    except WebSocketDisconnect:
        return


async def flood_websocket(websocket: WebSocket) -> None:
    await websocket.accept()
    while True:
        await websocket.send_text("x" * 65_536)


async def falls(websocket: WebSocket) -> None:
    await websocket.accept()
    raise RuntimeError("a secret of the inside")


def app_of(seen: Seen) -> Starlette:
    app = Starlette(
        routes=[
            Route("/healthz", health),
            Route("/runs", echo, methods=["GET", "POST", "DELETE"]),
            Route("/v1/chat/completions", echo, methods=["POST"]),
            Route("/flood", flood),
            Route("/breaks", breaks),
            WebSocketRoute("/ws", talk),
            WebSocketRoute("/ws-flood", flood_websocket),
            WebSocketRoute("/falls", falls),
        ]
    )
    app.state.seen = seen
    return app


def seen_by(app: Any) -> Seen:
    return cast("Seen", app.state.seen)


@asynccontextmanager
async def served(
    home: Path, ws: type[asyncio.Protocol] = GatewayWebSocket, **settings: Any
) -> AsyncGenerator[Served]:
    """A gateway's outside, as long as the block lasts."""
    book = TokenBook(home / "gateway-token", home / "tokens.json")
    token, _ = book.ensure()
    seen = Seen()
    chosen = GatewaySettings(port=0, drain_s=1, **settings)
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    guards = Guards(app_of(seen), chosen, book)
    config = ConnectionConfig(guards, chosen, seen.drop)
    config.ws = ws
    server = uvicorn.Server(config)
    failure: Exception | None = None
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(server.serve(sockets=[listener]))
        try:
            yield Served(listener.getsockname()[1], token, book, seen, server)
        except Exception as error:  # noqa: BLE001  # raised below
            failure = error
        server.should_exit = True
    if failure is not None:
        raise failure


def head(path: str, *headers: str, method: str = "GET") -> bytes:
    """The head of a request. Without a Host among the headers, a plain one is added."""
    named = any(header.startswith("Host:") for header in headers)
    lines = [f"{method} {path} HTTP/1.1", *(() if named else ("Host: localhost",)), *headers, "", ""]
    return "\r\n".join(lines).encode("latin-1")


def upgrade(*headers: str, path: str = "/ws") -> bytes:
    """A WebSocket's handshake."""
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
    ours = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", key)
    return head(path, *ours, *headers)


def posted(path: str, body: bytes, *headers: str, media_type: str = "application/json") -> bytes:
    sent = (f"Content-Type: {media_type}", f"Content-Length: {len(body)}", *headers)
    return head(path, *sent, method="POST") + body


@dataclass(slots=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def error(self) -> dict[str, object]:
        return cast("dict[str, dict[str, object]]", json.loads(self.body))["error"]


class Client:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self) -> Answer:
        """One response."""
        raw = await self.reader.readuntil(b"\r\n\r\n")
        first, *lines = raw.decode("latin-1").rstrip().split("\r\n")
        pairs = [line.partition(": ") for line in lines]
        headers = {name.lower(): value for name, _, value in pairs}
        body = await self.reader.readexactly(int(headers.get("content-length", "0")))
        return Answer(int(first.split()[1]), headers, body)

    async def frame(self) -> tuple[int, bytes]:
        """Opcode and payload of the next WebSocket frame."""
        first, second = await self.reader.readexactly(2)
        length = second
        if length == 126:
            length = int.from_bytes(await self.reader.readexactly(2), "big")
        elif length == 127:
            length = int.from_bytes(await self.reader.readexactly(8), "big")
        return first & 0x0F, await self.reader.readexactly(length)

    async def close_code(self) -> int:
        """The code of the next close frame; 1006 when the connection ends without one."""
        try:
            while True:
                opcode, payload = await self.frame()
                if opcode == 8:
                    return int.from_bytes(payload[:2], "big")
        except (asyncio.IncompleteReadError, ConnectionError):
            return 1006

    async def rest(self) -> bytes:
        """Everything until the connection ends."""
        return await self.reader.read()


@asynccontextmanager
async def connected(gateway: Served) -> AsyncGenerator[Client]:
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    try:
        yield Client(reader, writer)
    finally:
        writer.close()


async def asked(gateway: Served, request: bytes) -> Answer:
    """The answer to one request on a connection of its own."""
    async with connected(gateway) as client, asyncio.timeout(10):
        await client.send(request)
        return await client.answer()


def masked(opcode: int, payload: bytes, *, fin: bool = True) -> bytes:
    """A client's frame."""
    first = (0x80 if fin else 0) | opcode
    if len(payload) < 126:
        return bytes([first, 0x80 | len(payload)]) + MASK + payload
    return bytes([first, 0x80 | 127]) + len(payload).to_bytes(8, "big") + MASK + payload


async def talking(client: Client, gateway: Served) -> None:
    """Open the WebSocket, up to its first message."""
    await client.send(upgrade(gateway.bearer))
    assert (await client.answer()).status == 101
    assert await client.frame() == (1, b"owner")


def run_served(home: Path, body: Callable[[Served], Any], **settings: Any) -> None:
    async def main() -> None:
        async with served(home, **settings) as gateway:
            await body(gateway)

    asyncio.run(main())
