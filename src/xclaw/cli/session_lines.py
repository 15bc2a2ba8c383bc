"""Sessions, their experts and their answers as lines for people; from JSON, wherever it came from."""

import time
from collections.abc import Mapping, Sequence
from typing import cast

from xclaw.cli.text import one_line, seconds, tokens


def session_line(row: Mapping[str, object]) -> str:
    """One session of a list."""
    residents = cast("Sequence[str]", row["residents"])
    team = f"  with {one_line(', '.join(residents), 100)}" if residents else ""
    running = "  running" if row["running"] else ""
    title = one_line(str(row["title"]), 60)
    return f"{one_line(str(row['session']), 40):20}  {_ago(row['used_at'])}  {title}{team}{running}"


def resident_lines(row: Mapping[str, object]) -> list[str]:
    """One expert of a session: what it last did, and what it remembers."""
    remembers = cast("Mapping[str, object]", row["remembers"])
    count, turns = _count(row["messages"], "message"), _count(remembers["turns"], "message")
    size = tokens(int(str(remembers["tokens"])))
    return [
        f"{one_line(str(row['agent']), 40)}  {count}, the last {_ago(row['last_at'])}"
        f"{'  (answering)' if row['running'] else ''}; remembers {turns}, about {size} tokens",
        f"    asked: {one_line(str(row['last_request']), 100)}",
        f"    said:  {one_line(str(row['last_answer']), 100)}",
    ]


def task_line(row: Mapping[str, object]) -> str:
    """One answer of a session."""
    outcome = row["outcome"] or "running"
    return (
        f"{row['run']}  {one_line(str(outcome), 20):11}  {one_line(str(row['agent']), 30):14}  "
        f"{_ago(row['started_at'])}  {one_line(str(row['title']), 60)}"
    )


def route_lines(explanation: object, depth: int = 0) -> list[str]:
    """What the router says of a message, field by field."""
    indent = "  " * depth
    if not isinstance(explanation, Mapping):
        return [f"{indent}{one_line(str(explanation), 300)}"]
    lines: list[str] = []
    for name, value in cast("Mapping[str, object]", explanation).items():
        if isinstance(value, Mapping | list | tuple):
            lines.append(f"{indent}{one_line(name, 40)}:")
            for item in cast("Sequence[object]", [value] if isinstance(value, Mapping) else value):
                lines += route_lines(item, depth + 1)
        elif value not in ("", None):
            lines.append(f"{indent}{one_line(name, 40)}: {one_line(str(value), 300)}")
    return lines


def _ago(moment: object) -> str:
    return f"{seconds(max(0.0, time.time() - float(str(moment))))} ago"


def _count(number: object, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
