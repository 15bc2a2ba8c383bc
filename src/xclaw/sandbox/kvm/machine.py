"""One virtual machine as xclaw has it: the keeper's process, the line to the agent, and a certain end."""

import asyncio
import base64
import contextlib
import json
import os
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast

from xclaw.contracts.errors import SandboxLost, SandboxUnavailable
from xclaw.sandbox.kvm.guest_line import Began, Ended, Failed, GuestLine, Misbehaved, Output, Ready, Said
from xclaw.sandbox.output import BoundedOutput

KILL_S = 10.0
"""How long the agent may take to kill a job before its machine is given up."""
BEGIN_S = 10.0
"""How long a command may take to begin, which its time-out does not count."""
END_S = 5.0
KEEPER_S = 5.0
"""How long the keeper may take to answer."""
_READ = 65_536
_SHOWN, _SHOWN_LINES = 200, 3
_REPORT = 131_072
_INPUT_PIECE = 49_152
_START = "import sys; sys.path.insert(0, sys.argv[1]); from xclaw.sandbox.kvm.keeper import main; main()"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A machine to boot."""

    accelerator: Literal["kvm", "tcg"]
    program: str
    image: str
    memory_bytes: int
    cpus: int
    disk_bytes: int
    uid_base: int


@dataclass(slots=True)
class _Job:
    id: int
    output: BoundedOutput
    ended: "asyncio.Future[Ended | Failed]"
    began: asyncio.Event
    over: str = ""
    """The limit that the keeper has seen passed."""


@dataclass(frozen=True, slots=True)
class JobEnd:
    """How a job ended; `over` is the limit that the host has ended it for."""

    ended: Ended
    over: Literal["", "timeout", "disk"]
    dropped: int


@dataclass(slots=True)
class _Talk:
    """The keeper's answers, in the order of the questions."""

    waiting: "list[asyncio.Future[Mapping[str, object]]]" = field(
        default_factory=list["asyncio.Future[Mapping[str, object]]"]
    )


