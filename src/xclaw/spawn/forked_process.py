"""The forked worker as the runtime has it: a process of its own, a line to it, and a certain end.

The worker gets an allow-listed environment and one end of a socket pair, nothing else of this process.
A keeper stands between (`forked_keeper`), so that nothing that the worker started outlives it, whoever
of the three is killed first.
"""

import asyncio
import contextlib
import os
import secrets
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from dataclasses import dataclass, field

from xclaw.contracts.workers import WorkerEnd
from xclaw.spawn.forked_keeper import LOG_BYTES, descendants
from xclaw.spawn.leftovers import MARK, end_marked

MAX_LINE = 16 * 1024 * 1024
"""Bytes of one line, either way: a model's whole context, and room to spare."""
MAX_WAITING = 64 * 1024 * 1024
"""Bytes that wait for a worker that has stopped reading."""
KEEPER_S = 0.7
"""How long the keeper may take to end everything before this process does it itself."""
REAP_S = 2.0
LOG_S = 0.3
"""How long the last of the output may take to come, which a keeper wrote before it ended."""
DRAIN_S = 0.3
"""How long what a worker said last may take to come, once it has ended."""
EXIT_S = 1.0
"""How long a worker that has hung up may take to end by itself."""
KILL_ROUNDS = 5
INHERITED = (
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV",
    "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR",
)  # fmt: skip
"""Variables that a worker gets, beside those of the locale. Keys are in none of them."""


def allowed_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """What a worker may see of an environment."""
    return {name: value for name, value in environment.items() if name in INHERITED or name.startswith("LC_")}


@dataclass(frozen=True, slots=True)
class ForkSettings:
    """How workers are started."""

    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """The whole environment, but for the worker's own mark, which is added to the one that is in it."""
    python: str = sys.executable
    module: str = "xclaw.worker"
    """What runs in the worker, with the descriptor of its line as argument."""


async def start_forked(settings: ForkSettings) -> "ForkedLink":
    """Raises `OSError` when there can be no further process. Cancelling it ends what was started."""
    ours, theirs = socket.socketpair()
    above = settings.environment.get(MARK, f"p{os.getpid()}")
    mark = f"{above}/{secrets.token_hex(6)}"
    try:
        process = await asyncio.create_subprocess_exec(
            settings.python,
            "-P",
            "-m",
            "xclaw.spawn.forked_keeper",
            str(theirs.fileno()),
            str(os.getpid()),
            settings.module,
            stdin=PIPE,
            stdout=PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),),
            env={**settings.environment, MARK: mark},
            start_new_session=True,  # Ctrl-C reaches xclaw, which then ends the worker
            limit=LOG_BYTES * 2,
        )
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    ours.setblocking(False)
    reader, writer = await asyncio.open_unix_connection(sock=ours, limit=MAX_LINE)
    return ForkedLink(process, mark, reader, writer)


class ForkedLink:
    """Implements `WorkerLink` on a socket pair."""

    def __init__(
        self, process: Process, mark: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._process = process
        self._mark = mark
        self._reader = reader
        self._writer = writer
        self._exit: asyncio.Task[int] = asyncio.get_running_loop().create_task(process.wait())
        self._line: asyncio.Task[bytes] | None = None
        self._ending: asyncio.Task[WorkerEnd] | None = None

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, line: bytes) -> None:
        if len(line) > MAX_LINE:
            raise ConnectionError(f"a line of {len(line)} bytes is longer than {MAX_LINE}")
        if self._writer.is_closing() or self._exit.done():
            raise BrokenPipeError("the worker is gone")
        if self._writer.transport.get_write_buffer_size() > MAX_WAITING:
            raise ConnectionError("the worker has stopped reading")
        self._writer.write(line + b"\n")

    async def receive(self) -> bytes:
        if self._line is None:
            self._line = asyncio.get_running_loop().create_task(self._reader.readline())
        if not self._line.done():
            # Something that the worker started may hold the line open after its end.
            await asyncio.wait([self._line, self._exit], return_when=asyncio.FIRST_COMPLETED)
        if not self._line.done():
            await asyncio.wait([self._line], timeout=DRAIN_S)
        if not self._line.done():
            self._writer.close()
            await asyncio.wait([self._line])
        line, self._line = self._line, None
        if line.cancelled():  # by `end`, from elsewhere
            return b""
        try:
            text = line.result()
        except ConnectionError:
            return b""
        except ValueError as error:
            raise ValueError(f"a line longer than {MAX_LINE} bytes") from error
        if text.endswith(b"\n"):
            return text[:-1]
        await asyncio.wait([self._exit], timeout=EXIT_S)  # how it ends by itself tells why
        return b""

    async def end(self) -> WorkerEnd:
        if self._ending is None:
            self._ending = asyncio.get_running_loop().create_task(self._end())
        return await asyncio.shield(self._ending)

    async def _end(self) -> WorkerEnd:
        log = await self._end_processes()
        self._writer.close()
        if self._line is not None:
            self._line.cancel()
        return WorkerEnd(self._exit.result() if self._exit.done() else None, log)

    async def _end_processes(self) -> str:
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        log = asyncio.get_running_loop().create_task(process.stdout.read(LOG_BYTES))
        try:
            await asyncio.wait([self._exit], timeout=KEEPER_S)
            if not self._exit.done():
                await self._kill()
            if not self._exit.done() or self._exit.result() < 0:  # perhaps it was the keeper that was killed
                await asyncio.to_thread(end_marked, self._mark)
            await asyncio.wait([log], timeout=LOG_S)
            return log.result().decode("utf-8", "replace") if log.done() else ""
        finally:
            log.cancel()

    async def _kill(self) -> None:
        """Without the keeper's help: it was stopped, or has too much to do."""
        for _ in range(KILL_ROUNDS):
            found = await asyncio.to_thread(descendants, self._process.pid)
            for pid in found:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            if not found:
                break
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await asyncio.wait([self._exit], timeout=REAP_S)
