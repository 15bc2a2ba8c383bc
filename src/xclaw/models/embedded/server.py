"""The life of the server process: started on first use, shared, watched, restarted, stopped."""

import asyncio
import contextlib
import hashlib
import json
import os
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO, cast

import aiohttp

from xclaw.contracts.errors import ModelUnavailable
from xclaw.models.embedded.locks import try_lock
from xclaw.models.embedded.machine import check_memory
from xclaw.models.embedded.settings import EmbeddedSettings

_POLL_S = 0.2
_HEALTH_TIMEOUT_S = 5.0
_STOP_TIMEOUT_S = 3.0
_MAX_LINE = 65_536
_LOG_TAIL = 1_500
"""Bytes of the log shown in an error."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server answers, and the key it asks for."""

    url: str
    key: str


class EmbeddedServer:
    """At most one server process for all xclaw processes of a user that want the same model.

    Whoever finds none starts one, with a locked file that the server itself holds while it lives;
    the others read its address from a file that only the user can read. It ends with the process
    that started it; then another starts its own at its next call.
    """

    def __init__(
        self,
        settings: EmbeddedSettings,
        weights: Callable[[], Awaitable[Path]],
        *,
        sha256: str,
        memory: int,
        command: Sequence[str] = ("-P", "-m", "xclaw.models.embedded.serve"),
    ) -> None:
        """`weights` answers the verified model file, whose hash and need of memory (bytes) are given; it
        is asked only when there is no server yet."""
        self._settings = settings
        self._weights = weights
        self._sha256 = sha256
        self._memory = memory
        self._command = tuple(command)
        self._directory = Path(settings.cache_dir) / "models"
        self._changing = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None
        self._address: Address | None = None
        self._suspected = False
        self._starts: deque[float] = deque()

    @property
    def pid(self) -> int | None:
        """The server that this process started, if it runs."""
        return self._process.pid if self._process and self._process.returncode is None else None

    def suspect(self) -> None:
        """A call failed: look before the next one whether the server still answers."""
        self._suspected = True

    async def address(self) -> Address:
        """Of a server that can answer; starts one if there is none.

        Raises `ModelUnavailable` when it does not start, or ended too often; and what `weights`
        raises. Cancelling ends a start.
        """
        async with self._changing:
            if self._address is not None and await self._usable(self._address):
                return self._address
            await self._stop()
            self._address = await self._find_or_start()
            self._suspected = False
            return self._address

    async def close(self) -> None:
        """Stop the server if this process started it; safe to repeat."""
        async with self._changing:
            await self._stop()
            self._starts.clear()

    async def _usable(self, address: Address) -> bool:
        if self._process is not None and self._process.returncode is not None:
            return False
        if self._suspected and not await _answers(address):
            return False
        self._suspected = False
        return True

    async def _find_or_start(self) -> Address:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = f"server-{self._fingerprint()}"
        address_file = self._directory / f"{name}.json"
        found = await _usable_address(address_file)
        if found is not None:
            return found
        model = await self._weights()  # before the lock: fetching may take as long as it likes
        deadline = time.monotonic() + self._settings.start_timeout_s
        while time.monotonic() < deadline:
            lock = try_lock(self._directory / f"{name}.lock")
            if lock is not None:
                address_file.unlink(missing_ok=True)
                address = await self._start(lock, model)
                _write_private(address_file, json.dumps(asdict(address)))
                return address
            found = await _usable_address(address_file)
            if found is not None:
                return found
            await asyncio.sleep(_POLL_S)
        raise ModelUnavailable("the embedded model's server, started by another process, does not answer")

    def _fingerprint(self) -> str:
        """Servers are shared only when they would be the same; unshared ones carry the process id."""
        settings = self._settings
        parts = [
            self._sha256,
            settings.model_path or "",
            settings.context_tokens,
            settings.thread_count,
            self._command,
        ]
        parts += [] if settings.shared else [os.getpid(), id(self)]
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]

    async def _start(self, lock: int, model: Path) -> Address:
        """Start the child and hand it the lock, which this process gives up in any case."""
        try:
            self._count_start()
            check_memory(self._memory)
            with _open_private(self._log_path(), os.O_TRUNC) as log:
                self._process = await asyncio.create_subprocess_exec(
                    self._settings.python or sys.executable,
                    *self._command,
                    str(model),
                    f"--context={self._settings.context_tokens}",
                    f"--threads={self._settings.thread_count}",
                    f"--parent={os.getpid()}",
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=log,
                    pass_fds=(lock,),
                    start_new_session=True,  # Ctrl-C reaches xclaw, which then stops the server
                    limit=_MAX_LINE,
                )
        finally:
            os.close(lock)
        try:
            return await self._first_line(self._process)
        except BaseException:
            await self._stop()
            raise

    def _count_start(self) -> None:
        now = time.monotonic()
        while self._starts and now - self._starts[0] > self._settings.starts_window_s:
            self._starts.popleft()
        if len(self._starts) >= self._settings.max_starts:
            raise ModelUnavailable(
                f"the embedded model's server ended {len(self._starts)} times within "
                f"{self._settings.starts_window_s:.0f} s and is left alone for now{self._log_tail()}"
            )
        self._starts.append(now)

    async def _first_line(self, process: asyncio.subprocess.Process) -> Address:
        assert process.stdout is not None
        try:
            async with asyncio.timeout(self._settings.start_timeout_s):
                line = await process.stdout.readline()
        except TimeoutError:
            raise ModelUnavailable(
                f"the embedded model did not load within {self._settings.start_timeout_s:.0f} s{self._log_tail()}"
            ) from None
        address = _address_from(line)
        if address is None:
            raise ModelUnavailable(f"the embedded model's server did not start{self._log_tail()}")
        return address

    async def _stop(self) -> None:
        process, self._process, self._address = self._process, None, None
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(_STOP_TIMEOUT_S):
                await process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            # Alone, `wait` would wait for ever for what was said and not read (asyncio up to Python 3.12).
            await process.communicate()

    def _log_path(self) -> Path:
        return self._directory / f"server-{self._fingerprint()}.log"

    def _log_tail(self) -> str:
        """The log's end, as the end of an error's text."""
        try:
            with self._log_path().open("rb") as log:
                size = log.seek(0, os.SEEK_END)
                log.seek(max(0, size - _LOG_TAIL))
                text = log.read().decode("utf-8", "replace").strip()
        except OSError:
            return ""
        return f"; its log {str(self._log_path())!r} ends with:\n{text}" if text else ""