class VirtualMachine:
    """Booted, and taken once. One job at a time: the caller sees to that."""

    def __init__(self, keeper: Process, line: socket.socket) -> None:
        self._keeper = keeper
        self._line = line
        self._guest = GuestLine()
        self._loop = asyncio.get_running_loop()
        self._number = 0
        self._job: _Job | None = None
        self._answers = _Talk()
        self._console = ""
        self._why = ""
        self.uid = -1
        self.qemu_pid = -1
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self._gone = asyncio.Event()
        self._writer: asyncio.StreamWriter | None = None
        self._reporting = self._loop.create_task(self._read_reports())
        self._listening: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None

    @property
    def keeper_pid(self) -> int:
        return self._keeper.pid

    @property
    def lost(self) -> bool:
        return self._gone.is_set()

    def why_lost(self) -> str:
        """What became of it, with what it said last."""
        return f"{self._why or 'it has ended'}. {self._last_words()}"

    async def boot(self, wanted: Wanted, line_number: int, timeout_s: float) -> None:
        """Until the agent listens. Raises `SandboxUnavailable`; then the machine must still be closed."""
        order = {
            "parent": os.getpid(), "uid_base": wanted.uid_base, "image": wanted.image, "program": wanted.program,
            "accelerator": wanted.accelerator, "memory_bytes": wanted.memory_bytes, "cpus": wanted.cpus,
            "disk_bytes": wanted.disk_bytes, "line": line_number,
        }  # fmt: skip
        self._order(order)
        reader, self._writer = await asyncio.open_unix_connection(sock=self._line)
        self._listening = self._loop.create_task(self._listen(reader))
        gone = self._loop.create_task(self._gone.wait())
        try:
            await asyncio.wait([self._ready, gone], timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
        if self._gone.is_set():
            raise SandboxUnavailable(f"the virtual machine did not start: {self.why_lost()}")
        if not self._ready.done():
            await self.close()
            raise SandboxUnavailable(
                f"the virtual machine was not ready within {timeout_s:g} s. {self._last_words()}"
            )

    def _last_words(self) -> str:
        """The end of what was on its console; a stranger's text."""
        lines = [line.strip()[:_SHOWN] for line in self._console.splitlines() if line.strip()]
        shown = " / ".join(lines[-_SHOWN_LINES:])
        return f"It said last: {shown}" if shown.isprintable() and shown else "It said nothing."

    async def take(self, order: Mapping[str, object], guest: Mapping[str, object]) -> None:
        """Give it the directories of a task. Raises `SandboxUnavailable`."""
        answer = await self._ask({"op": "take", **order})
        if "refused" in answer:
            raise SandboxUnavailable(f"the directories cannot be given to it: {answer['refused']}")
        end = await self.run({"op": "take", "uid": self.uid, **guest}, _ignored, 0, KILL_S)
        if isinstance(end, Failed):
            raise SandboxUnavailable(f"the guest cannot take its directories: {end.text}")

    async def run(
        self,
        message: Mapping[str, object],
        output: Callable[[bytes], None],
        limit: int,
        timeout_s: float,
        stdin: bytes | None = None,
    ) -> JobEnd | Failed:
        """One job, killed at the time-out and when cancelled. Raises `SandboxLost`."""
        if self._gone.is_set():
            raise SandboxLost(f"The sandbox is gone: {self.why_lost()}")
        self._number += 1
        job = _Job(self._number, BoundedOutput(output, limit), self._loop.create_future(), asyncio.Event())
        self._job = job
        self._guest.expect(limit)
        feeding = self._loop.create_task(self._feed(job, message, stdin))
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(BEGIN_S):
                    await job.began.wait()
            done, _ = await asyncio.wait([job.ended], timeout=timeout_s)
            if not done:
                job.over = job.over or "timeout"
                await self._kill(job)
        except asyncio.CancelledError:
            killing = self._loop.create_task(self._kill(job))
            while not killing.done():
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.shield(killing)
            raise
        finally:
            feeding.cancel()
            self._job = None
            if not job.ended.done():
                job.ended.cancel()
        end = job.ended.result()
        if isinstance(end, Failed):
            return end
        over = cast("Literal['', 'timeout', 'disk']", job.over)
        return JobEnd(end, over, job.output.dropped + end.dropped)

    async def _feed(self, job: _Job, message: Mapping[str, object], stdin: bytes | None) -> None:
        with contextlib.suppress(ConnectionError):
            await self._send({"id": job.id, **message})
            if stdin is None:
                return
            for at in range(0, max(len(stdin), 1), _INPUT_PIECE):
                piece = base64.b64encode(stdin[at : at + _INPUT_PIECE]).decode()
                last = at + _INPUT_PIECE >= len(stdin)
                await self._send({"id": job.id, "op": "input", "data": piece, "last": last})

    async def _kill(self, job: _Job) -> None:
        """Have the agent kill a job; a machine that does not manage is given up. Raises `SandboxLost`."""
        if job.ended.done():
            return
        with contextlib.suppress(ConnectionError):
            self._write({"id": job.id, "op": "kill"})
        await asyncio.wait([job.ended], timeout=KILL_S)
        if not job.ended.done():
            self._lose(f"it did not kill a command within {KILL_S:g} s")
            await self.close()

    def watch(self) -> None:
        """A command begins: look at what it does to the disk."""
        self._order({"op": "begin"})

    async def settle(self) -> bool:
        """A command has ended: whether it has left more on the disk than it may."""
        answer = await self._ask({"op": "settle"})
        return answer.get("settled") == "disk"

    async def close(self) -> None:
        """End it, and wait until it is gone. Safe to repeat; cancelling the wait does not stop it."""
        if self._ending is None:
            self._ending = self._loop.create_task(self._end())
        await asyncio.shield(self._ending)

    async def _end(self) -> None:
        assert self._keeper.stdin is not None
        self._keeper.stdin.close()
        exiting = self._loop.create_task(self._keeper.wait())
        await asyncio.wait([exiting], timeout=END_S)
        if not exiting.done():
            self._keeper.kill()  # QEMU dies with it
            await exiting
        await asyncio.wait([self._reporting], timeout=END_S)
        self._lose("it was closed")
        for task in (self._reporting, self._listening):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])
        if self._writer is not None:
            self._writer.transport.abort()
        else:
            self._line.close()

    async def _ask(self, order: Mapping[str, object]) -> Mapping[str, object]:
        """Raises `SandboxLost`."""
        if self._gone.is_set():
            raise SandboxLost(f"The sandbox is gone: {self.why_lost()}")
        answer: asyncio.Future[Mapping[str, object]] = self._loop.create_future()
        self._answers.waiting.append(answer)
        self._order(order)
        await asyncio.wait([answer], timeout=KEEPER_S)
        if not answer.done():
            self._lose("its keeper does not answer")
            await self.close()
            raise SandboxLost(f"The sandbox is gone: {self.why_lost()}")
        return answer.result()

    def _order(self, order: Mapping[str, object]) -> None:
        assert self._keeper.stdin is not None
        with contextlib.suppress(ConnectionError, RuntimeError):  # that it is gone is read elsewhere
            self._keeper.stdin.write(json.dumps(order).encode() + b"\n")

    async def _send(self, message: Mapping[str, object]) -> None:
        self._write(message)
        assert self._writer is not None
        await self._writer.drain()

    def _write(self, message: Mapping[str, object]) -> None:
        assert self._writer is not None
        self._writer.write(json.dumps(message).encode() + b"\n")

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        """What the guest says."""
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(_READ):
                try:
                    for said in self._guest.feed(data):
                        self._take_in(said)
                except Misbehaved as reason:
                    self._lose(f"the guest misbehaved: {reason}")
                    self._ending = self._ending or self._loop.create_task(self._end())
                    return

    def _take_in(self, said: Said) -> None:
        job = self._job
        if isinstance(said, Ready):
            if not self._ready.done():
                self._ready.set_result(None)
        elif job is None or said.job != job.id or job.ended.done():
            return
        elif isinstance(said, Began):
            job.began.set()
        elif isinstance(said, Output):
            job.output.add(said.content)
        else:
            job.ended.set_result(said)
            job.began.set()

    async def _read_reports(self) -> None:
        """What the keeper says; its end is the machine's."""
        assert self._keeper.stdout is not None
        with contextlib.suppress(ConnectionError):
            while line := await self._keeper.stdout.readline():
                self._take_report(cast("Mapping[str, object]", json.loads(line)))
        self._lose("its processes were killed")

    def _take_report(self, report: Mapping[str, object]) -> None:
        if "started" in report:
            self.qemu_pid, self.uid = cast("int", report["started"]), cast("int", report["uid"])
        elif "ended" in report:
            self._console = str(report["console"]).strip()
            code = cast("int", report["ended"])
            self._lose(f"QEMU ended with {code}" if code >= 0 else f"QEMU was killed by signal {-code}")
        elif "over" in report:
            if self._job is not None and not self._job.over:
                self._job.over = "disk"
                self._write({"id": self._job.id, "op": "kill"})
        elif self._answers.waiting:
            self._answers.waiting.pop(0).set_result(report)
        elif "refused" in report:
            self._lose(str(report["refused"]))

    def _lose(self, why: str) -> None:
        if self._gone.is_set():
            return
        self._why = why
        self._gone.set()
        lost = SandboxLost(f"The sandbox is gone: {self.why_lost()}")
        job = self._job
        if job is not None and not job.ended.done():
            job.ended.set_exception(lost)
            job.began.set()
        for answer in self._answers.waiting:
            if not answer.done():
                answer.set_exception(lost)


def _ignored(_content: bytes) -> None:
    """There is no output."""


async def boot_machine(wanted: Wanted, timeout_s: float) -> VirtualMachine:
    """Boot one until its agent listens. Raises `SandboxUnavailable`. Cancelling it leaves nothing behind."""
    ours, theirs = socket.socketpair()
    try:
        keeper = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            "-S",
            "-c",
            _START,
            str(Path(__file__).parents[3]),
            stdin=PIPE,
            stdout=PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),),
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
            start_new_session=True,
            limit=_REPORT,
        )
        number = theirs.fileno()
    except BaseException as error:
        ours.close()
        if isinstance(error, OSError):
            raise SandboxUnavailable(f"the keeper of a virtual machine cannot be started: {error}") from error
        raise
    finally:
        theirs.close()
    ours.setblocking(False)
    machine = VirtualMachine(keeper, ours)
    try:
        await machine.boot(wanted, number, timeout_s)
    except BaseException:
        await asyncio.shield(machine.close())
        raise
    return machine
