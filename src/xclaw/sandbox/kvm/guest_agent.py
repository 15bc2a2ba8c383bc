"""What runs in the guest as its first process: it does what the host says, one job at a time.

JSON lines over a virtio-serial port. A job is a command; it runs as the unprivileged user in a control group,
and everything in that is killed when the job ends.
Standard library only; it is copied into the image and never imported from there.
"""

import base64
import contextlib
import json
import os
import select
import signal
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from types import FrameType
from typing import NoReturn, cast

from xclaw.sandbox.kvm.guest_system import (
    CGROUP,
    PLACE,
    Limits,
    Message,
    drop_rights,
    kills,
    prepare,
    take,
    tmp_used,
)

CHUNK = 24_576
"""Bytes of one piece of output."""
WAITING = 33_554_432
"""Bytes of input that may wait for a job that does not read."""
KILLING_S = 10.0
_LOOK_MS = 100
_SMALL, _PAUSE_S = 4_096, 0.01


class Refused(Exception):
    """What the host asked for cannot be done."""


@dataclass
class Job:
    """One that runs."""

    id: int
    process: int
    output: int | None
    """None once everybody has closed it."""
    input: int | None
    limit: int
    started_kills: int
    tmp_before: int
    waiting: deque[bytes] = field(default_factory=deque[bytes])
    waiting_size: int = 0
    is_over: bool = False
    """/tmp holds more than it may, and more than before."""
    paused_until: float = 0.0
    """Small pieces are put together: the other side counts lines."""
    last: bool = False
    """No more input will come."""
    sent: int = 0
    dropped: int = 0


def _become(message: Message) -> NoReturn:
    """In the job's process: from here on it is the command."""
    os.chdir(str(message["directory"]))
    argv = [str(part) for part in cast("list[object]", message["argv"])]
    pairs = cast("dict[str, str]", message["environment"])
    os.execvpe(argv[0], argv, pairs)


