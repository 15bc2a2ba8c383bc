"""Connections as uvicorn runs them, with the bounds that it lacks: how long the head of a request may
take, how many connections there are, how long a client may read nothing, how much is kept for it.
"""

import asyncio
import math
import resource
import socket
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from typing import Any, cast

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState
from websockets.datastructures import Headers
from websockets.http11 import Response
from websockets.server import ServerProtocol
from websockets.typing import StatusLike

from xclaw.gateway.refusals import Refusal, error_body, with_security
from xclaw.gateway.settings import GatewaySettings

MAX_HEAD_BYTES = 65_536
KEEP_ALIVE_S = 15
"""How long a connection may wait for its next request."""
SPARE_DESCRIPTORS = 256
"""For files, sockets and pipes that are no client's."""


class ConnectionConfig(uvicorn.Config):
    """How uvicorn serves the gateway. `dropped` is called for every client that was dropped because it
    read nothing.

    Headers of proxies are not believed, since anybody can send them; nothing is compressed, which would
    cost memory for every WebSocket; uvicorn's log of requests, which shows query strings, is off.
    """

    def __init__(self, app: ASGIApp, settings: GatewaySettings, dropped: Callable[[], None]) -> None:
        self.gateway = settings
        self.dropped = dropped
        super().__init__(
            cast("Any", app),  # uvicorn has types of its own for the same calls
            host=settings.host,
            port=settings.port,
            http=GatewayHttp,
            ws=GatewayWebSocket,
            ws_max_size=settings.max_message_bytes,
            ws_ping_interval=settings.keepalive_s,
            ws_ping_timeout=settings.stall_s,
            ws_per_message_deflate=False,
            log_config=None,
            log_level="error",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=math.ceil(settings.drain_s),
            h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        )