def _open_private(path: Path, flag: int) -> BinaryIO:
    """Open a file for writing that only its owner may read."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | flag, 0o600), "wb")


def _write_private(path: Path, text: str) -> None:
    """Replace a file that only its owner may read, in one step."""
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)
    with _open_private(temporary, os.O_EXCL) as file:
        file.write(text.encode())
    temporary.replace(path)


def _read_address(path: Path) -> Address | None:
    """The address another process wrote; None if there is none, or another user could have written it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        state = os.fstat(file.fileno())
        if state.st_uid != os.getuid() or state.st_mode & 0o077:
            return None
        return _address_from(file.read(_MAX_LINE))


def _address_from(line: bytes) -> Address | None:
    """A server's line, if it is one: only an address on this machine is believed."""
    try:
        record = json.loads(line)
    except ValueError:
        return None
    if not isinstance(record, dict):
        return None
    fields = cast("dict[str, object]", record)
    url, key = fields.get("url"), fields.get("key")
    if not isinstance(url, str) or not isinstance(key, str) or not url.startswith("http://127.0.0.1:"):
        return None
    return Address(url, key)


async def _usable_address(path: Path) -> Address | None:
    address = _read_address(path)
    return address if address is not None and await _answers(address) else None


async def _answers(address: Address) -> bool:
    """Whether a server is there and takes the key."""
    timeout = aiohttp.ClientTimeout(total=_HEALTH_TIMEOUT_S)
    headers = {"Authorization": f"Bearer {address.key}"}
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout, trust_env=False) as session,
            session.get(f"{address.url}/v1/models", headers=headers) as response,
        ):
            return response.status == 200
    except (aiohttp.ClientError, TimeoutError, OSError):
        return False
