"""WebSockets whose clients may not read what they are sent: they are told, and then cut off.

A transport that is closed still waits until the other side has read everything, which one that reads
nothing never does. Here each connection that has ended has a last while to be read.
"""

import asyncio
import math
import socket
from contextlib import suppress
from typing import Any

from starlette.types import Scope
from uvicorn.config import Config
from uvicorn.server import ServerState
from websockets.exceptions import InvalidState
from websockets.frames import Frame
from websockets.http11 import Request

from xclaw.gateway.connections import GatewayWebSocket

LINE = "xclaw.line"
"""Where the scope's extensions have the connection's `Line`."""
SLOW_CLIENT = 4008
"""Close code: the client reads too slowly, and may come back with the last id it has."""
LINGER_S = 10.0
"""How long what was written may take to be read after the end."""
RESTART_LINGER_S = 1.0
"""The same when the gateway stops, which must not wait for one client."""


class Line:
    """What ASGI does not tell of a connection: how much of what was sent has not left yet."""

    def __init__(self, protocol: "LineProtocol") -> None:
        self._protocol = protocol

    @property
    def full(self) -> bool:
        """The next send would wait."""
        return not self._protocol.writable.is_set()

    @property
    def unsent_bytes(self) -> int:
        return self._protocol.transport.get_write_buffer_size()

    async def room(self) -> None:
        """Wait until the next send would not; also ends when the connection does."""
        await self._protocol.writable.wait()

    def hang_up(self, code: int, reason: str) -> None:
        """Close without waiting for anything. Sends that wait end with an `OSError`."""
        self._protocol.hang_up(code, reason)


class LineProtocol(GatewayWebSocket):
    """A connection that hands the application its `Line`."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._cut: asyncio.TimerHandle | None = None
        self._unsent_at_ping = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        patience_s = self._own.gateway.stall_s + 2 * LINGER_S
        connection: socket.socket | None = transport.get_extra_info("socket")
        if connection is not None and hasattr(socket, "TCP_USER_TIMEOUT"):
            with suppress(OSError):  # no TCP
                milliseconds = math.ceil(patience_s * 1000)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if self.response.status_code == 101:  # else there is no scope, and no application
            scope: Scope = self.scope  # pyright: ignore[reportAssignmentType] - a TypedDict there
            scope["extensions"][LINE] = Line(self)

    def pause_writing(self) -> None:
        if not self.disconnected:  # who reads nothing is found out, and told, by `Sender`
            self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def handle_ping(self) -> None:
        answer = self.conn.data_to_send()
        if self.writable.is_set():  # who does not read gets no answers piled up
            self.transport.write(b"".join(answer))

    def handle_cont(self, event: Frame) -> None:
        if event.data or event.fin:  # empty parts of a message count nothing, but each would be kept
            super().handle_cont(event)

    def hang_up(self, code: int, reason: str) -> None:
        if self.close_sent or self.disconnected:
            return
        if code == SLOW_CLIENT:
            self._own.dropped()
        with suppress(InvalidState):  # the other side was quicker
            self.conn.send_close(code, reason)
            self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self._told_gone(code, reason)
        # Closing a socket that has unread input would throw away what is on its way out.
        self.transport.resume_reading()
        self.close_timer = self.loop.call_later(self.close_timeout, self.transport.close)

    def shutdown(self) -> None:
        super().shutdown()
        self._cut_in(RESTART_LINGER_S)

    def send_keepalive_ping(self) -> None:
        super().send_keepalive_ping()
        self._unsent_at_ping = self.transport.get_write_buffer_size()

    def keepalive_timeout(self) -> None:
        if self.transport.get_write_buffer_size() < self._unsent_at_ping:
            self.pong_timer = self.pending_ping_payload = None  # it reads, but is not at the ping yet
            self.schedule_ping()
            return
        super().keepalive_timeout()
        self._told_gone(1011, "no answer to a ping")

    def connection_lost(self, exc: Exception | None) -> None:
        if self._cut is not None:
            self._cut.cancel()
        super().connection_lost(exc)

    async def run_asgi(self) -> None:
        try:
            await super().run_asgi()
        finally:
            if self._cut is None:
                self._cut_in(LINGER_S)

    def _cut_in(self, seconds: float) -> None:
        if self in self.connections:
            self._cut = self.loop.call_later(seconds, self.transport.abort)

    def _told_gone(self, code: int, reason: str) -> None:
        """Release the application, whether it receives or sends."""
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code, "reason": reason})
        self.disconnected = True
        self.writable.set()
