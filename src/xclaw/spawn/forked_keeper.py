"""The process between the runtime and a forked worker: `python -m xclaw.spawn.forked_keeper FD PARENT MODULE`.

It forks the worker, which goes on as `MODULE` with the line's descriptor, and adopts whatever the worker
leaves behind, also what left its group and session. When the worker ends, the runtime hangs up (end-of-file
on stdin) or dies, it kills everything below it, writes the last of the worker's output to its stdout, and
ends as the worker did. Standard library only: it is there before anything else is imported.
"""

import contextlib
import ctypes
import os
import resource
import runpy
import select
import signal
import sys
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

LOG_BYTES = 8_192
"""How much of the worker's output is kept."""
KILLING_S = 5.0
_READ_BYTES = 65_536
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_ROUND_S = 0.01


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def descendants(root: int) -> set[int]:
    """Every process below `root` that is not a zombie; empty without /proc."""
    parents: dict[int, int] = {}
    living: set[int] = set()
    with contextlib.suppress(OSError):
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            with contextlib.suppress(OSError, ValueError, IndexError):
                # The name in brackets may hold anything; the state and numbers follow it.
                state, parent = (entry / "stat").read_bytes().rpartition(b")")[2].split()[:2]
                parents[int(entry.name)] = int(parent)
                if state not in (b"Z", b"X"):
                    living.add(int(entry.name))
    return {pid for pid in living if _is_below(pid, root, parents)}


def _is_below(pid: int, root: int, parents: dict[int, int]) -> bool:
    above = parents.get(pid, 0)
    for _ in range(len(parents)):
        if above == root:
            return True
        if above not in parents:
            return False
        above = parents[above]
    return False


def _noted(_number: int, _frame: FrameType | None) -> None:
    """A signal is read from the wake-up descriptor."""


class _Keeper:
    """Waits for the first of: the worker's end, the runtime's end."""

    def __init__(self, worker: int, log: int, parent: int) -> None:
        self._worker = worker
        self._log = log
        self._parent = parent
        self._tail: deque[bytes] = deque()
        self._size = 0
        self.status: int | None = None
        self._told, telling = os.pipe()
        for end in (self._told, telling, log):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(telling, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, _noted)

    def wait(self) -> None:
        """Until the worker has ended or must."""
        poll = select.poll()
        for descriptor in (self._told, self._log, sys.stdin.fileno()):
            poll.register(descriptor, select.POLLIN | select.POLLHUP)
        while os.getppid() == self._parent:
            for descriptor, _ in poll.poll(1_000):
                if descriptor == self._told:
                    told = os.read(self._told, 512)
                    if any(number != signal.SIGCHLD for number in told):
                        return
                elif descriptor == self._log:
                    if self._read_log() == 0:
                        poll.unregister(self._log)
                elif not os.read(descriptor, 512):
                    return
            self._reap()
            if self.status is not None:
                return

    def kill_all(self) -> None:
        """Kill what is below until nothing is: each round finds what was forked meanwhile."""
        until = time.monotonic() + KILLING_S
        while time.monotonic() < until:
            found = descendants(os.getpid()) | ({self._worker} if self.status is None else set[int]())
            for pid in found:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            self._reap()
            if not found:
                break
            select.select([self._told], [], [], _ROUND_S)
        while self._read_log():
            pass

    def tail(self) -> bytes:
        return b"".join(self._tail)[-LOG_BYTES:]

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
                if pid == self._worker:
                    self.status = status

    def _read_log(self) -> int | None:
        """How many bytes there were; 0 at the end, None while there are none."""
        try:
            chunk = os.read(self._log, _READ_BYTES)
        except BlockingIOError:
            return None
        self._tail.append(chunk)
        self._size += len(chunk)
        while self._size - len(self._tail[0]) > LOG_BYTES:
            self._size -= len(self._tail.popleft())
        return len(chunk)


def _become_worker(line: int, module: str, log: int, keeper: int) -> None:
    """In the forked process: the outputs into the log, everything else as in a fresh interpreter."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != keeper:  # it was killed before it could have taken this process along
        os._exit(1)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    for output in (1, 2):
        os.dup2(log, output)
    os.close(log)
    sys.argv = [module, str(line)]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _end_as(status: int | None) -> None:
    """End as the worker did, so that whoever waits for this process sees its signal or exit code."""
    code = os.waitstatus_to_exitcode(status) if status is not None else -signal.SIGKILL
    if code >= 0:
        os._exit(code)
    number = -code
    with contextlib.suppress(OSError, ValueError):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(1)


def main(arguments: Sequence[str]) -> None:
    """Never returns in the keeper; returns in the worker when its module does."""
    line, parent, module = int(arguments[0]), int(arguments[1]), arguments[2]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    reading, writing = os.pipe()
    own = os.getpid()
    worker = os.fork()
    if worker == 0:
        os.close(reading)
        _become_worker(line, module, writing, own)
        return
    os.close(writing)
    os.close(line)
    keeper = _Keeper(worker, reading, parent)
    keeper.wait()
    keeper.kill_all()
    with contextlib.suppress(OSError):
        os.set_blocking(1, False)
        os.write(1, keeper.tail())
    _end_as(keeper.status)


if __name__ == "__main__":
    main(sys.argv[1:])
