"""Control groups of one sandbox: memory, processes and processor time of all its processes together
(standard library only). Version 1 and 2; where none can be made there is none, and others watch.
"""

import contextlib
import errno
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
EXTRA_PROCESSES = 4
"""What stands around a command: bubblewrap's own, the first process inside."""
_PERIOD_US = 100_000
_REMOVING_S = 2.0
_ROUND_S = 0.01
_EMPTY_S, _EMPTY_STEP_S = 2.0, 0.005
_V1 = ("memory", "pids", "cpu")


@dataclass(frozen=True)
class Bounds:
    memory_bytes: int
    processes: int
    cpus: float


@dataclass
class ControlGroup:
    """One group per controller, or one for all. Entered by writing to what was opened while it was allowed."""

    note: Path
    """Where each path is written to before there is a group of it, for whoever has to remove what is left."""
    paths: list[str] = field(default_factory=list[str])
    counted: bool = False
    """Memory is bounded."""
    timed: bool = False
    """Processor time is bounded."""
    _entries: list[int] = field(default_factory=list[int])
    _events: int | None = None

    def enter(self) -> None:
        """Move this process in. Raises `OSError`."""
        for entry in self._entries:
            os.write(entry, b"0")

    def memory_kills(self) -> int:
        """How many processes the kernel has killed because of the memory bound."""
        if self._events is None:
            return 0
        return oom_kills(os.pread(self._events, 4_096, 0).decode())

    def add(self, directory: Path, bounds: Mapping[str, str], events: str = "") -> None:
        """Make a group with bounds. Raises `OSError`; then nothing is left of it."""
        with self.note.open("a") as note:
            note.write(f"{directory}\n")
        directory.mkdir()
        try:
            for name, value in bounds.items():
                (directory / name).write_text(value)
            entry = os.open(directory / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)
            if events:
                self._events = os.open(directory / events, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            directory.rmdir()
            raise
        self.paths.append(str(directory))
        self._entries.append(entry)


def make_group(name: str, bounds: Bounds, note: Path) -> ControlGroup:
    """The groups that can be made here, under that name."""
    group = ControlGroup(note)
    own = _own_groups()
    if (ROOT / "cgroup.controllers").is_file():
        _make_v2(group, name, bounds, own.get("", "/"))
    else:
        _make_v1(group, name, bounds, own)
    return group


def oom_kills(events: str) -> int:
    """How often the kernel has killed for memory, from a group's file of events."""
    counts = dict(line.split(maxsplit=1) for line in events.splitlines() if " " in line)
    return int(counts.get("oom_kill", "0"))


def remove_groups(paths: Sequence[str]) -> bool:
    """Remove groups, with those right below them; whether all are gone. A group is in use for a moment after
    its last process was killed."""
    until = time.monotonic() + _REMOVING_S
    left = [path for path in paths if not _removed(Path(path), until)]
    return not left


def _removed(group: Path, until: float) -> bool:
    while True:
        for below in group.glob("*/"):
            with contextlib.suppress(OSError):
                below.rmdir()
        try:
            group.rmdir()
        except FileNotFoundError:
            return True
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > until:
                return False
            time.sleep(_ROUND_S)


def _own_groups() -> dict[str, str]:
    """By controller, "" for version 2: this process's group."""
    found: dict[str, str] = {}
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, names, path = line.split(":", 2)
            for name in names.split(","):
                found[name] = path
    return found


def _make_v1(group: ControlGroup, name: str, bounds: Bounds, own: Mapping[str, str]) -> None:
    quota = str(max(int(bounds.cpus * _PERIOD_US), 1_000))
    values = {
        "memory": {"memory.limit_in_bytes": str(bounds.memory_bytes)},
        "pids": {"pids.max": str(bounds.processes + EXTRA_PROCESSES)},
        "cpu": {"cpu.cfs_period_us": str(_PERIOD_US), "cpu.cfs_quota_us": quota},
    }
    for controller in _V1:
        above = ROOT / controller / own.get(controller, "/").lstrip("/")
        try:
            events = "memory.oom_control" if controller == "memory" else ""
            group.add(above / name, values[controller], events)
        except OSError:
            continue
        group.counted |= controller == "memory"
        group.timed |= controller == "cpu"
    if group.counted:
        with contextlib.suppress(OSError):  # only where swap is counted
            path = Path(group.paths[0], "memory.memsw.limit_in_bytes")
            path.write_text(str(bounds.memory_bytes))


def _make_v2(group: ControlGroup, name: str, bounds: Bounds, own: str) -> None:
    """Beside this process's group or one further up: a group with processes in it has no groups with bounds."""
    place = ROOT / own.lstrip("/")
    for above in [parent for parent in place.parents if parent.is_relative_to(ROOT)] or [ROOT]:
        with contextlib.suppress(OSError):
            offered = (above / "cgroup.subtree_control").read_text().split()
            if not {"memory", "pids"} <= set(offered):
                continue
            values = {
                "memory.max": str(bounds.memory_bytes),
                "pids.max": str(bounds.processes + EXTRA_PROCESSES),
            }
            if "cpu" in offered:
                values["cpu.max"] = f"{max(int(bounds.cpus * _PERIOD_US), 1_000)} {_PERIOD_US}"
            group.add(above / name, values, "memory.events")
            group.counted, group.timed = True, "cpu" in offered
            with contextlib.suppress(OSError):
                Path(group.paths[0], "memory.swap.max").write_text("0")
            return
