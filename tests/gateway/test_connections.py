"""Clients that are half open, malformed, endless or deaf: each costs little, and is told why."""

import asyncio
import socket
from contextlib import suppress
from pathlib import Path

import pytest

from gateway.guarded_server import (
    Client,
    Served,
    asked,
    connected,
    head,
    masked,
    posted,
    run_served,
    talking,
    upgrade,
)
from xclaw.gateway.channels.line import LineProtocol
from xclaw.gateway.connections import GatewayWebSocket

SOCKETS = pytest.mark.parametrize("ws", [GatewayWebSocket, LineProtocol])


async def trickle(client: Client) -> None:
    """Byte by byte, for as long as somebody takes them."""
    with suppress(ConnectionError):
        while True:
            await client.send(b"x")
            await asyncio.sleep(0)


async def is_well(gateway: Served) -> bool:
    return (await asked(gateway, head("/runs", gateway.bearer))).status == 200


@pytest.mark.parametrize("sent", [b"", b"G", b"GET /runs HTTP/1.1\r\nHost: localhost\r\n"])
def test_a_head_that_does_not_come_is_given_up(sent: bytes, tmp_path: Path) -> None:
    async def body(gateway: Served) -> None:
        async with connected(gateway) as client, asyncio.timeout(5):
            await client.send(sent)
            answer = await client.answer()
            assert (answer.status, answer.error["code"]) == (408, "head_timeout")
            assert answer.headers["connection"] == "close"
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert await client.rest() == b""
        assert await is_well(gateway)

    run_served(tmp_path, body, header_timeout_s=0.1)


def test_a_head_that_comes_byte_by_byte_is_given_up_also_the_second_on_a_connection(tmp_path: Path) -> None:
    async def body(gateway: Served) -> None:
        begun = b"GET /runs HTTP/1.1\r\nHost: localhost\r\nX: "
        for first in (b"", head("/healthz")):
            async with connected(gateway) as client, asyncio.timeout(8), asyncio.TaskGroup() as group:
                if first:
                    await client.send(first)
                    assert (await client.answer()).status == 200
                await client.send(begun)
                sending = group.create_task(trickle(client))
                assert (await client.answer()).status == 408
                sending.cancel()

    run_served(tmp_path, body, header_timeout_s=0.2)


def test_a_request_that_takes_long_to_answer_is_not_given_up(tmp_path: Path) -> None:
    """The deadline is for what the client owes, not for what the gateway does."""

    async def body(gateway: Served) -> None:
        async with connected(gateway) as client, asyncio.timeout(5):
            await client.send(head("/flood", gateway.bearer))
            await client.reader.readuntil(b"\r\n\r\n")
            end = asyncio.get_running_loop().time() + 0.4
            while asyncio.get_running_loop().time() < end:
                assert await client.reader.read(65_536)
        async with connected(gateway) as client, asyncio.timeout(5):
            await talking(client, gateway)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.frame(), 0.3)
            await client.send(masked(1, b"still here"))
            assert await client.frame() == (1, b"heard 1")

    run_served(tmp_path, body, header_timeout_s=0.1)


def test_a_body_that_goes_on_after_its_refusal_is_read_for_a_while_only(tmp_path: Path) -> None:
    async def body(gateway: Served) -> None:
        for sent in (
            head("/runs", "Content-Length: 100000000", "Content-Type: application/json", method="POST"),
            head("/runs", "Transfer-Encoding: chunked", method="POST") + b"ffffff\r\n",
        ):
            async with connected(gateway) as client, asyncio.timeout(8), asyncio.TaskGroup() as group:
                await client.send(sent)
                assert (await client.answer()).status == 401
                sending = group.create_task(trickle(client))
                with suppress(ConnectionError):
                    assert await client.rest() == b""
                sending.cancel()

    run_served(tmp_path, body, header_timeout_s=0.2)


@SOCKETS
def test_there_is_an_end_to_the_number_of_connections(ws: type[asyncio.Protocol], tmp_path: Path) -> None:
    async def body(gateway: Served) -> None:
        async with connected(gateway) as one, connected(gateway) as two, asyncio.timeout(5):
            await talking(one, gateway)
            await two.send(head("/runs", gateway.bearer))
            assert (await two.answer()).status == 200
            for _ in range(3):
                async with connected(gateway) as third:
                    answer = await third.answer()
                    assert (answer.status, answer.error["code"]) == (503, "too_many_connections")
            await one.send(masked(1, b"goes on"))
            assert await one.frame() == (1, b"heard 1")
            await one.send(masked(8, b"\x03\xe8"))
            assert await one.close_code() == 1000
            await one.rest()
        assert await is_well(gateway)

    run_served(tmp_path, body, ws=ws, max_connections=2)


