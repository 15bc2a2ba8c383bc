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


def route_lines(explained: Mapping[str, object]) -> list[str]:
    """Who would answer a message and why, then what each rule made of it."""
    lines = [f"{one_line(str(explained['agent']), 40)}: {one_line(str(explained['reason']), 300)}"]
    for rule in cast("Sequence[Mapping[str, object]]", explained["considered"]):
        if rule["matched"]:
            words = cast("Sequence[str]", rule["words"])
            verdict = f"yes, by {one_line(', '.join(words), 200)}"
        else:
            verdict = f"no: {one_line(str(rule['why_not']), 200)}"
        name, agent = one_line(str(rule["rule"]), 40), one_line(str(rule["agent"]), 40)
        lines.append(f"    {name} ({agent})  {verdict}")
    return lines


def _ago(moment: object) -> str:
    return f"{seconds(max(0.0, time.time() - float(str(moment))))} ago"


def _count(number: object, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
