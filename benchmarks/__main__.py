"""Run all benchmarks, or those that are named, and print one table: `python -m benchmarks [name ...]`."""

import sys

from benchmarks import context, memory, overhead, recovery, stream, throughput
from benchmarks.setting import Row, show

ALL = {
    "overhead": overhead.main,
    "throughput": throughput.main,
    "memory": memory.main,
    "stream": stream.main,
    "recovery": recovery.main,
    "context": context.main,
}


def run() -> int:
    names = sys.argv[1:] or list(ALL)
    unknown = [name for name in names if name not in ALL]
    if unknown:
        print(f"unknown benchmark {unknown[0]!r}; there are {', '.join(ALL)}", file=sys.stderr)
        return 2
    rows: list[Row] = []
    for name in names:
        print(f"measuring {name} ...", file=sys.stderr)
        rows += ALL[name]()
    show(rows)
    return 0


if __name__ == "__main__":
    sys.exit(run())
