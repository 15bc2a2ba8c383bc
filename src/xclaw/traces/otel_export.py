"""Export of traces over OpenTelemetry: of every root that ends, in the background; or of one, on demand."""

import asyncio
import importlib
import logging
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, cast
from urllib.parse import unquote, urlsplit

from xclaw.contracts.errors import UsageError
from xclaw.contracts.events import Entry
from xclaw.traces.otel_ids import parse_traceparent
from xclaw.traces.settings import TracesSettings

if TYPE_CHECKING:
    from xclaw.traces.otel_sdk import SpanSender

logger = logging.getLogger(__name__)

TRACES_PATH = "/v1/traces"
MAX_WAITING = 1_000
"""Roots that wait for their export; the oldest are dropped beyond."""

ReadTree = Callable[[str], Awaitable[Sequence[Entry]]]


class Exporter:
    """Exports trees of entries to one receiver. Blocks; for one thread at a time.

    Raises `UsageError` when the settings are wrong or the extra is not installed.
    """

    def __init__(self, settings: TracesSettings) -> None:
        self._settings = settings
        self.url = traces_url(settings.otlp_endpoint)
        headers = parse_headers(settings.otlp_headers)
        try:
            module = importlib.import_module("xclaw.traces.otel_sdk")
        except ImportError as missing:
            raise UsageError(
                f"exporting traces needs packages that are not installed ({missing}). "
                "Install them: pip install 'xclaw[otel]'"
            ) from missing
        make = cast("Callable[[str, dict[str, str]], SpanSender]", module.SpanSender)
        self._sender = make(self.url, headers)

    def export(self, entries: Sequence[Entry]) -> tuple[int, str]:
        """How many spans there are, and why they could not be sent, empty when they were."""
        return self._sender.send_trees(
            entries,
            include_content=self._settings.include_content,
            parent=parse_traceparent(self._settings.traceparent),
        )

    def hurry(self) -> None:
        """Send what there is, but try nothing a second time. Callable from any thread."""
        self._sender.hurry()

    def close(self) -> None:
        """Give up what is being sent. Callable from any thread."""
        self._sender.close()


class BackgroundExport:
    """Exports each root that ends, one after the other. What goes wrong is logged, once, and disturbs
    nothing: the journal still has everything, and `xclaw trace RUN --otlp` exports it later."""

    def __init__(self, settings: TracesSettings, read_tree: ReadTree) -> None:
        self._settings = settings
        self._read_tree = read_tree
        self._waiting: deque[str] = deque(maxlen=MAX_WAITING)
        self._work: asyncio.Task[None] | None = None
        self._exporter: Exporter | None = None
        self._closing = False
        self._complained = False

    def root_ended(self, root_id: str) -> None:
        """Export this tree soon, if there is an endpoint. Never blocks; for the event loop's thread."""
        if not self._settings.otlp_endpoint:
            return
        self._waiting.append(root_id)
        if self._work is None or self._work.done():
            self._work = asyncio.get_running_loop().create_task(self._export_waiting())

    async def close(self) -> None:
        """Wait for what is under way, at most `flush_timeout_s`, then give it up. Nothing is tried a
        second time meanwhile: a receiver that is down does not keep the process."""
        self._closing = True
        if self._exporter is not None:
            self._exporter.hurry()
        work = self._work
        if work is not None and not work.done():
            await asyncio.wait([work], timeout=self._settings.flush_timeout_s)
            if not work.done():
                work.cancel()
                await asyncio.wait([work])
                self._complain(f"gave up after {self._settings.flush_timeout_s:g} s")
        if self._exporter is not None:
            self._exporter.close()

    async def _export_waiting(self) -> None:
        while self._waiting:
            root_id = self._waiting.popleft()
            try:
                entries = await self._read_tree(root_id)
                _, failure = await _in_daemon_thread(partial(self._export, entries))
            except Exception as error:
                logger.debug("export of %s failed", root_id, exc_info=True)
                failure = str(error) or type(error).__name__
            if failure:
                self._complain(failure)

    def _export(self, entries: Sequence[Entry]) -> tuple[int, str]:
        if self._exporter is None:
            self._exporter = Exporter(self._settings)
        if self._closing:
            self._exporter.hurry()
        return self._exporter.export(entries)

    def _complain(self, failure: str) -> None:
        if not self._complained:
            self._complained = True
            logger.warning(
                "traces are not exported to %s: %s", shown_url(self._settings.otlp_endpoint), failure
            )


def traces_url(endpoint: str) -> str:
    """Where spans go at a receiver. Raises `UsageError` for what is no address."""
    try:
        parts = urlsplit(endpoint.strip())
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise UsageError(
            f"the OTLP endpoint should be a URL such as http://localhost:4318, not {shown_url(endpoint)!r}"
        )
    bare = endpoint.strip().rstrip("/")
    return bare if bare.endswith(TRACES_PATH) else bare + TRACES_PATH


def shown_url(endpoint: str) -> str:
    """An address without what may be a secret in it."""
    bare = endpoint.strip().partition("?")[0]
    scheme, separator, rest = bare.partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"[:200]


def parse_headers(text: str) -> dict[str, str]:
    """`name=value,name=value` with percent-encoded values. Raises `UsageError`, without the values."""
    headers: dict[str, str] = {}
    for number, pair in enumerate(text.split(","), 1):
        if not pair.strip():
            continue
        name, equals, value = pair.partition("=")
        name, value = name.strip().lower(), unquote(value.strip())
        if not equals or not name.isascii() or not name.replace("-", "").replace("_", "").isalnum():
            raise UsageError(f"OTLP header {number} should be written name=value")
        if not value.isprintable() or not value.isascii():
            raise UsageError(f"the value of OTLP header {name!r} has characters that a header cannot have")
        headers[name] = value
    return headers


async def _in_daemon_thread(work: Callable[[], tuple[int, str]]) -> tuple[int, str]:
    """Not a pool's thread: a receiver that never answers must not hold the process at its end."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[tuple[int, str]] = loop.create_future()

    def tell(outcome: tuple[int, str]) -> None:
        if not answer.done():
            answer.set_result(outcome)

    def body() -> None:
        try:
            outcome = work()
        except Exception as error:
            logger.debug("export failed", exc_info=True)
            outcome = 0, str(error) or type(error).__name__
        with suppress(RuntimeError):  # the loop has ended meanwhile: nobody waits any more
            loop.call_soon_threadsafe(tell, outcome)

    threading.Thread(target=body, name="xclaw-traces", daemon=True).start()
    return await answer
