"""The gateway as a service: it listens until it is told to stop, and stops without losing anything."""

import asyncio
import errno
import ipaddress
import logging
import signal
import socket
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

import uvicorn

from xclaw.contracts.channels import Channel
from xclaw.contracts.errors import UsageError
from xclaw.gateway.channels.line import LineProtocol
from xclaw.gateway.connections import ConnectionConfig, allow_descriptors
from xclaw.gateway.gateway import Gateway
from xclaw.gateway.server import create_server
from xclaw.gateway.settings import GatewaySettings
from xclaw.gateway.tokens import TokenBook

logger = logging.getLogger(__name__)

CHANNEL_END_S = 5.0
"""How long a channel may take to end."""
BACKLOG = 2048


async def serve(
    gateway: Gateway,
    tokens: TokenBook,
    channels: Sequence[Channel] = (),
    *,
    on_ready: Callable[[str], None],
) -> None:
    """Serve until SIGTERM or SIGINT, or until nobody needed the gateway for `idle_exit_s`.

    Whoever calls it holds the lock of the home (`lock.hold`) from before the gateway was opened.
    `on_ready` is told the address once the gateway answers there: the place to announce it.

    When it is told to stop, it takes no more messages, gives runs and clients `drain_s`, leaves the rest
    to the next start and closes every connection; told a second time, it waits for nothing.

    Raises `UsageError` when it cannot listen, and what `on_ready` raises. Cancelling it closes every
    connection at once; the gateway is left to its owner.
    """
    settings = gateway.settings
    allow_descriptors(settings)
    with _listening(settings) as listener:
        server = _Server(gateway, tokens, lambda: on_ready(_url(listener)))
        tasks = [asyncio.create_task(_serve_channel(channel, gateway)) for channel in channels]
        if settings.idle_exit_s is not None:
            tasks.append(asyncio.create_task(_stop_when_idle(server, gateway, settings.idle_exit_s)))
        try:
            with _told_by_signals(server.stop):
                await server.serve(sockets=[listener])
        finally:
            server.cut()
            await _end(tasks)


class _Server(uvicorn.Server):
    """A uvicorn that leaves signals alone and drains the gateway before it closes connections."""

    def __init__(self, gateway: Gateway, tokens: TokenBook, on_ready: Callable[[], None]) -> None:
        settings = gateway.settings
        app = create_server(gateway, settings, tokens)
        config = ConnectionConfig(app, settings, gateway.metrics.client_dropped)
        config.ws = LineProtocol
        config.lifespan = "off"
        super().__init__(config)
        self._gateway = gateway
        self._drain_s = settings.drain_s
        self._on_ready = on_ready
        self._hurry = asyncio.Event()

    def stop(self) -> None:
        """Called again, it hurries."""
        if self.should_exit:
            self.force_exit = True
            self._hurry.set()
        self.should_exit = True

    def cut(self) -> None:
        """Close what is still open, at once."""
        for server in getattr(self, "servers", ()):
            server.close()
        for connection in list(self.server_state.connections):
            connection.transport.abort()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Listens while the gateway drains, so that clients can see how their runs end."""
        await self._drain()
        await super().shutdown(sockets)

    async def _drain(self) -> None:
        draining = asyncio.create_task(self._gateway.drain(self._drain_s))
        hurry = asyncio.create_task(self._hurry.wait())
        try:
            await asyncio.wait((draining, hurry), return_when=asyncio.FIRST_COMPLETED)
        finally:
            hurry.cancel()
            draining.cancel()
        await asyncio.wait((draining,))
        left = await self._gateway.drain(0) if draining.cancelled() else draining.result()
        if left:
            logger.info("%d runs go on at the next start", left)


@contextmanager
def _listening(settings: GatewaySettings) -> Generator[socket.socket]:
    """A bound socket. Raises `UsageError` that says what to do."""
    host, port = settings.host, settings.port
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise UsageError(f"cannot listen on {host!r}: {error.strerror}. Set gateway.host.") from None
    with listener:
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(BACKLOG)
        except OSError as error:
            raise _cannot_listen(host, port, error) from None
        yield listener


def _cannot_listen(host: str, port: int, error: OSError) -> UsageError:
    if error.errno == errno.EADDRINUSE:
        return UsageError(
            f"port {port} of {host} is in use by another program. Stop that one, or choose another port: "
            "`xclaw serve --port N`, or gateway.port in the settings; 0 takes any free one."
        )
    if error.errno == errno.EACCES:
        return UsageError(f"port {port} of {host} is not allowed: {error.strerror}. Choose one above 1023.")
    return UsageError(f"cannot listen on {host} port {port}: {error.strerror}. Set gateway.host.")


def _url(listener: socket.socket) -> str:
    """Where clients of this machine reach it."""
    host, port = listener.getsockname()[:2]
    address = ipaddress.ip_address(host)
    if address.is_unspecified:
        address = ipaddress.ip_address("::1" if address.version == 6 else "127.0.0.1")
    return f"http://[{address}]:{port}" if address.version == 6 else f"http://{address}:{port}"


@contextmanager
def _told_by_signals(stop: Callable[[], None]) -> Generator[None]:
    """Call `stop` for each SIGTERM and SIGINT; outside the main thread nobody can."""
    loop = asyncio.get_running_loop()
    told = (signal.SIGTERM, signal.SIGINT) if threading.current_thread() is threading.main_thread() else ()
    for number in told:
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number in told:
            loop.remove_signal_handler(number)


async def _serve_channel(channel: Channel, gateway: Gateway) -> None:
    """One that fails, or that wants to end the process, ends alone."""
    try:
        await channel.serve(gateway)
    except (Exception, SystemExit):
        logger.exception("channel %s failed; nothing comes from it any more", channel.name)
    else:
        logger.info("channel %s has ended", channel.name)


async def _stop_when_idle(server: _Server, gateway: Gateway, idle_exit_s: float) -> None:
    used_at = time.monotonic()
    while time.monotonic() - used_at < idle_exit_s:
        await asyncio.sleep(min(1.0, idle_exit_s / 4))
        if server.server_state.connections or gateway.busy:
            used_at = time.monotonic()
    logger.info("nobody needed the gateway for %g s", idle_exit_s)
    server.stop()


async def _end(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        _, stuck = await asyncio.wait(tasks, timeout=CHANNEL_END_S)
        if stuck:
            logger.error("%d channels do not end and are left behind", len(stuck))
