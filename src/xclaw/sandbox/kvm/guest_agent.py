"""What runs in the guest as its first process: it does what the host says, one job at a time.

JSON lines over a virtio-serial port. A job is a command; it runs as the unprivileged user in a control group,
and everything in that is killed when the job ends.
Standard library only; it is copied into the image and never imported from there.
"""

import base64
import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import sys
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import NoReturn, cast

CHUNK = 24_576
"""Bytes of one piece of output."""
WAITING = 33_554_432
"""Bytes of input that may wait for a job that does not read."""
KILLING_S = 10.0
_PLACE = Path("/xclaw")
_CGROUP = _PLACE / "cgroup" / "job"
_PERIOD_US = 100_000
_TMP_MORE = 8_388_608
_LOOK_MS = 100
_SMALL, _PAUSE_S = 4_096, 0.01
_PASSWD = "sandbox:x:{uid}:{uid}::/workspace:/bin/sh\nnobody:x:65534:65534::/nonexistent:/bin/false\n"
_GROUP = "sandbox:x:{uid}:\nnogroup:x:65534:\n"
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_REMOUNT, _MS_BIND = 1, 2, 4, 32, 4096
_MNT_DETACH = 2
_CAPABILITIES = 64
_PR_CAPBSET_DROP, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 24, 22, 38
_LIBC = ctypes.CDLL(None, use_errno=True)

Message = Mapping[str, object]


class Refused(Exception):
    """What the host asked for cannot be done."""


def _checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _mount(source: str, target: Path, kind: str, flags: int, data: str = "") -> None:
    result = _LIBC.mount(
        source.encode(), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), data.encode()
    )
    _checked(result, f"mount at {target}")


@dataclass
class Limits:
    """What holds for every job, once the machine has been taken."""

    uid: int = 65_534
    filter: bytes = b""
    """Seccomp program, as the kernel wants it; empty: none."""
    tmp_bytes: int = 1 << 40
    """Of what may lie in /tmp, which is memory."""


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


def share(places: list[dict[str, object]]) -> None:
    """Mount the host's directories: each is (part of) a tag, and comes to a place of its own."""
    mounted: dict[str, Path] = {}
    for place in places:
        tag, part, target = str(place["tag"]), str(place["part"]), Path(str(place["target"]))
        if tag not in mounted:
            mounted[tag] = _PLACE / f"share-{len(mounted)}"
            mounted[tag].mkdir()
            _mount(
                tag,
                mounted[tag],
                "9p",
                _MS_NOSUID | _MS_NODEV,
                "trans=virtio,version=9p2000.L,msize=262144,cache=mmap,access=any",
            )
        target.mkdir(parents=True, exist_ok=True)
        flags = _MS_NOSUID | _MS_NODEV | (0 if place["writable"] else _MS_RDONLY)
        _mount(str(mounted[tag] / part), target, "none", _MS_BIND)
        _mount("none", target, "none", _MS_REMOUNT | _MS_BIND | flags)
    for where in mounted.values():
        _checked(_LIBC.umount2(os.fsencode(where), _MNT_DETACH), f"unmount {where}")


def take(message: Message) -> Limits:
    """Make the machine one task's own: its directories, its user, its limits."""
    share(cast("list[dict[str, object]]", message["places"]))
    _mount("none", Path("/tmp"), "none", _MS_REMOUNT | _MS_NOSUID | _MS_NODEV, f"size={_tmp_size(message)}")
    uid = int(str(message["uid"]))
    for name, text in (("passwd", _PASSWD), ("group", _GROUP)):
        (Path("/etc") / name).write_text(text.format(uid=uid))
    _mount("none", Path("/"), "none", _MS_REMOUNT | _MS_RDONLY | _MS_NOSUID | _MS_NODEV)
    (_CGROUP / "memory.max").write_text(str(message["memory"]))
    (_CGROUP / "memory.oom.group").write_text("1")
    (_CGROUP / "pids.max").write_text(str(message["processes"]))
    (_CGROUP / "cpu.max").write_text(f"{message['cpu_us']} {_PERIOD_US}")
    return Limits(uid, base64.b64decode(str(message["filter"])), int(str(message["tmp"])))


def _tmp_size(message: Message) -> int:
    """More than may be used, so that going over the limit can be told from a full disk."""
    return int(str(message["tmp"])) + _TMP_MORE


def tmp_used() -> int:
    found = os.statvfs("/tmp")
    return (found.f_blocks - found.f_bfree) * found.f_frsize


def prepare() -> None:
    """The control group that jobs run in; the kernel's settings can be read only."""
    for name in ("sys", "bus", "irq", "sysrq-trigger"):
        path = Path("/proc") / name
        if path.exists():
            _mount(str(path), path, "none", _MS_BIND)
            _mount("none", path, "none", _MS_REMOUNT | _MS_BIND | _MS_RDONLY | _MS_NOSUID | _MS_NODEV)
    (_PLACE / "cgroup" / "cgroup.subtree_control").write_text("+cpu +memory +pids")
    _CGROUP.mkdir()


def kills() -> int:
    """How often the memory limit has killed."""
    for line in (_CGROUP / "memory.events").read_text().splitlines():
        if line.startswith("oom_kill "):
            return int(line.split()[1])
    return 0


def _drop(limits: Limits) -> None:
    """From root to the unprivileged user, for good."""
    (_CGROUP / "cgroup.procs").write_text("0")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
    for capability in range(_CAPABILITIES):
        _LIBC.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)  # those that this kernel does not know fail
    os.setgroups([])
    os.setresgid(limits.uid, limits.uid, limits.uid)
    os.setresuid(limits.uid, limits.uid, limits.uid)
    os.umask(0o022)
    _checked(_LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")
    if limits.filter:
        program = ctypes.create_string_buffer(limits.filter, len(limits.filter))

        class Program(ctypes.Structure):
            _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))

        held = Program(len(limits.filter) // 8, ctypes.addressof(program))
        _checked(_LIBC.prctl(_PR_SET_SECCOMP, 2, ctypes.byref(held), 0, 0), "seccomp")


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
        _drop(limits)
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
        left = len((_CGROUP / "cgroup.procs").read_text().split())
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
        procs = _CGROUP / "cgroup.procs"
        while procs.read_text() and time.monotonic() < until:
            (_CGROUP / "cgroup.kill").write_text("1")
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
    for entry in (_PLACE / "sys/class/virtio-ports").iterdir():
        if (entry / "name").read_text().strip() == name:
            return os.open(_PLACE / "dev" / entry.name, os.O_RDWR | os.O_CLOEXEC)
    raise FileNotFoundError(f"no port {name}")


def main() -> None:
    """Never returns."""
    prepare()
    Agent(find_port("xclaw")).serve()


if __name__ == "__main__":
    main()