@pytest.mark.parametrize(
    "sent",
    [
        b"\0" * 100,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\xaa" * 200,
        b"GET\r\n\r\n",
        b"GET /runs HTTP/1.1\r\n\r\n",
        b"GET /runs HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /runs HTTP/1.1\r\nHost: localhost\r\nbad header\r\n\r\n",
        b"GET /runs HTTP/1.1\r\nHost: localhost\r\nA: \0\r\n\r\n",
        head("/runs", "Content-Length: -1", method="POST"),
        head("/runs", "Content-Length: 1e9", method="POST"),
        head("/runs", "Content-Length: 1", "Content-Length: 2", method="POST"),
        head("/runs", "Transfer-Encoding: gzip", method="POST"),
        head("/runs", "X: " + "x" * 70_000)[:-4],
        head("/" + "x" * 70_000)[:-30],
    ],
)
def test_what_is_no_http_is_told_so(sent: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def body(gateway: Served) -> None:
        async with connected(gateway) as client, asyncio.timeout(5):
            await client.send(sent)
            answer = await client.answer()
            assert (answer.status, answer.error["code"]) == (400, "bad_request")
            assert await client.rest() == b""
        assert await is_well(gateway)

    run_served(tmp_path, body)
    assert caplog.text == ""


def test_a_body_that_is_malformed_ends_the_connection_before_and_after_the_answer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def body(gateway: Served) -> None:
        chunked = ("Transfer-Encoding: chunked", "Content-Type: application/json")
        async with connected(gateway) as client, asyncio.timeout(5):
            await client.send(head("/runs", *chunked, gateway.bearer, method="POST") + b"zz\r\n")
            assert (await client.answer()).status == 400
            assert await client.rest() == b""
        async with connected(gateway) as client, asyncio.timeout(5):
            await client.send(head("/runs", *chunked, method="POST") + b"1\r\nx\r\n")
            assert (await client.answer()).status == 401
            await client.send(b"zz\r\n")
            assert b"HTTP/1.1 2" not in await client.rest()
        async with connected(gateway) as client, asyncio.timeout(5):
            await client.send(posted("/runs", b"{}", gateway.bearer)[:-1])
            client.writer.write_eof()
            await client.rest()
        assert await is_well(gateway)
        assert gateway.seen.requests == ["/runs"]

    run_served(tmp_path, body)
    assert caplog.text == ""


MALFORMED = {
    "not masked": (b"\x81\x02hi", 1002),
    "reserved bit": (b"\xc1\x80\0\0\0\0", 1002),
    "reserved opcode": (masked(3, b""), 1002),
    "long ping": (bytes([0x89, 0xFE, 0, 200]) + b"\0" * 204, 1002),
    "cut ping": (masked(9, b"", fin=False), 1002),
    "continues nothing": (masked(0, b"x"), 1002),
    "begins twice": (masked(1, b"x", fin=False) + masked(1, b"x"), 1002),
    "not UTF-8": (masked(1, b"\xff\xfe"), 1007),
    "close of one byte": (masked(8, b"\x03"), 1002),
    "close without reason": (masked(8, b"\x00\x01"), 1002),
    "too long": (bytes([0x81, 0xFF]) + (100_000_000).to_bytes(8, "big") + b"\0" * 4, 1009),
    "far too long": (bytes([0x81, 0xFF]) + (2**63 - 1).to_bytes(8, "big") + b"\0" * 4, 1009),
    "impossibly long": (bytes([0x81, 0xFF]) + b"\xff" * 8 + b"\0" * 4, 1009),
    "too long in parts": (masked(1, b"x" * 600, fin=False) + masked(0, b"x" * 600), 1009),
    "garbage": (b"\xff" * 64, 1002),
}


@SOCKETS
@pytest.mark.parametrize(("sent", "code"), MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_frame_is_answered_with_its_code(
    sent: bytes, code: int, ws: type[asyncio.Protocol], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def body(gateway: Served) -> None:
        async with connected(gateway) as other, connected(gateway) as client, asyncio.timeout(5):
            await talking(other, gateway)
            await talking(client, gateway)
            await client.send(sent)
            assert await client.close_code() == code
            await client.rest()
            await other.send(masked(1, b"not affected"))
            assert await other.frame() == (1, b"heard 1")
        assert gateway.seen.messages == ["not affected"]

    run_served(tmp_path, body, ws=ws, max_message_bytes=1_000)
    assert caplog.text == ""


@SOCKETS
def test_a_message_of_a_hundred_megabytes_is_told_to_be_too_long(
    ws: type[asyncio.Protocol], tmp_path: Path
) -> None:
    async def body(gateway: Served) -> None:
        async with connected(gateway) as client, asyncio.timeout(20), asyncio.TaskGroup() as group:
            await talking(client, gateway)

            async def send_all() -> None:
                await client.send(bytes([0x81, 0xFF]) + (100_000_000).to_bytes(8, "big") + b"\0" * 4)
                try:
                    for _ in range(100):
                        await client.send(b"x" * 1_000_000)
                except ConnectionError:
                    return

            group.create_task(send_all())
            assert await client.close_code() == 1009
        assert await is_well(gateway)
        assert gateway.seen.messages == []

    run_served(tmp_path, body, ws=ws)


@SOCKETS
def test_a_message_of_the_longest_length_arrives(ws: type[asyncio.Protocol], tmp_path: Path) -> None:
    async def body(gateway: Served) -> None:
        async with connected(gateway) as client, asyncio.timeout(5):
            await talking(client, gateway)
            await client.send(masked(1, b"x" * 500, fin=False) + masked(9, b"") + masked(0, b"y" * 500))
            assert await client.frame() == (10, b"")
            assert await client.frame() == (1, b"heard 1")
        assert gateway.seen.messages == ["x" * 500 + "y" * 500]

    run_served(tmp_path, body, ws=ws, max_message_bytes=1_000)


@SOCKETS
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([f"X-{number}: x" for number in range(200)], 431),
        (["X: " + "x" * 10_000], 431),
        (["Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="], 400),
        (["Sec-WebSocket-Version: 12"], 400),
        (["Sec-WebSocket-Protocol: a b, ,;"], 400),
    ],
)
def test_a_handshake_that_is_none_is_told_so(
    headers: list[str], status: int, ws: type[asyncio.Protocol], tmp_path: Path
) -> None:
    async def body(gateway: Served) -> None:
        async with connected(gateway) as client, asyncio.timeout(5):
            await client.send(upgrade(gateway.bearer, *headers))
            answer = await client.answer()
            assert (answer.status, answer.error["code"]) == (status, "no_websocket")
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert await client.rest() == b""
        assert await is_well(gateway)

    run_served(tmp_path, body, ws=ws)


@SOCKETS
def test_frames_before_the_handshake_is_answered_break_nothing(
    ws: type[asyncio.Protocol], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def body(gateway: Served) -> None:
        for frames in (b"\x81\x02hi", b"\xff" * 40, masked(1, b"early"), masked(8, b"")):
            for after in (b"", b"GET /runs HTTP/1.1\r\n\r\n"):
                async with connected(gateway) as client, asyncio.timeout(5):
                    client.writer.write(upgrade(gateway.bearer) + after)
                    await asyncio.sleep(0)
                    await client.send(frames)
                    client.writer.write_eof()
                    await client.rest()
        assert await is_well(gateway)

    run_served(tmp_path, body, ws=ws)
    assert caplog.text == ""


@SOCKETS
def test_a_client_that_answers_no_ping_is_dropped(ws: type[asyncio.Protocol], tmp_path: Path) -> None:
    async def body(gateway: Served) -> None:
        async with connected(gateway) as deaf, connected(gateway) as well, asyncio.timeout(5):
            await talking(deaf, gateway)
            await talking(well, gateway)
            for _ in range(3):
                opcode, payload = await well.frame()
                assert opcode == 9
                await well.send(masked(10, payload))
            assert await deaf.close_code() == 1011
            await well.send(masked(1, b"still here"))
            while (heard := await well.frame())[0] != 1:
                assert heard[0] == 9
            assert heard == (1, b"heard 1")

    run_served(tmp_path, body, ws=ws, keepalive_s=0.1, stall_s=0.2)


@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_a_client_that_reads_nothing_is_dropped_and_one_that_reads_slowly_is_not(
    kind: str, tmp_path: Path
) -> None:
    async def body(gateway: Served) -> None:
        ask = head("/flood", gateway.bearer) if kind == "http" else upgrade(gateway.bearer, path="/ws-flood")
        async with connected(gateway) as slow, asyncio.timeout(20), asyncio.TaskGroup() as group:
            stop = asyncio.Event()

            async def read_slowly() -> None:
                await slow.send(ask)
                while not stop.is_set():
                    assert await slow.reader.read(65_536)
                    with suppress(TimeoutError):
                        await asyncio.wait_for(stop.wait(), 0.01)

            reading = group.create_task(read_slowly())
            raw = socket.create_connection(("127.0.0.1", gateway.port))
            with raw:
                raw.sendall(ask)
                await gateway.seen.has_dropped.wait()
            stop.set()
            await reading
            assert gateway.seen.dropped == 1
        assert await is_well(gateway)

    run_served(tmp_path, body, stall_s=0.5)
