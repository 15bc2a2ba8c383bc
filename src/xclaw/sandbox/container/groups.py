"""The control groups of a sandbox's containers: podman makes them below one that has the sandbox's name."""

import contextlib

from xclaw.sandbox.linux.control_groups import ROOT, oom_kills


def memory_kills(name: str) -> int:
    """How many processes the kernel has killed because of the memory bound."""
    found = [
        *ROOT.glob(f"memory/{name}/libpod-*/memory.oom_control"),
        *ROOT.glob(f"{name}/libpod-*/memory.events"),
    ]
    total = 0
    for path in found:
        with contextlib.suppress(OSError, ValueError):  # it has just ended
            total += oom_kills(path.read_text())
    return total


def processes(name: str) -> list[int]:
    """Of the containers, by the host's numbers."""
    found: set[int] = set()
    for pattern in (f"pids/{name}/libpod-*/cgroup.procs", f"{name}/libpod-*/cgroup.procs"):
        for path in ROOT.glob(pattern):
            with contextlib.suppress(OSError, ValueError):  # it has just ended
                found.update(map(int, path.read_text().split()))
    return sorted(found)


def group_paths(name: str) -> list[str]:
    """Where they are, or would be."""
    return [*(f"{path}/{name}" for path in ROOT.iterdir() if path.is_dir()), str(ROOT / name)]