class GatewayHttp(H11Protocol):
    """One connection. While its client owes something that nobody is told to wait for (a request's head,
    or the rest of a body after the answer), a deadline runs, however often a byte comes."""

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._own = cast("ConnectionConfig", config)
        self._deadline: asyncio.TimerHandle | None = None
        self._stall: _StallWatch | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]  # as uvicorn's
        super().connection_made(transport)
        self._stall = _bounded(transport, self._own)
        limit = self._own.gateway.max_connections
        if len(self.connections) > limit:
            self._end_with(
                Refusal(
                    503, "too_many_connections", f"all {limit:,} connections are in use. Try again later."
                )
            )
            return
        self._begin_deadline()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self._owed():
            self._begin_deadline()
        else:
            self._end_deadline()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY and self._owed():
            self._begin_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_deadline()
        if self._stall is not None:
            self._stall.resumed()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._end_deadline()
        super().handle_websocket_upgrade(event)

    def send_400_response(self, msg: str) -> None:
        self._end_with(
            Refusal(400, "bad_request", f"not HTTP/1.1, or a head of more than {MAX_HEAD_BYTES:,} bytes.")
        )

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._stall is not None:
            self._stall.paused()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stall is not None:
            self._stall.resumed()

    def _owed(self) -> bool:
        """Whether the client has to send something for which no request waits."""
        theirs, ours = self.conn.their_state, self.conn.our_state
        return theirs is h11.IDLE or (theirs is h11.SEND_BODY and ours is h11.DONE)

    def _begin_deadline(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(self._own.gateway.header_timeout_s, self._expire)

    def _end_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _expire(self) -> None:
        self._deadline = None
        if self.conn.their_state is h11.IDLE:
            seconds = self._own.gateway.header_timeout_s
            self._end_with(Refusal(408, "head_timeout", f"no whole request came in {seconds:g} s."))
        else:
            self.transport.close()

    def _end_with(self, refusal: Refusal) -> None:
        """Answer, unless an answer has begun already, and close."""
        cycle = cast("RequestResponseCycle | None", self.cycle)  # None before the first request
        if cycle is None or cycle.response_complete or not cycle.response_started:
            self.transport.write(_answer(refusal))
        self.transport.close()


class GatewayWebSocket(WebSocketsSansIOProtocol):
    """One WebSocket, from its handshake on."""

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.conn = _Handshake(max_size=config.ws_max_size, logger=self.logger)
        self._own = cast("ConnectionConfig", config)
        self._stall: _StallWatch | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._stall = _bounded(self.transport, self._own)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self.handshake_initiated and not self.transport.is_closing():
            # Its head comes whole: it was found to be none, and uvicorn would wait for ever.
            self.transport.write(b"".join(self.conn.data_to_send()))
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._stall is not None:
            self._stall.resumed()
        super().connection_lost(exc)

    def send_receive_event_to_app(self) -> None:
        if self.curr_msg_data_type == "text" and not self.close_sent:
            self.frames = [b"".join(self.frames)]
            try:
                self.frames[0].decode()
            except UnicodeDecodeError:  # uvicorn would log what the client sent
                self.frames = []
                self.conn.send_close(1007)
                self.handle_parser_exception()
                return
        super().send_receive_event_to_app()

    async def run_asgi(self) -> None:
        """Unlike uvicorn's: a refused handshake, and a client that goes away during it, are no errors."""
        try:
            untyped = cast("Any", self)  # uvicorn has types of its own for the same calls
            await untyped.app(untyped.scope, untyped.receive, untyped.send)
        except ClientDisconnected:
            pass
        except Exception:
            self.logger.exception("a WebSocket failed")
        finally:
            if not self.transport.is_closing():
                self.send_500_response()  # only where nothing was answered
            if self.close_timer is None:
                self.transport.close()

    def handle_parser_exception(self) -> None:
        if self.conn.close_sent is None:  # frames before the handshake was answered
            self.transport.close()
        else:
            super().handle_parser_exception()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._stall is not None:
            self._stall.paused()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stall is not None:
            self._stall.resumed()


class _Handshake(ServerProtocol):
    """Answers what is no handshake of a WebSocket in the form of all refusals."""

    def reject(self, status: StatusLike, text: str) -> Response:
        known = HTTPStatus(status)
        body = error_body("", Refusal(known, "no_websocket", " ".join(text.split())))
        headers = Headers((name.decode(), value.decode()) for name, value in _headers_of(body))
        return Response(known, known.phrase, headers, body)


class _StallWatch:
    """Drops a client that has something to read and reads nothing of it."""

    def __init__(self, transport: asyncio.Transport, config: ConnectionConfig) -> None:
        self._transport = transport
        self._config = config
        self._waiting = 0
        self._timer: asyncio.TimerHandle | None = None

    def paused(self) -> None:
        """More waits for the client than is kept for one."""
        self._waiting = self._transport.get_write_buffer_size()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._config.gateway.stall_s, self._check)

    def resumed(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self) -> None:
        if self._transport.get_write_buffer_size() < self._waiting:
            self.paused()  # slow, but reading
            return
        self._timer = None
        self._config.dropped()
        self._transport.abort()


def allow_descriptors(settings: GatewaySettings) -> None:
    """Let this process have a descriptor for every connection, as far as the system allows it."""
    wanted = settings.max_connections + SPARE_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _bounded(transport: asyncio.Transport, config: ConnectionConfig) -> _StallWatch:
    """Bound what is kept for the client, and how long the kernel waits for a peer that has vanished."""
    transport.set_write_buffer_limits(high=config.gateway.outlet_bytes)
    connection = cast("socket.socket | None", transport.get_extra_info("socket"))
    if connection is not None and hasattr(socket, "TCP_USER_TIMEOUT"):
        milliseconds = math.ceil(config.gateway.stall_s * 1000)
        with suppress(OSError):  # no TCP
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
    return _StallWatch(transport, config)


def _answer(refusal: Refusal) -> bytes:
    """A whole response, for a connection that ends with it."""
    body = error_body("", refusal)
    lines = [f"HTTP/1.1 {refusal.status} {HTTPStatus(refusal.status).phrase}".encode()]
    lines += [name + b": " + value for name, value in _headers_of(body)]
    return b"\r\n".join([*lines, b"", body])


def _headers_of(body: bytes) -> list[tuple[bytes, bytes]]:
    length = str(len(body)).encode()
    return with_security(
        [(b"content-type", b"application/json"), (b"content-length", length), (b"connection", b"close")]
    )
