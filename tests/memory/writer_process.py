"""A process that writes notes or scratchpad entries, and can die with the lock in its hands.

    writer_process.py ROOT memory|pad|recall NAME COUNT [die]

Waits for a line on its input, then writes COUNT times ("recall": and asks for what it wrote); prints one line: the longest write in seconds.
With "die" it then takes the lock, leaves half a line behind, and kills itself.
"""

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

from xclaw.contracts.memory import Whose
from xclaw.memory.locking import locked
from xclaw.memory.memory import FileMemory
from xclaw.memory.scratchpad import FileScratchpad
from xclaw.memory.settings import MemorySettings

WHOSE = Whose(conversation="cli")


def settings_in(root: str) -> MemorySettings:
    return MemorySettings(f"{root}/memory", f"{root}/pads", max_file_bytes=4_000_000)


def file_of(root: str, kind: str) -> Path:
    """The file that all writers share."""
    if kind == "memory":
        return Path(root, "memory", "team-memory", "shared-findings.md")
    return Path(root, "pads", "of-cli", "scratchpad.jsonl")


async def write_once(root: str, kind: str, name: str, number: int) -> None:
    memory = FileMemory(settings_in(root), None)
    if kind == "memory":
        await memory.remember(f"fact {number} of {name}", agent=name, scope="team")
    elif kind == "recall":
        await memory.remember(f"fact {number}x of {name}", agent=name, scope="team")
        found = await memory.recall(f"{number}x {name}", 1, agent=name)
        assert found[0].text == f"fact {number}x of {name}"
    else:
        pad = FileScratchpad(settings_in(root))
        await pad.append(WHOSE, "log.md", f"fact {number} of {name}", author=name)


async def write_all(root: str, kind: str, name: str, count: int) -> float:
    longest = 0.0
    for number in range(count):
        began = time.monotonic()
        await write_once(root, kind, name, number)
        longest = max(longest, time.monotonic() - began)
    return longest


def die_with_the_lock(path: Path) -> None:
    with locked(path.parent / ".lock"):
        with path.open("ab") as file:
            half = "- [m00000000ff · 2026-11" if path.suffix == ".md" else '{"op":"append","na'
            file.write(half.encode())
        os.kill(os.getpid(), signal.SIGKILL)


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    root, kind, name, count, *rest = sys.argv[1:]
    say("ready")
    sys.stdin.readline()
    longest = asyncio.run(write_all(root, kind, name, int(count)))
    say(f"{longest:.3f}")
    if rest == ["die"]:
        die_with_the_lock(file_of(root, kind))


if __name__ == "__main__":
    main()