def _in_job(message: Message, limits: Limits, failing: int) -> None:
    """The job's process, to its end. What goes wrong before a command has begun is told through `failing`."""
    for number in (signal.SIGCHLD, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.setsid()
        drop_rights(limits)
        _become(message)
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        os.write(failing, f"{error.strerror or error}{where}".encode()[:1000])
        os._exit(127)
    except Exception as error:  # noqa: BLE001 - whatever it is, this process must not go on
        os.write(failing, repr(error).encode()[:1000])
        os._exit(127)


class Agent:
    """Reads the host's lines, and runs one job at a time."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._lines = bytearray()
        self._limits = Limits()
        self._job: Job | None = None
        self._codes: dict[int, int] = {}
        self._told, telling = os.pipe()
        for end in (self._told, telling):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(telling, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _noted)

    def serve(self) -> None:
        """Until the port is gone."""
        self._send({"ready": os.uname().release})
        while True:
            poll = select.poll()
            poll.register(self._port, select.POLLIN)
            poll.register(self._told, select.POLLIN)
            job = self._job
            if job is not None:
                if job.output is not None and time.monotonic() >= job.paused_until:
                    poll.register(job.output, select.POLLIN)
                if job.input is not None and (job.waiting or job.last):
                    poll.register(job.input, select.POLLOUT)
            for descriptor, _ in poll.poll(self._wait_ms(job)):
                self._one(descriptor)
            if job is not None and not job.is_over and self._is_tmp_over(job):
                self._kill()

    @staticmethod
    def _wait_ms(job: Job | None) -> float | None:
        if job is None:
            return None
        pause = job.paused_until - time.monotonic()
        return min(_LOOK_MS, pause * 1000 + 1) if pause > 0 else _LOOK_MS

    def _one(self, descriptor: int) -> None:
        job = self._job
        if descriptor == self._port:
            self._read_port()
        elif descriptor == self._told:
            os.read(self._told, 512)
            self._reap()
            if job is not None and job.process in self._codes:
                self._end(job)
        elif job is not None and descriptor == job.output:
            self._forward(job)
        elif job is not None and descriptor == job.input:
            self._feed(job)

    def _read_port(self) -> None:
        content = os.read(self._port, 65_536)
        if not content:
            sys.exit(0)  # which ends the machine
        self._lines += content
        while (end := self._lines.find(b"\n")) >= 0:
            line = bytes(self._lines[:end])
            del self._lines[: end + 1]
            message = cast("Message", json.loads(line))
            try:
                self._obey(message)
            except (Refused, OSError, ValueError, KeyError, TypeError) as error:
                self._send({"id": message.get("id"), "failed": str(error) or repr(error)})

    def _obey(self, message: Message) -> None:
        what, job = str(message["op"]), self._job
        number = int(str(message["id"]))
        if what == "run":
            if job is not None:
                raise Refused("another command runs")
            self._job = self._start(number, message)
        elif what == "take":
            self._limits = take(message)
            self._send({"id": number, "end": "exited", "code": 0})
        elif what == "ping":
            self._send({"id": number, "end": "exited", "code": 0})
        elif job is None or job.id != number:
            return  # it has ended meanwhile
        elif what == "input":
            self._take_input(job, message)
        elif what == "kill":
            self._kill()

    def _take_input(self, job: Job, message: Message) -> None:
        content = base64.b64decode(str(message["data"]))
        job.last = job.last or bool(message["last"])
        if job.input is None:
            return
        if job.waiting_size + len(content) > WAITING:
            raise Refused("more input than fits")
        if content:
            job.waiting.append(content)
            job.waiting_size += len(content)

    def _start(self, number: int, message: Message) -> Job:
        reading, writing = os.pipe()
        taking, giving = os.pipe()
        failed, failing = os.pipe()
        os.set_inheritable(failing, False)
        kills_before = kills()
        process = os.fork()
        if process == 0:
            os.dup2(taking, 0)
            os.dup2(writing, 1)
            os.dup2(writing, 2)
            os.closerange(3, failing)
            os.closerange(failing + 1, 1024)
            _in_job(message, self._limits, failing)
        for end in (writing, taking, failing):
            os.close(end)
        text = os.read(failed, 1000)  # its end comes when the command takes over
        os.close(failed)
        if text:
            for end in (reading, giving):
                os.close(end)
            self._kill()
            raise Refused(text.decode("utf-8", "replace"))
        for end in (reading, giving):
            os.set_blocking(end, False)
        self._send({"id": number, "began": True})
        return Job(number, process, reading, giving, int(str(message["limit"])), kills_before, tmp_used())

    def _feed(self, job: Job) -> None:
        assert job.input is not None
        try:
            while job.waiting:
                written = os.write(job.input, job.waiting[0])
                job.waiting_size -= written
                if written < len(job.waiting[0]):
                    job.waiting[0] = job.waiting[0][written:]
                else:
                    job.waiting.popleft()
        except BlockingIOError:
            return
        except OSError:  # it does not want any
            job.waiting.clear()
            job.last = True
        if job.last:
            os.close(job.input)
            job.input = None

    def _forward(self, job: Job) -> bool:
        """Whether there was any output."""
        if job.output is None:
            return False
        try:
            content = os.read(job.output, CHUNK)
        except BlockingIOError:
            return False
        if len(content) < _SMALL:
            job.paused_until = time.monotonic() + _PAUSE_S
        kept = content[: max(0, job.limit - job.sent)]
        job.sent += len(kept)
        job.dropped += len(content) - len(kept)
        if kept:
            self._send({"id": job.id, "out": base64.b64encode(kept).decode()})
        if not content:
            os.close(job.output)
            job.output = None
        return bool(content)

    def _is_tmp_over(self, job: Job) -> bool:
        used = tmp_used()
        job.is_over = used > max(self._limits.tmp_bytes, job.tmp_before)
        return job.is_over

    def _end(self, job: Job) -> None:
        left = len((CGROUP / "cgroup.procs").read_text().split())
        self._kill()
        while self._forward(job):
            pass
        for end in (job.output, job.input):
            if end is not None:
                os.close(end)
        self._job = None
        code = os.waitstatus_to_exitcode(self._codes.pop(job.process))
        ended = "memory" if kills() > job.started_kills else "exited"
        if job.is_over or self._is_tmp_over(job):
            ended = "disk"
        answer = {"id": job.id, "end": ended, "code": code if code >= 0 else 128 - code}
        self._send({**answer, "left": left, "dropped": job.dropped})

    def _kill(self) -> None:
        """Everything of the job, until nothing is left."""
        until = time.monotonic() + KILLING_S
        procs = CGROUP / "cgroup.procs"
        while procs.read_text() and time.monotonic() < until:
            (CGROUP / "cgroup.kill").write_text("1")
            for (
                pid
            ) in procs.read_text().split():  # whose first thread has ended the line above does not reach
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            self._reap()
            select.select([self._told], [], [], 0.005)
        self._reap()
        if procs.read_text():
            sys.exit(1)  # a machine that cannot be emptied is not used further

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                process, status = os.waitpid(-1, os.WNOHANG)
                if process == 0:
                    return
                if self._job is not None and process == self._job.process:
                    self._codes[process] = status

    def _send(self, message: Message) -> None:
        view = memoryview(json.dumps(message).encode() + b"\n")
        while view:
            view = view[os.write(self._port, view) :]


def _noted(_number: int, _frame: FrameType | None) -> None:
    """A signal is read from the wake-up descriptor."""


def find_port(name: str) -> int:
    """The descriptor of a virtio-serial port."""
    for entry in (PLACE / "sys/class/virtio-ports").iterdir():
        if (entry / "name").read_text().strip() == name:
            return os.open(PLACE / "dev" / entry.name, os.O_RDWR | os.O_CLOEXEC)
    raise FileNotFoundError(f"no port {name}")


def main() -> None:
    """Never returns."""
    prepare()
    Agent(find_port("xclaw")).serve()


if __name__ == "__main__":
    main()
