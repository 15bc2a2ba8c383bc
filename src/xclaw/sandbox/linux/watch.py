"""What nobody bounds in the kernel is looked at while a command runs (standard library only): what its
directories take up and, where there is no control group, its memory.

Files without a name count as long as a process has them open: as disk or, if they are memory, as memory. There are
ways to hold one that nobody can measure. Whoever uses one of them is over its bound when more than that has gone from
the disk, or the memory, than can be accounted for.
"""

import contextlib
import os
import stat
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from xclaw.sandbox.linux.held import (
    is_hiding,
    living,
    resident_bytes,
    share_bytes,
    unnamed_bytes,
)
from xclaw.sandbox.linux.trees import Unmeasurable, allocated_bytes

SHORTEST_S = 0.05
SHARE = 10
"""Looking takes at most one part in so many of the time, but for `URGENT_SHARE` when the disk fills."""
URGENT_SHARE = 2
PATIENCE = 20
"""How many times in a row measuring may fail, because directories are moved while it looks."""
FULL_TIMES = 4
"""Nothing is started any more in what has grown to so many times its bound, and is larger by `FULL_BYTES`."""
FULL_BYTES = 268_435_456
"""What a single command may be faster by than whoever looks."""
FULL = "/workspace and /tmp are far beyond what they may hold; nothing more is run in this sandbox"


class Watch:
    """Of one sandbox. `begin` at a command's start, then `over` when `due_s` has passed."""

    def __init__(self, directories: Sequence[int], disk_bytes: int, memory_bytes: int | None) -> None:
        self._directories = directories
        self._disks = {os.fstat(directory).st_dev: directory for directory in directories}
        self._disk_bytes = disk_bytes
        self._memory_bytes = memory_bytes
        self._unnamed = 0
        self._used = self._measured()
        self._baseline = self._used
        self._at_start = self._used
        self._free = self._free_at_start = self._free_bytes()
        self._shared = _shared_bytes()
        self._due = self._disk_due = self._hidden_due = time.monotonic()
        self._cost = 0.0
        self._unmeasured = 0

    def begin(self) -> None:
        """A command is about to start: only what grows from now on is its doing."""
        self._unnamed = 0
        if self.is_over:  # it may have been cleared since
            self._disk_over()
        self._at_start = self._used
        self._free_at_start = self._free_bytes()
        self._shared = _shared_bytes()
        self._unmeasured = 0
        self._disk_due = self._hidden_due = time.monotonic() + SHORTEST_S
        self._due = time.monotonic() if self.is_full else self._disk_due

    @property
    def is_over(self) -> bool:
        """Whether an earlier command has left more on the disk than there may be."""
        return self._used - self._baseline > self._disk_bytes

    @property
    def is_full(self) -> bool:
        """Whether that is so much that no further command may be started."""
        full = max(self._disk_bytes * FULL_TIMES, self._disk_bytes + FULL_BYTES)
        return self._used - self._baseline > full

    def due_s(self) -> float:
        """Seconds until it is time to look."""
        return max(self._due - time.monotonic(), 0.0)

    def over(self, processes: Iterable[int]) -> str:
        """ "memory" or "disk" when these have gone over that bound together, else ""."""
        started = time.monotonic()
        pids = living(processes)
        memory, self._unnamed = unnamed_bytes(pids, set(self._disks))
        reason = ""
        if self.is_full:
            reason = "disk"
        elif self._memory_bytes is not None and self._exceeds(pids, self._memory_bytes - memory):
            reason = "memory"
        elif self._is_disk_due(started) and self._disk_over():
            reason = "disk"
        else:
            reason = self._hidden(pids, memory)
        now = time.monotonic()
        self._due = now + max(SHORTEST_S, (now - started) * URGENT_SHARE)
        return reason

    def settle(self) -> str:
        """After a command: "disk" when it ended over the bound between two looks. Measuring a large workspace
        takes long, so only when the file system has lost about as much as there was room. Directories that it has
        closed to itself are opened again, or no further command could be there."""
        self._unnamed = 0
        for directory in self._directories:
            mode = stat.S_IMODE(os.fstat(directory).st_mode)
            if mode & stat.S_IRWXU != stat.S_IRWXU:
                with contextlib.suppress(OSError):  # it is somebody else's
                    os.fchmod(directory, mode | stat.S_IRWXU)
        return "disk" if self._has_shrunk() and self._disk_over() else ""

    def _hidden(self, pids: Sequence[int], memory: int) -> str:
        """ "memory" or "disk" when more than the bound is missing there, and a process may well have it."""
        started = time.monotonic()
        if started < self._hidden_due:
            return ""
        missing = self._free_at_start - self._free_bytes() - max(self._used - self._at_start, 0)
        reason = ""
        if missing > self._disk_bytes and is_hiding(pids, set(self._disks), memory=False):
            reason = "disk"
        elif self._memory_bytes is not None:
            missing = _shared_bytes() - self._shared - memory
            if missing > self._memory_bytes and is_hiding(pids, set(self._disks), memory=True):
                reason = "memory"
        now = time.monotonic()
        self._hidden_due = now + (now - started) * SHARE
        return reason

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
        return self.is_over and self._used > self._at_start

    def _measured(self) -> int:
        return self._unnamed + sum(allocated_bytes(directory) for directory in self._directories)

    def _free_bytes(self) -> int:
        found = [os.fstatvfs(directory) for directory in self._disks.values()]
        return sum(disk.f_bavail * disk.f_frsize for disk in found)

    @staticmethod
    def _exceeds(pids: Sequence[int], bound: int) -> bool:
        """Pages that are shared count once; looking that up is slow, so only when the sum is over the bound."""
        if sum(resident_bytes(pid) or 0 for pid in pids) <= bound:
            return False
        return sum(share_bytes(pid) for pid in pids) > bound


def _shared_bytes() -> int:
    """Memory of the whole machine that is files, or shared: what no process has may still be there."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("Shmem:"):
            return int(line.split()[1]) * 1024
    return 0
