"""The control groups of a sandbox's containers: podman makes them below one that has the sandbox's name."""

import contextlib
import time
from pathlib import Path

from xclaw.sandbox.bubblewrap.control_groups import ROOT

_EMPTY_S, _STEP_S = 2.0, 0.01


def memory_kills(name: str) -> int:
    """How many processes the kernel has killed because of the memory bound."""
    found = [
        *ROOT.glob(f"memory/{name}/libpod-*/memory.oom_control"),
        *ROOT.glob(f"{name}/libpod-*/memory.events"),
    ]
    total = 0
    for path in found:
        with contextlib.suppress(OSError, ValueError):  # it has just ended
            for line in path.read_text().splitlines():
                if line.startswith("oom_kill "):
                    total += int(line.split()[1])
    return total


def group_paths(name: str) -> list[str]:
    """Where they are, or would be."""
    return [*(f"{path}/{name}" for path in ROOT.iterdir() if path.is_dir()), str(ROOT / name)]


def remove_groups_of(name: str) -> None:
    """Once its containers have ended."""
    until = time.monotonic() + _EMPTY_S
    for path in map(Path, group_paths(name)):
        while path.is_dir() and time.monotonic() < until:
            for below in [*path.glob("*/"), path]:
                with contextlib.suppress(OSError):
                    below.rmdir()
            if path.is_dir():
                time.sleep(_STEP_S)
