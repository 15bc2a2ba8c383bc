"""A WebSocket to a gateway that outlives its connections: it is made again until its owner lets it go."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

import aiohttp

from xclaw.contracts.errors import UsageError, XclawError
from xclaw.gateway.wire import (
    WIRE_VERSION,
    BadFrame,
    ClientFrame,
    Hello,
    ServerFrame,
    decode_server,
    encode,
)

FIRST_WAIT_S = 0.05
LONGEST_WAIT_S = 5.0
TOLD_AFTER_S = 0.5
"""A gateway that answers sooner was never missed."""
HEARTBEAT_S = 20.0
CONNECT_S = 10.0
CLOSE_S = 1.0
"""A gateway that does not say goodbye for so long is left without."""
TOKEN_REVOKED = 4401
TOO_MANY_BAD_FRAMES = 1008
FATAL = {
    TOKEN_REVOKED: "the token was revoked or has expired. Ask for a new one, and set XCLAW_GATEWAY_TOKEN.",
    TOO_MANY_BAD_FRAMES: "the gateway did not understand this xclaw. Are both of the same version?",
}


@dataclass(frozen=True, slots=True)
class Reach:
    """Where a gateway is, and what lets one in."""

    url: str
    """Its root: http://127.0.0.1:8763"""
    token: str = field(repr=False)

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


class Listener(Protocol):
    """Hears what comes over the link. Called on the event loop; never blocks."""

    def connected(self, hello: Hello) -> None:
        """Up, for the first time or again: say now what must be said on every connection."""
        ...

    def heard(self, frame: ServerFrame) -> None: ...

    def cut(self) -> None:
        """The connection was lost; the next thing heard is `connected`."""
        ...


class Unreachable(XclawError):
    """The gateway could not be reached for as long as its client has patience."""


class GatewayLink:
    """Keeps one connection to whatever gateway `find` answers, which may start one."""

    def __init__(
        self,
        find: Callable[[], Awaitable[Reach]],
        listener: Listener,
        note: Callable[[str], None],
        patience_s: float | None = None,
    ) -> None:
        """`note` is told when the connection is missed and when it is back. `patience_s`: for how long
        it is tried again; None: for good."""
        self._find = find
        self._listener = listener
        self._note = note
        self._patience_s = patience_s
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self._outgoing: asyncio.Queue[ClientFrame] = asyncio.Queue()
        self._lost_at: float | None = None
        self._told = False

    @property
    def is_up(self) -> bool:
        return self._socket is not None

    def send(self, frame: ClientFrame) -> None:
        """Send soon, if the connection is up and stays so; what must arrive is said again when
        `connected` is called."""
        if self._socket is not None:
            self._outgoing.put_nowait(frame)

    async def keep(self) -> None:
        """Connect, listen, connect again, until cancelled.

        Raises `UsageError` for what trying again cannot cure, `Unreachable` when patience ends, and what
        `find` raises.
        """
        wait_s = FIRST_WAIT_S
        clock = asyncio.get_running_loop().time
        async with aiohttp.ClientSession() as http:
            while True:
                try:
                    if await self._connection(http):
                        wait_s = FIRST_WAIT_S
                except (aiohttp.ClientError, TimeoutError, OSError) as error:
                    self._missed(clock(), str(error) or type(error).__name__)
                await asyncio.sleep(wait_s * random.uniform(0.8, 1.2))  # so that clients do not come as one
                wait_s = min(LONGEST_WAIT_S, wait_s * 2)

    async def _connection(self, http: aiohttp.ClientSession) -> bool:
        """One connection until its end; whether it was of any use."""
        reach = await self._find()
        try:
            async with asyncio.timeout(CONNECT_S):
                socket = await http.ws_connect(
                    f"{reach.url}/ws",
                    headers=reach.headers,
                    heartbeat=HEARTBEAT_S,
                    max_msg_size=0,
                    timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_S),  # pyright: ignore[reportCallIssue] - attrs, made at run time
                )
        except aiohttp.WSServerHandshakeError as error:
            if error.status in (400, 401, 403, 404):
                raise UsageError(_refused(reach, error.status)) from None
            raise
        async with socket:
            hello = _greeting(await socket.receive(CONNECT_S))
            self._back()
            self._outgoing = asyncio.Queue()
            self._socket = socket
            self._listener.connected(hello)
            sender = asyncio.create_task(self._send_all(socket))
            try:
                await self._listen(socket)
            finally:
                self._socket = None
                sender.cancel()
                self._listener.cut()
        if socket.close_code in FATAL:
            raise UsageError(FATAL[socket.close_code])
        self._lost_at, self._told = asyncio.get_running_loop().time(), True
        self._note("the connection to the gateway was lost; connecting again")
        return True

    async def _send_all(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        while True:
            frame = await self._outgoing.get()
            try:
                await socket.send_str(encode(frame))
            except (aiohttp.ClientError, OSError):
                return  # the listening side notices

    async def _listen(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        async for message in socket:
            if message.type is not aiohttp.WSMsgType.TEXT:
                continue
            try:
                frame = decode_server(str(message.data))
            except BadFrame:
                continue  # of a newer gateway: what it has to say can be read from its journal
            self._listener.heard(frame)

    def _missed(self, now: float, why: str) -> None:
        if self._lost_at is None:
            self._lost_at = now
        lost_s = now - self._lost_at
        if not self._told and lost_s >= TOLD_AFTER_S:
            self._told = True
            self._note(f"the gateway cannot be reached ({why}); trying again")
        if self._patience_s is not None and lost_s > self._patience_s:
            raise Unreachable(f"the gateway could not be reached for {self._patience_s:.0f} s: {why}")

    def _back(self) -> None:
        if self._told:
            self._note("connected to the gateway again")
        self._lost_at, self._told = None, False


def _greeting(message: aiohttp.WSMessage) -> Hello:
    """The first frame. Raises `UsageError` unless it greets in our version."""
    if message.type is not aiohttp.WSMsgType.TEXT:
        raise aiohttp.ClientConnectionError("it closed the connection at once")
    try:
        hello = decode_server(str(message.data))
    except BadFrame as error:
        raise UsageError(f"this is no gateway of xclaw: {error}") from None
    if not isinstance(hello, Hello) or hello.v != WIRE_VERSION:
        theirs = hello.server if isinstance(hello, Hello) else "unknown"
        raise UsageError(
            f"the gateway (xclaw {theirs}) speaks another version than this xclaw. Update the older of them, "
            "then start the gateway again: xclaw serve --stop"
        )
    return hello


def _refused(reach: Reach, status: int) -> str:
    if status == 401:
        return (
            f"{reach.url} does not accept this token. Set XCLAW_GATEWAY_TOKEN to one that it gave out; for the "
            "gateway of this home, leave it unset."
        )
    if status == 404:
        return f"{reach.url} is no gateway of xclaw."
    return f"{reach.url} refused the connection (status {status}). Its `allowed_hosts` must name it."
