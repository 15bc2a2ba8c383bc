"""One command of a sandbox: a container from its start until it is gone."""

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.sandbox import SandboxExit
from xclaw.sandbox.container.groups import memory_kills, processes
from xclaw.sandbox.container.guard import end_containers
from xclaw.sandbox.container.podman import Podman
from xclaw.sandbox.linux.first import REPORT_BYTES, Report
from xclaw.sandbox.linux.trees import Unmeasurable
from xclaw.sandbox.linux.watch import FULL, Watch
from xclaw.sandbox.output import BoundedOutput, Output

BEGIN_S = 20.0
"""How long a container may take to begin, which a command's time-out does not count."""
DRAIN_S = 5.0
_READ = 65_536
_KILLED = 137
_SHOWN = 300
_SHIM = 'exec 3>"/proc/self/fd/$1"; shift; exec "$@"'
"""The report is descriptor 3, as podman wants it."""


@dataclass(frozen=True, slots=True)
class Started:
    """What a command is started by."""

    podman: Podman
    label: str
    """Of all containers of the sandbox."""
    name: str
    """Of this one."""
    sandbox: str
    words: Sequence[str]
    """What podman is told."""
    watch: Watch


class ContainerCommand:
    """Runs once."""

    def __init__(self, started: Started, output: Output, limit: int) -> None:
        self._started = started
        self._output = BoundedOutput(output, limit)
        self._report = Report()
        self._began = asyncio.Event()
        self._over: Literal["", "timeout", "memory", "disk"] = ""
        self._last = b""

    async def run(self, stdin: bytes, timeout_s: float) -> SandboxExit:
        """Cancelling it ends the container first. Raises `ToolFailed`."""
        loop = asyncio.get_running_loop()
        await asyncio.to_thread(self._started.watch.begin)
        if self._started.watch.is_full:
            raise ToolFailed(f"the command could not be started: {FULL}")
        report, writing = os.pipe()
        os.set_blocking(report, False)
        try:
            process = await self._process(writing)
        except OSError as error:
            os.close(report)
            raise ToolFailed(f"podman cannot be started: {error}") from error
        finally:
            os.close(writing)
        began = loop.time()
        loop.add_reader(report, self._listen, report)
        reading = loop.create_task(self._read(process))
        feeding = loop.create_task(_feed(process, stdin))
        try:
            await self._until_ended(process, timeout_s)
            code = await process.wait()
            await asyncio.wait([reading], timeout=DRAIN_S)
            self._listen(report)
            if code == _KILLED and not self._over and await self._started.podman.ran_out(self._started.name):
                self._over = "memory"
        finally:
            ending = loop.create_task(self._remove(process))
            while not ending.done():
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.shield(ending)
            for task in (reading, feeding):
                task.cancel()
            loop.remove_reader(report)
            os.close(report)
        return self._exit(code, loop.time() - began)

    async def _process(self, writing: int) -> Process:
        words = [
            "/bin/sh",
            "-c",
            _SHIM,
            "sh",
            str(writing),
            self._started.podman.program,
            *self._started.words,
        ]
        return await asyncio.create_subprocess_exec(
            *words,
            stdin=PIPE,
            stdout=PIPE,
            stderr=asyncio.subprocess.STDOUT,
            pass_fds=(writing,),
            env=self._started.podman.environment,
            cwd="/",
            start_new_session=True,
        )

    async def _until_ended(self, process: Process, timeout_s: float) -> None:
        """Ended by itself, or by a limit."""
        loop = asyncio.get_running_loop()
        kills = memory_kills(self._started.sandbox)
        ended = loop.create_task(process.wait())
        begun = loop.create_task(self._began.wait())
        try:
            await asyncio.wait([ended, begun], timeout=BEGIN_S, return_when=asyncio.FIRST_COMPLETED)
            until = loop.time() + timeout_s
            self._started.watch.begin()
            while not ended.done():
                wait_s = min(until - loop.time(), self._started.watch.due_s())
                await asyncio.wait([ended], timeout=max(wait_s, 0.01))
                if ended.done():
                    break
                if loop.time() >= until:
                    self._over = "timeout"
                elif await asyncio.to_thread(self._look):
                    self._over = "disk"
                elif memory_kills(self._started.sandbox) > kills:
                    self._over = "memory"
                if self._over:
                    await asyncio.to_thread(self._kill)
                    await self._end()
                    await asyncio.wait([ended], timeout=DRAIN_S)
                    if not ended.done():
                        process.kill()
        finally:
            ended.cancel()
            begun.cancel()

    def _look(self) -> str:
        return self._started.watch.over(processes(self._started.sandbox))

    def _kill(self) -> None:
        """Ahead of podman, which takes its time, in which a disk could fill."""
        for process_id in processes(self._started.sandbox):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process_id, signal.SIGKILL)

    async def _end(self) -> None:
        await asyncio.to_thread(end_containers, self._started.podman.program, self._started.label)

    async def _remove(self, process: Process) -> None:
        await self._end()
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    def _listen(self, report: int) -> None:
        with contextlib.suppress(BlockingIOError):
            said = os.read(report, REPORT_BYTES)
            if not said:
                asyncio.get_running_loop().remove_reader(report)
            self._report.add(said)
        if self._report.began or self._report.hindrance:
            self._began.set()

    async def _read(self, process: Process) -> None:
        assert process.stdout is not None
        while piece := await process.stdout.read(_READ):
            self._last = piece[-_SHOWN:]
            self._output.add(piece)

    def _exit(self, code: int, duration_s: float) -> SandboxExit:
        if not self._over and not self._report.began:
            text = self._report.hindrance or self._last.decode("utf-8", "replace")
            raise ToolFailed(f"the command could not be started: {text[:_SHOWN].strip()}")
        ended = self._over or "exited"
        if ended == "exited" and self._settled():
            ended = "disk"
        return SandboxExit(
            ended=ended,
            code=code if ended == "exited" else None,
            left_behind=self._report.left_behind,
            dropped_bytes=self._output.dropped,
            duration_s=duration_s,
        )

    def _settled(self) -> bool:
        try:
            return bool(self._started.watch.settle())
        except Unmeasurable:
            return True


async def _feed(process: Process, stdin: bytes) -> None:
    assert process.stdin is not None
    with contextlib.suppress(ConnectionError):
        process.stdin.write(stdin)
        await process.stdin.drain()
    process.stdin.close()
