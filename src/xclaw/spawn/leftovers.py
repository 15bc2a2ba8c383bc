"""What is left of a worker whose keeper was killed: nobody stands above it any more, and a process that had left
its group is found by a mark in its environment only. Nothing is found without /proc."""

import contextlib
import os
import signal
from pathlib import Path

MARK = "XCLAW_WORKER"
"""Environment variable of a worker and of everything below it: who started it, and those above, as a path."""
_ROUNDS = 20


def end_marked(mark: str) -> int:
    """Kill every process of `mark`, and of marks below it, until there is none; answers how many there were."""
    killed: set[int] = set()
    for _ in range(_ROUNDS):
        found = _marked(mark)
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        killed |= found
        if not found:
            break
    return len(killed)


def _marked(mark: str) -> set[int]:
    found: set[int] = set()
    own, below = f"{MARK}={mark}".encode(), f"{MARK}={mark}/".encode()
    with contextlib.suppress(OSError):
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            with contextlib.suppress(OSError):  # of another user, or gone; a zombie has no environment
                words = (entry / "environ").read_bytes().split(b"\0")
                if any(word == own or word.startswith(below) for word in words):
                    found.add(int(entry.name))
    return found
