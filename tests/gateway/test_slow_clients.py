"""Clients that do not read: they cost a bounded amount, slow nobody down, and are told why they are dropped."""

import asyncio
import base64
import json
import os
import signal
import socket
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from behaviour.harness import settings_for
from gateway.served import Served, served, with_gateway
from xclaw.gateway.channels.line import LINE, Line, LineProtocol
from xclaw.gateway.connections import ConnectionConfig, GatewayHttp
from xclaw.gateway.settings import GatewaySettings
from xclaw.gateway.wire import DeltaFrame, EventFrame, Ping, ReplyFrame, encode

LONG = "a word and another " * 400_000


def run(
    home: Path, scenario: Callable[[Served], Awaitable[None]], text: str = LONG, **gateway: object
) -> None:
    async def main() -> None:
        script = home / "script.json"  # which is read quicker than YAML
        script.write_text(json.dumps([{"agent": "orchestrator", "replies": [{"text": text}]}]))
        settings = with_gateway(settings_for(home, f"script:{script}"), **gateway)
        async with asyncio.timeout(40), served(settings) as gate:
            await scenario(gate)

    asyncio.run(main())


async def until_dropped(gate: Served) -> None:
    """As the gateway's own figures tell it."""
    while "xclaw_slow_clients_total 1.0" not in gate.gateway.metrics.render().decode():  # noqa: ASYNC110 - no event
        await asyncio.sleep(0.01)


def test_a_client_that_reads_nothing_is_told_and_dropped_and_slows_nobody(tmp_path: Path) -> None:
    """G03: and it gets everything when it comes back with the last id that it has."""

    async def scenario(gate: Served) -> None:
        async with gate.client() as stalled, gate.client() as quick:
            await stalled.watch("s")
            await quick.watch("s")
            began = time.monotonic()
            await quick.say("s", "go")
            expected = await quick.to_reply()
            took = time.monotonic() - began
            await until_dropped(gate)
            assert await stalled.to_close() == 4008
        assert took < 10
        async with gate.client() as back:
            await back.watch("s", 0)
            assert await back.to_reply() == expected

    run(tmp_path, scenario, stall_s=0.3)


def test_a_client_that_reads_nothing_holds_no_stop_up(tmp_path: Path) -> None:
    async def scenario(gate: Served) -> None:
        async with gate.client() as stalled, gate.client() as quick:
            await stalled.watch("s")
            await quick.watch("s")
            await quick.say("s", "go")
            await quick.to_reply()
            os.kill(os.getpid(), signal.SIGTERM)
            async with asyncio.timeout(5):
                await gate.serving

    run(tmp_path, scenario, drain_s=30)


def test_a_client_that_answers_no_ping_is_dropped(tmp_path: Path) -> None:
    """The other side of a half-open connection."""

    async def scenario(gate: Served) -> None:
        loop = asyncio.get_running_loop()
        host, port = gate.host.split(":")
        with socket.socket() as silent:
            silent.setblocking(False)
            await loop.sock_connect(silent, (host, int(port)))
            await loop.sock_sendall(silent, handshake(gate.headers()))
            received = b""
            while part := await loop.sock_recv(silent, 65_536):
                received += part
            assert received.endswith((1011).to_bytes(2, "big") + b"keepalive ping timeout")

    run(tmp_path, scenario, "short", keepalive_s=0.1, stall_s=0.1)


def handshake(headers: dict[str, str]) -> bytes:
    key = base64.b64encode(b"0" * 16).decode()
    lines = [
        "GET /ws HTTP/1.1",
        "Host: localhost",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Version: 13",
        f"Sec-WebSocket-Key: {key}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode()


def test_a_client_that_reads_slowly_is_not_dropped(tmp_path: Path) -> None:
    """It gets fewer, longer pieces of streamed text, and all that is stored."""

    async def scenario(gate: Served) -> None:
        async with gate.client() as slow, gate.client() as quick:
            await slow.watch("s")
            await quick.watch("s")
            await quick.say("s", "go")
            expected = await quick.to_reply()
            seen: list[EventFrame | ReplyFrame] = []
            text = ""
            while not seen or not isinstance(seen[-1], ReplyFrame):
                await asyncio.sleep(0.01)
                frame = await slow.next()
                if isinstance(frame, DeltaFrame):
                    assert frame.offset == len(text)
                    text += frame.content
                elif isinstance(frame, EventFrame | ReplyFrame):
                    seen.append(frame)
            assert seen == expected

    run(tmp_path, scenario, "a word and another " * 20_000, stall_s=0.3, outlet_bytes=4096)


def test_a_client_that_sends_and_never_reads_is_not_listened_to_any_more(tmp_path: Path) -> None:
    """Answers do not pile up: it can send only as much as the answers that the sockets hold."""

    async def scenario(gate: Served) -> None:
        ping = encode(Ping(ref="x" * 400_000))
        async with gate.client() as flooding, gate.client() as other:
            sent = 0
            with suppress(TimeoutError):
                async with asyncio.timeout(1):
                    while sent < 60:
                        await flooding.socket.send(ping)
                        sent += 1
            assert sent < 60
            await until_dropped(gate)
            assert await flooding.to_close() == 4008
            await other.say("s", "go")

    run(tmp_path, scenario, "short", stall_s=2)


def test_pings_that_nobody_waits_for_cost_nothing() -> None:
    """Pongs to a client that does not read are left out, as the protocol allows."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        lines.append(scope["extensions"][LINE])
        await receive()

    lines: list[Line] = []

    async def main() -> None:
        settings = GatewaySettings(outlet_bytes=65_536)
        config = ConnectionConfig(app, settings, lambda: None)
        config.ws = LineProtocol
        config.lifespan = "off"
        config.load()
        state = ServerState()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: GatewayHttp(config, state, {}), "127.0.0.1", 0)
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.setblocking(False)
        async with server, asyncio.timeout(30):
            await loop.sock_connect(client, server.sockets[0].getsockname())
            await loop.sock_sendall(client, handshake({}))
            await loop.sock_recv(client, 1000)
            assert not lines[0].full
            ping = b"\x89\xfd\0\0\0\0" + b"p" * 125
            for _ in range(60):
                await loop.sock_sendall(client, ping * 1000)
                assert lines[0].unsent_bytes < 400_000
            assert lines[0].full
            lines[0].hang_up(1001, "")
            client.close()
            await asyncio.wait(state.tasks)

    asyncio.run(main())
