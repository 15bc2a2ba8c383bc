"""An HTTP proxy for the commands of one sandbox: tunnels (CONNECT) and plain requests, to allowed hosts only.

Each connection is checked by itself, so a redirect leads nowhere that the list does not. What comes in is a
stranger's: bounded, and taken only if it can be read in one way.
"""

import asyncio
import contextlib
import re
import socket
from dataclasses import dataclass
from typing import Self, cast

from xclaw.sandbox.network.allowed import AllowedHosts

MAX_HEAD = 65_536
MAX_CONNECTIONS = 64
HEAD_S = 30.0
CONNECT_S = 20.0
IDLE_S = 300.0
_PIECE = 65_536
_AUTHORITY = re.compile(r"([A-Za-z0-9_.-]{1,253})(?::([0-9]{1,5}))?", re.ASCII)
_REQUEST = re.compile(r"([A-Z]{1,20}) (\S{1,8000}) HTTP/1\.[01]", re.ASCII)
_OWN_HEADERS = (b"connection:", b"proxy-connection:", b"proxy-authorization:", b"host:", b"keep-alive:")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a client asks for."""

    host: str
    port: int
    head: bytes
    """What goes to the host first; empty for a tunnel."""


class ProxyServer:
    """A proxy that listens, and its connections: none outlives it."""

    def __init__(self, server: asyncio.Server, proxy: "_Proxy") -> None:
        self._server = server
        self._proxy = proxy

    def close(self) -> None:
        self._server.close()
        self._proxy.end()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()
        await self._server.wait_closed()


async def serve_proxy(listening: socket.socket, allowed: AllowedHosts) -> ProxyServer:
    """Serve until it is closed."""
    listening.setblocking(False)
    proxy = _Proxy(allowed)
    return ProxyServer(await asyncio.start_server(proxy.serve, sock=listening, limit=MAX_HEAD), proxy)


def wanted_by(head: bytes) -> Wanted:
    """Raises `ValueError` for what is no request, or could be read in several ways."""
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    request = _REQUEST.fullmatch(first.decode("latin-1"))
    if request is None or any(b"\n" in line or b"\r" in line for line in lines):
        raise ValueError("that is no request")
    method, target = request[1], request[2]
    if method == "CONNECT":
        return Wanted(*_place(target, 443), b"")
    if not target.lower().startswith("http://"):
        raise ValueError("only http:// addresses and tunnels are passed on")
    authority, slash, path = target[7:].partition("/")
    authority, mark, query = authority.partition("?")
    host, port = _place(authority, 80)
    words = (
        f"{method} {slash or '/'}{mark}{query}{path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n"
    )
    kept = b"".join(line + b"\r\n" for line in lines if not line.lower().startswith(_OWN_HEADERS))
    return Wanted(host, port, words.encode("latin-1") + kept + b"\r\n")


def _place(authority: str, port: int) -> tuple[str, int]:
    found = _AUTHORITY.fullmatch(authority)
    if found is None:
        raise ValueError("the host is no name that could be in the list")
    number = int(found[2]) if found[2] else port
    if not 0 < number < 65_536:
        raise ValueError("there is no such port")
    return found[1], number


class _Proxy:
    def __init__(self, allowed: AllowedHosts) -> None:
        self._allowed = allowed
        self._open: set[asyncio.Task[None]] = set()

    def end(self) -> None:
        """End all connections at once, whatever is still on its way in them."""
        for serving in self._open:
            serving.cancel()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection from inside."""
        serving = cast("asyncio.Task[None]", asyncio.current_task())
        self._open.add(serving)
        try:
            if len(self._open) > MAX_CONNECTIONS:
                _refuse(writer, 503, "too many connections")
            else:
                await self._serve(reader, writer)
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            pass
        except asyncio.CancelledError:
            writer.transport.abort()
            raise
        finally:
            self._open.discard(serving)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(HEAD_S):
                wanted = wanted_by(await reader.readuntil(b"\r\n\r\n"))
        except (ValueError, asyncio.LimitOverrunError) as error:
            _refuse(writer, 400, str(error))
            return
        try:
            async with asyncio.timeout(CONNECT_S):
                places = await self._allowed.addresses(wanted.host, wanted.port)
                outer_reader, outer = await _connected(places)
        except PermissionError as error:
            _refuse(writer, 403, str(error))
            return
        except (OSError, TimeoutError) as error:
            _refuse(writer, 502, f"{wanted.host}: {error or 'no answer'}")
            return
        is_over = False
        try:
            if wanted.head:
                outer.write(wanted.head)
            else:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            async with asyncio.TaskGroup() as group:
                group.create_task(_pass_on(reader, outer))
                group.create_task(_pass_on(outer_reader, writer))
            is_over = True
        except* (OSError, TimeoutError):
            pass
        finally:
            if is_over:
                outer.close()
            else:
                outer.transport.abort()


async def _connected(places: list[tuple[str, int]]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    last: OSError = OSError("it has no address")
    for host, port in places:
        try:
            return await asyncio.open_connection(host, port)
        except OSError as error:
            last = error
    raise last


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        async with asyncio.timeout(IDLE_S):
            piece = await reader.read(_PIECE)
            if not piece:
                break
            writer.write(piece)
            await writer.drain()
    with contextlib.suppress(OSError):
        writer.write_eof()


def _refuse(writer: asyncio.StreamWriter, status: int, text: str) -> None:
    body = f"{text}\n".encode("utf-8", "replace")[:500]
    head = f"HTTP/1.1 {status} Refused\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    writer.write(head.encode() + body)
