"""What the processes below another hold: memory, and files that nobody can find by a name any more (standard library
only).

A process is asked through one of its threads that lives: its first may have ended before the others, and then
answers that there is nothing. The filter of system calls sees to it that all of them have the same descriptors.
"""

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path


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


def living(pids: Iterable[int]) -> list[int]:
    """A thread of each process by which it can be asked; none of those that have ended."""
    asked = (next(filter(_has_memory, (pid, *_threads(pid))), None) for pid in pids)
    return [pid for pid in asked if pid is not None]


def _has_memory(pid: int) -> bool:
    return resident_bytes(pid) is not None


def resident_bytes(pid: int) -> int | None:
    """What it has in memory, or swapped out. None of one that has ended, and of its first thread when that has."""
    return _kilobytes(f"/proc/{pid}/status", ("VmRSS:", "VmSwap:"))


def share_bytes(pid: int) -> int:
    """Its part of the memory that it uses."""
    share = _kilobytes(f"/proc/{pid}/smaps_rollup", ("Pss:", "SwapPss:"))
    return share or resident_bytes(pid) or 0


def _kilobytes(path: str, names: tuple[str, ...]) -> int | None:
    """The sum of these lines, in bytes; None where there is none of them."""
    with contextlib.suppress(OSError, ValueError):
        lines = Path(path).read_text("utf-8", "replace").splitlines()
        found = [int(line.split()[1]) * 1024 for line in lines if line.startswith(names)]
        return sum(found) if found else None
    return None


def unnamed_bytes(pids: Sequence[int], devices: set[int]) -> tuple[int, int]:
    """Bytes of open files without a name: in memory, and on these disks."""
    memory = disk = 0
    seen: set[tuple[int, int]] = set()
    for pid in pids:
        for number in _descriptors(pid):
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


def is_hiding(pids: Sequence[int], devices: set[int], *, memory: bool) -> bool:
    """Whether any of them holds files whose size nobody can look up: mapped, but without a name and not open; or
    on their way between two processes. On these disks, or with `memory` in memory."""
    return any(_maps_unnamed(pid, devices, memory) or _has_files_in_flight(pid) for pid in pids)


def _maps_unnamed(pid: int, devices: set[int], memory: bool) -> bool:
    with contextlib.suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/maps").read_text("utf-8", "replace").splitlines():
            if line.endswith(" (deleted)"):
                major, minor = line.split()[3].split(":")
                if memory != (os.makedev(int(major, 16), int(minor, 16)) in devices):
                    return True
    return False


def _has_files_in_flight(pid: int) -> bool:
    for number in _descriptors(pid):
        with contextlib.suppress(OSError):
            if stat.S_ISSOCK(Path(f"/proc/{pid}/fd/{number}").stat().st_mode):
                about = Path(f"/proc/{pid}/fdinfo/{number}").read_text()
                if any(line.startswith("scm_fds:") and line.split()[1] != "0" for line in about.splitlines()):
                    return True
    return False


def _descriptors(pid: int) -> list[str]:
    with contextlib.suppress(OSError):
        return os.listdir(f"/proc/{pid}/fd")  # noqa: PTH208 - often, and must be fast
    return []


def _threads(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(thread) for thread in os.listdir(f"/proc/{pid}/task")]  # noqa: PTH208 - often, and must be fast
    return []


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for thread in _threads(pid):
        with contextlib.suppress(OSError):
            found += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text().split())
    return found
