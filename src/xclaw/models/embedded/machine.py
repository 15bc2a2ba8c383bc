"""What this machine has left: memory and disk, checked before gigabytes are spent."""

import shutil
from pathlib import Path

from xclaw.contracts.errors import NoModel

_CGROUP = Path("/sys/fs/cgroup")
_GB = 1_000_000_000


def available_memory() -> int | None:
    """Bytes that a new process can take without swapping; None where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
        kib = next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration, IndexError):
        return None
    in_container = _container_memory()
    return kib * 1024 if in_container is None else min(kib * 1024, in_container)


def _container_memory() -> int | None:
    """What a container's own limit leaves. Its file cache counts as free: the kernel takes it back."""
    try:
        limit = int((_CGROUP / "memory.max").read_text("ascii"))
        used = int((_CGROUP / "memory.current").read_text("ascii"))
        lines = (_CGROUP / "memory.stat").read_text("ascii").splitlines()
        cache = sum(int(line.split()[1]) for line in lines if line.startswith("inactive_file "))
    except (OSError, ValueError, IndexError):
        return None  # "max", another cgroup version, or none
    return max(0, limit - used + cache)


def check_memory(needed: int) -> None:
    """Raises `NoModel` when a model of `needed` bytes would not fit."""
    available = available_memory()
    if available is not None and available < needed:
        raise NoModel(
            f"the embedded model needs {needed / _GB:.1f} GB of memory and {available / _GB:.1f} GB is "
            "available: close other programs, or use a provider's model (set `OPENAI_API_KEY` or a base URL)"
        )


def check_disk(directory: Path, needed: int) -> None:
    """Raises `NoModel` when `needed` more bytes would not fit into `directory`."""
    free = shutil.disk_usage(directory).free
    if free < needed:
        raise NoModel(
            f"the embedded model needs {needed / _GB:.1f} GB of disk in {str(directory)!r} and "
            f"{free / _GB:.1f} GB is free: make room, or choose another cache directory"
        )
