"""A sandbox of namespaces as the rest of xclaw has it: its keeper, the line to it, its end."""

import asyncio
import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from xclaw.contracts.errors import SandboxLost, ToolFailed
from xclaw.contracts.sandbox import SandboxCommand, SandboxExit, SandboxPolicy
from xclaw.sandbox.bubblewrap import frames
from xclaw.sandbox.commanded import CommandedSandbox
from xclaw.sandbox.files import absolute_inside
from xclaw.sandbox.linux.home import Home
from xclaw.sandbox.network.proxy import ProxyServer
from xclaw.sandbox.output import Output

LATE_S = 5.0
"""How long after its time-out a command's end may be told before the keeper counts as stuck."""
EXIT_S = 1.0
_READ_BYTES = 1 << 18


@dataclass
class Keeper:
    """The process of a sandbox and what leads to it."""

    process: asyncio.subprocess.Process
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class BubblewrapSandbox(CommandedSandbox):
    """Implements `Sandbox`. A keeper that does not answer in time is killed: then the sandbox is lost."""

    def __init__(
        self,
        keeper: Keeper,
        home: Home,
        policy: SandboxPolicy,
        proxy: ProxyServer | None,
        description: frames.Fields,
    ) -> None:
        super().__init__("bubblewrap", policy)
        self.description = description
        """What the keeper said of itself."""
        self._keeper = keeper
        self._home = home
        self._proxy = proxy
        self._frames = frames.Unframed()
        self._lost = ""
        self._ending: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        """Of the keeper: everything of the sandbox is below it."""
        return self._keeper.process.pid

    @property
    def home(self) -> Path:
        """Its directory on the host, which is gone when it is."""
        return self._home.path

    async def close(self) -> None:
        await self._end("it was closed")

    async def _run_alone(self, command: SandboxCommand, output: Output, limit: int) -> SandboxExit:
        if self._lost:
            raise SandboxLost(f"The sandbox is gone: {self._lost}.")
        order: frames.Fields = {
            "argv": command.argv,
            "directory": absolute_inside(command.directory),
            "environment": command.environment,
            "timeout_s": command.timeout_s,
            "output_bytes": limit,
        }
        self._keeper.writer.write(frames.fields_frame(frames.RUN, order, command.stdin))
        waiting = asyncio.get_running_loop().create_task(self._until_ended(output))
        try:
            await asyncio.wait([waiting], timeout=command.timeout_s + LATE_S)
        except asyncio.CancelledError:
            await self._cancelled(waiting)
            raise
        if not waiting.done():
            waiting.cancel()
            await self._end("it did not answer any more")
            raise SandboxLost(f"The sandbox is gone: {self._lost}.")
        return _exit(waiting.result())

    async def _cancelled(self, waiting: "asyncio.Task[frames.Fields]") -> None:
        """The command ends now; the line must be free of it before there can be another."""
        with contextlib.suppress(ConnectionError):
            self._keeper.writer.write(frames.frame(frames.CANCEL))
        try:
            await asyncio.wait([waiting], timeout=LATE_S)
        finally:
            if not waiting.done():
                waiting.cancel()
                self._begin_end("it did not answer any more")
            elif not waiting.cancelled():
                waiting.exception()

    async def _until_ended(self, output: Output) -> frames.Fields:
        """Whoever takes the output may fail; then the command is ended, and the failure comes after its end."""
        failure: Exception | None = None
        while True:
            try:
                data = await self._keeper.reader.read(_READ_BYTES)
            except ConnectionError:
                data = b""
            if not data:
                reason = self._lost or "its process was killed or has crashed"
                await self._end(reason)
                raise SandboxLost(f"The sandbox is gone: {reason}.")
            for kind, body in self._frames.feed(data):
                if kind == frames.OUTPUT and failure is None:
                    try:
                        output(body)
                    except Exception as error:  # noqa: BLE001 - raised below
                        failure = error
                        self._keeper.writer.write(frames.frame(frames.CANCEL))
                elif kind == frames.ENDED and failure is not None:
                    raise failure
                elif kind == frames.ENDED:
                    return frames.fields_of(body)[0]

    async def _end(self, reason: str) -> None:
        await asyncio.shield(self._begin_end(reason))

    def _begin_end(self, reason: str) -> "asyncio.Task[None]":
        if self._ending is None:
            self._lost = reason
            self._ending = asyncio.get_running_loop().create_task(self._end_all())
        return self._ending

    async def _end_all(self) -> None:
        if self._proxy is not None:
            self._proxy.close()
        self._keeper.writer.close()
        await end_keeper(self._keeper.process)
        await asyncio.to_thread(self._home.remove)


async def end_keeper(process: asyncio.subprocess.Process) -> None:
    """It ends everything when its line closes; if it does not, it is killed, and bubblewrap with it."""
    try:
        async with asyncio.timeout(EXIT_S):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _exit(fields: frames.Fields) -> SandboxExit:
    """Raises `ToolFailed` for a command that was not started."""
    ended = cast("str", fields["ended"])
    if ended == "exited" and not fields["began"]:
        text = fields["hindrance"] or "bubblewrap failed"
        raise ToolFailed(f"the command could not be started: {text}")
    limit = ended if ended in ("timeout", "memory", "disk") else None
    return SandboxExit(
        ended=limit or "exited",
        code=None if limit else cast("int", fields["code"]),
        left_behind=cast("int", fields["left_behind"]),
        dropped_bytes=cast("int", fields["dropped_bytes"]),
        duration_s=cast("float", fields["duration_s"]),
    )
