"""Where the gateway is: this home's, started if need be, or one that the user names."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from xclaw.cli.gateway_link import Reach
from xclaw.cli.preparing import PreparationProgress
from xclaw.contracts.errors import UsageError, XclawError
from xclaw.gateway.lock import Running, find

if TYPE_CHECKING:
    from xclaw.gateway.tokens import TokenBook
    from xclaw.settings import Settings

TOKEN_VARIABLE = "XCLAW_GATEWAY_TOKEN"
LOG_FILE = "gateway.log"
LOG_TAIL_BYTES = 4_000
MAX_LOG_BYTES = 10_000_000
"""A log that has grown past this is put aside when a gateway starts; the one before it is dropped."""
IDLE_EXIT_S = 600.0
"""A gateway that a chat started stops when nobody has needed it for so long."""
POLL_S = 0.05
STARTING_S = 120.0
"""How long another process may take to start the gateway."""
TRIES = 3
COMES_BACK_S = 3.0
"""A gateway that somebody serves is given so long to be started again before one is started here."""

Note = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class NamedGateway:
    """The one whose address the user gave. It is never started from here."""

    url: str
    token: str
    patience_s: float | None

    async def find(self) -> Reach:
        return Reach(self.url, self.token)


def named_gateway(url: str, env: Mapping[str, str], patience_s: float | None) -> NamedGateway:
    """Raises `UsageError` for an address that is none, and without a token."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"--gateway {url!r} is no address. Write it like http://127.0.0.1:8763.")
    token = env.get(TOKEN_VARIABLE, "").strip()
    if not token:
        raise UsageError(f"--gateway needs a token of that gateway: set {TOKEN_VARIABLE}.")
    return NamedGateway(url.rstrip("/"), token, patience_s)


class HomeGateway:
    """The one of this home. It is started when there is none."""

    patience_s: float | None = 60.0

    def __init__(
        self, settings: "Settings", flags: Sequence[str], check: Callable[[Running], None], note: Note
    ) -> None:
        """`flags`: what one that is started here is given; `check` raises `UsageError` for one that runs
        and does not do."""
        self._settings = settings
        self._flags = flags
        self._check = check
        self._note = note
        self._workspace = ""
        self._served = False
        """The one that was found last does not belong to a chat."""

    async def find(self) -> Reach:
        """Raises `UsageError` and `XclawError` when none can be started, or the one that runs does not do."""
        running = await self._running()
        self._check(running)
        if self._workspace not in ("", running.workspace):
            raise UsageError(
                f"the gateway of this home works in {running.workspace} now, not in {self._workspace}: what this "
                "chat was about is not there. Begin another: xclaw"
            )
        self._workspace = running.workspace
        self._served = "--idle-exit" not in running.options
        return Reach(running.url, owner_token(self._settings))

    async def _running(self) -> Running:
        for _ in range(TRIES):
            running = await settled(self._settings)
            if running is None and self._served:
                self._served = False
                running = await self._come_back()
            if running is None:
                self._note("starting the gateway")
                running = await start(self._settings, [*self._flags, "--idle-exit", f"{IDLE_EXIT_S:g}"])
            if running is not None:
                return running
        raise XclawError(f"the gateway stops as soon as it starts. {log_of(self._settings)} says why.")

    async def _come_back(self) -> Running | None:
        clock = asyncio.get_running_loop().time
        until = clock() + COMES_BACK_S
        running = None
        while running is None and clock() < until:
            await asyncio.sleep(POLL_S)
            running = await settled(self._settings)
        return running


def owner_token(settings: "Settings") -> str:
    """The token of the user whose home it is. Raises `UsageError`."""
    token, _ = token_book(settings).ensure()
    return token


def token_book(settings: "Settings") -> "TokenBook":
    """The tokens of this home. Raises `UsageError`."""
    from xclaw.gateway.tokens import TokenBook

    gateway = settings.gateway
    return TokenBook(
        Path(gateway.token_file), Path(gateway.users_file), override=gateway.token.strip() or None
    )


def running_gateway(settings: "Settings") -> Running | None:
    """The gateway of this home; without an address while it starts."""
    return find(settings.home, Path(settings.gateway.state_file))


async def settled(settings: "Settings") -> Running | None:
    """The gateway of this home once it is ready; None when there is none."""
    async with asyncio.timeout(STARTING_S):
        while True:
            running = running_gateway(settings)
            if running is None or running.ready:
                return running
            await asyncio.sleep(POLL_S)


def log_of(settings: "Settings") -> Path:
    return settings.home / LOG_FILE


async def start(settings: "Settings", flags: Sequence[str]) -> Running | None:
    """Start the gateway as a process of its own, and wait until it is ready.

    None when another process was quicker. Raises `XclawError` with the reason when it does not start;
    cancelling it leaves the process to start on.
    """
    log = log_of(settings)
    settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(OSError):
        if log.stat().st_size > MAX_LOG_BYTES:
            log.replace(log.with_suffix(".log.1"))
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        began = os.fstat(descriptor).st_size
        process = subprocess.Popen(  # noqa: ASYNC220 - asyncio's own would kill it with the loop
            [sys.executable, "-m", "xclaw", "serve", "--json", *flags],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=descriptor,
            start_new_session=True,
        )
    finally:
        os.close(descriptor)
    if await _is_ready(process):
        return running_gateway(settings)
    if running_gateway(settings) is not None:
        return None
    reason = _last_words(log, began) or f"it ended with code {process.returncode}"
    if process.returncode == 2:
        raise UsageError(reason)
    raise XclawError(f"the gateway did not start: {reason}")


async def _is_ready(process: "subprocess.Popen[bytes]") -> bool:
    """Follow what a gateway says until it is ready; false when it ends instead."""
    assert process.stdout is not None
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), process.stdout)
    progress = PreparationProgress()
    try:
        while line := await reader.readline():
            event = _event_of(line)
            if event.event == "ready":
                return True
            if event.event == "preparing":
                progress(event.stage, event.done, event.total)
    finally:
        transport.close()
    await asyncio.to_thread(process.wait)
    return False


class _Event(msgspec.Struct):
    """What a gateway that starts says of itself."""

    event: str = ""
    stage: str = ""
    done: int = 0
    total: int = 0


def _event_of(line: bytes) -> _Event:
    try:
        return msgspec.json.decode(line, type=_Event)
    except msgspec.MsgspecError:
        return _Event()


def _last_words(log: Path, began: int) -> str:
    """What a gateway wrote to its log since then, without what every line begins with."""
    try:
        with log.open("rb") as file:
            file.seek(max(began, log.stat().st_size - LOG_TAIL_BYTES))
            text = file.read(LOG_TAIL_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
    return text.strip().removeprefix("xclaw: ")
