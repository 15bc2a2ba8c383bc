"""What `xclaw --help` and `xclaw --version` cost before they say anything: CPU time of a fresh process."""

import resource
import subprocess
import sys
from pathlib import Path

from benchmarks.setting import Row, median

ROUNDS = 9
XCLAW = str(Path(sys.executable).parent / "xclaw")


def cpu_ms(*command: str) -> float:
    """CPU milliseconds of one command, kernel time included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) * 1000


def measure() -> list[Row]:
    rows: list[Row] = []
    cpu_ms(XCLAW, "--help")
    for option in ("--help", "--version"):
        pairs = [
            (cpu_ms(XCLAW, option), cpu_ms(sys.executable, "-c", "import asyncio")) for _ in range(ROUNDS)
        ]
        ours, bare = (median([pair[side] for pair in pairs]) for side in (0, 1))
        rows.append(
            Row(f"xclaw {option}: CPU ms", f"{ours:.0f}", f"{bare:.0f}", f"{ours / bare:.1f}x", "250 ms")
        )
    return rows


def main() -> list[Row]:
    return measure()
