"""One command of a sandbox, as its keeper has it: bubblewrap and what is read from it (standard library only)."""

import contextlib
import errno
import fcntl
import os
import resource
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from xclaw.sandbox.linux import ground
from xclaw.sandbox.linux.control_groups import ControlGroup
from xclaw.sandbox.linux.first import REPORT_BYTES, Report

READ_BYTES = 65_536
_DRAIN_BYTES = 1 << 20
_FIRST_FREE = 20
"""Descriptors below are those that bubblewrap is given: the three standard ones, report, options, filter."""
_REPORT, _OPTIONS, _FILTER = 3, 4, 5
_OPEN_FILES = 1024


@dataclass(frozen=True)
class Launch:
    """What stays the same for all commands of a sandbox."""

    program: str
    mark: tuple[str, str]
    """Variable by which what was left over can be told from other processes."""
    group: ControlGroup
    filter: bytes
    """Empty where there is none for this machine."""
    file_bytes: int
    data_bytes: int | None
    processors: frozenset[int]
    """Empty where a control group bounds the processor time."""


class RunningCommand:
    """A command from its start until it is gone. All descriptors are non-blocking."""

    def __init__(self, launch: Launch, options: Sequence[str], command: Sequence[str], stdin: bytes) -> None:
        """Raises `OSError`."""
        self.status: int | None = None
        self.started_at = time.monotonic()
        self._stdin = memoryview(stdin)
        self.reported = Report()
        self.output, output = os.pipe()
        self.report, report = os.pipe()
        reading, writing = os.pipe() if stdin else (os.open(os.devnull, os.O_RDONLY), None)
        self.stdin: int | None = writing
        given = [reading, output, output, report, _in_memory(_packed(options))]
        if launch.filter:
            given.append(_in_memory(launch.filter))
        line = [
            launch.program,
            "--args",
            str(_OPTIONS),
            *(("--seccomp", str(_FILTER)) if launch.filter else ()),
        ]
        try:
            self.pid = _started(launch, [*line, "--", *command], given)
        except OSError:
            self.close()
            raise
        finally:
            for descriptor in {*given}:
                os.close(descriptor)
        for descriptor in (self.output, self.report, *(() if writing is None else (writing,))):
            os.set_blocking(descriptor, False)

    def feed(self) -> bool:
        """Write what fits of the input; false when there is no more, or nobody reads it."""
        if self.stdin is None:
            return False
        with contextlib.suppress(BlockingIOError):
            try:
                self._stdin = self._stdin[os.write(self.stdin, self._stdin[:READ_BYTES]) :]
            except BrokenPipeError:
                self._stdin = self._stdin[:0]
        if self._stdin:
            return True
        os.close(self.stdin)
        self.stdin = None
        return False

    def read(self) -> bytes | None:
        """A piece of output; empty at its end, None while there is none."""
        try:
            return os.read(self.output, READ_BYTES)
        except BlockingIOError:
            return None

    def listen(self) -> bool:
        """Read what the first process inside reports; false at its end."""
        try:
            said = os.read(self.report, REPORT_BYTES)
        except BlockingIOError:
            return True
        self.reported.add(said)
        return bool(said)

    def kill(self) -> None:
        if self.status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def drain(self, take: Callable[[bytes], None]) -> None:
        """When all is over: what is still in the pipe. More than a pipe holds comes from nobody."""
        taken = 0
        while taken < _DRAIN_BYTES and (piece := self.read()):
            take(piece)
            taken += len(piece)
        self.listen()

    def close(self) -> None:
        for descriptor in (self.output, self.report, *(() if self.stdin is None else (self.stdin,))):
            os.close(descriptor)
        self.stdin = None


def _packed(words: Sequence[str]) -> bytes:
    return b"".join(os.fsencode(word) + b"\0" for word in words)


def _in_memory(content: bytes) -> int:
    """A descriptor to read something from."""
    descriptor = os.memfd_create("order")
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _started(launch: Launch, line: Sequence[str], given: Sequence[int]) -> int:
    """Fork and become bubblewrap. Raises `OSError` when that is not possible."""
    keeper = os.getpid()
    telling, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            _become(launch, line, given, keeper)
        except OSError as error:
            os.write(told, str(error.errno or errno.EIO).encode())
        finally:
            os._exit(127)
    os.close(told)
    failed = os.read(telling, 16)
    os.close(telling)
    if failed:
        os.waitpid(pid, 0)
        number = int(failed)
        raise OSError(number, os.strerror(number))
    return pid


def _become(launch: Launch, line: Sequence[str], given: Sequence[int], keeper: int) -> None:
    ground.die_with_parent(keeper, signal.SIGKILL)
    os.setsid()
    launch.group.enter()
    if launch.processors:
        os.sched_setaffinity(0, launch.processors)
    high = [_moved(descriptor) for descriptor in given]
    for target, descriptor in enumerate(high):
        os.dup2(descriptor, target)
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # the listing's own is gone by now
            os.set_inheritable(int(entry.name), int(entry.name) < len(high))
    ground.bound(resource.RLIMIT_CORE, 1)  # 0 would still start the program that a host may have for dumps
    ground.bound(resource.RLIMIT_FSIZE, launch.file_bytes)
    ground.bound(resource.RLIMIT_NOFILE, _OPEN_FILES)
    ground.bound(resource.RLIMIT_MSGQUEUE, 0)
    ground.bound(resource.RLIMIT_SIGPENDING, _OPEN_FILES)
    if launch.data_bytes is not None:
        ground.bound(resource.RLIMIT_DATA, launch.data_bytes)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500")  # rather a command than whoever started it
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    name, value = launch.mark
    os.execve(line[0], list(line), {"PATH": "/usr/bin:/bin", name: value})


def _moved(descriptor: int) -> int:
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE)
