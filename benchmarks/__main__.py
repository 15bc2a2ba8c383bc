"""Run all benchmarks, or those that are named, and print one table: `python -m benchmarks [name ...]`.

Each runs in a process of its own: what one has left in memory would be part of the next one's figures.
"""

import json
import subprocess
import sys
from dataclasses import asdict

from benchmarks import (
    commands,
    context,
    forked,
    gateway,
    memory,
    overhead,
    recovery,
    sandbox,
    stream,
    throughput,
)
from benchmarks.setting import Row, show

ALL = {
    "overhead": overhead.main,
    "throughput": throughput.main,
    "memory": memory.main,
    "stream": stream.main,
    "recovery": recovery.main,
    "context": context.main,
    "gateway": gateway.main,
    "forked": forked.main,
    "commands": commands.main,
    "sandbox": sandbox.main,
}
ALONE = "--alone"
"""Measure one benchmark in this process and print its rows as JSON."""


def measured(name: str) -> list[Row]:
    """The rows of one benchmark; one that breaks is a row of the table, and stops none of the others."""
    print(f"measuring {name} ...", file=sys.stderr)
    command = [sys.executable, "-m", "benchmarks", ALONE, name]
    process = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if process.returncode:
        return [Row(name, f"broke (exit code {process.returncode})")]
    return [Row(**row) for row in json.loads(process.stdout.splitlines()[-1])]


def run(arguments: list[str]) -> int:
    if arguments[:1] == [ALONE]:
        [name] = arguments[1:]
        print(json.dumps([asdict(row) for row in ALL[name]()]))
        return 0
    names = arguments or list(ALL)
    unknown = [name for name in names if name not in ALL]
    if unknown:
        print(f"unknown benchmark {unknown[0]!r}; there are {', '.join(ALL)}", file=sys.stderr)
        return 2
    show([row for name in names for row in measured(name)])
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
