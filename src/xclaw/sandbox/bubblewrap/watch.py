"""What nobody bounds in the kernel is looked at while a command runs (standard library only): what its
directories take up and, where there is no control group, its memory.

Files without a name count as long as a process has them open: as disk or, if they are memory, as memory.
"""

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from xclaw.sandbox.bubblewrap.trees import Unmeasurable, allocated_bytes

SHORTEST_S = 0.05
SHARE = 10
"""Looking takes at most one part in so many of the time, but for `URGENT_SHARE` when the disk fills."""
URGENT_SHARE = 2
PATIENCE = 20
"""How many times in a row measuring may fail, because directories are moved while it looks."""
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Watch:
    """Of one sandbox. `begin` at a command's start, then `over` when `due_s` has passed."""

    def __init__(self, directories: Sequence[int], disk_bytes: int, memory_bytes: int | None) -> None:
        self._directories = directories
        self._devices = {os.fstat(directory).st_dev for directory in directories}
        self._disk_bytes = disk_bytes
        self._memory_bytes = memory_bytes
        self._unnamed = 0
        self._used = self._measured()
        self._baseline = self._used
        self._at_start = self._used
        self._free = self._free_bytes()
        self._due = self._disk_due = time.monotonic()
        self._cost = 0.0
        self._unmeasured = 0

    def begin(self) -> None:
        """A command is about to start: only what grows from now on is its doing."""
        self._unnamed = 0
        self._at_start = self._used
        self._unmeasured = 0
        self._due = self._disk_due = time.monotonic() + SHORTEST_S

    def due_s(self) -> float:
        """Seconds until it is time to look."""
        return max(self._due - time.monotonic(), 0.0)

    def over(self, root: int) -> str:
        """ "memory" or "disk" when everything below process `root` has gone over that bound, else ""."""
        started = time.monotonic()
        pids = tuple(descendants(root))
        memory, self._unnamed = _unnamed_files(pids, self._devices)
        reason = ""
        if self._memory_bytes is not None and self._exceeds(pids, self._memory_bytes - memory):
            reason = "memory"
        elif self._is_disk_due(started) and self._disk_over():
            reason = "disk"
        now = time.monotonic()
        self._due = now + max(SHORTEST_S, (now - started) * URGENT_SHARE)
        return reason

    def settle(self) -> str:
        """After a command: "disk" when it ended over the bound between two looks. Measuring a large workspace
        takes long, so only when the file system has lost about as much as there was room."""
        self._unnamed = 0
        return "disk" if self._has_shrunk() and self._disk_over() else ""

    def _is_disk_due(self, now: float) -> bool:
        """By the clock, or earlier when the disk fills."""
        if now >= self._disk_due:
            return True
        return self._has_shrunk() and now >= self._disk_due - self._cost * (SHARE - URGENT_SHARE)

    def _has_shrunk(self) -> bool:
        """Whether the file system has lost half of what there was room for when it was last measured."""
        room = self._disk_bytes - (self._used - self._baseline)
        return self._free - self._free_bytes() > room // 2

    def _disk_over(self) -> bool:
        started = time.monotonic()
        try:
            self._used = self._measured()
            self._unmeasured = 0
        except Unmeasurable:
            self._unmeasured += 1
            return self._unmeasured > PATIENCE
        self._free = self._free_bytes()
        self._cost = time.monotonic() - started
        self._disk_due = time.monotonic() + max(SHORTEST_S, self._cost * SHARE)
        return self._used - self._baseline > self._disk_bytes and self._used > self._at_start

    def _measured(self) -> int:
        return self._unnamed + sum(allocated_bytes(directory) for directory in self._directories)

    def _free_bytes(self) -> int:
        found = os.fstatvfs(self._directories[0])
        return found.f_bavail * found.f_frsize

    @staticmethod
    def _exceeds(pids: Sequence[int], bound: int) -> bool:
        """Pages that are shared count once; looking that up is slow, so only when the sum is over the bound."""
        if sum(_resident(pid) for pid in pids) <= bound:
            return False
        return sum(_share(pid) for pid in pids) > bound


def descendants(root: int) -> Iterator[int]:
    """Every living process below another."""
    waiting = [root]
    seen = {root}
    while waiting:
        above = waiting.pop()
        for pid in _children(above):
            if pid not in seen:
                seen.add(pid)
                waiting.append(pid)
                yield pid


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - often, and must be fast
            with contextlib.suppress(OSError):
                found += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text().split())
    return found


def _resident(pid: int) -> int:
    with contextlib.suppress(OSError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    return 0


def _share(pid: int) -> int:
    """Its part of the memory that it uses."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return _resident(pid)


def _unnamed_files(pids: Sequence[int], devices: set[int]) -> tuple[int, int]:
    """Bytes in memory and on disk that are held open only."""
    memory = disk = 0
    seen: set[tuple[int, int]] = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            for number in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208 - often, and must be fast
                with contextlib.suppress(OSError):
                    status = Path(f"/proc/{pid}/fd/{number}").stat()
                    identity = (status.st_dev, status.st_ino)
                    if status.st_nlink or not status.st_blocks or identity in seen:
                        continue
                    seen.add(identity)
                    if status.st_dev in devices:
                        disk += status.st_blocks * 512
                    else:
                        memory += status.st_blocks * 512
    return memory, disk
