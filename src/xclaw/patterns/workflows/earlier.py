"""What agents of earlier workflows answered, found in the journal."""

import json
from collections.abc import Mapping, Sequence
from typing import cast

from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.events import ChildSpawned, Entry, RunEnded, ToolCallStarted
from xclaw.contracts.journal import Journal
from xclaw.contracts.results import Result

MAX_GENERATIONS = 20


async def earlier_results(journal: Journal, run_id: str, session_id: str) -> Mapping[str, Result]:
    """The successful agents of the workflows of a run, and of the runs that those took up, by key.

    Raises `ToolFailed` when there is no such run in the session: what others asked is nobody's business.
    """
    found: dict[str, Result] = {}
    waiting, seen = [run_id], set[str]()
    while waiting and len(seen) < MAX_GENERATIONS:
        current = waiting.pop(0)
        if current in seen:
            continue
        seen.add(current)
        row = await journal.run_row(current)
        if row is None or row.session_id != session_id:
            raise ToolFailed(f"resume: there is no run {current[:80]!r} in this conversation")
        entries = await journal.read_tree(row.root_id)
        own = [entry for entry in entries if entry.address.run_id == current]
        for key, result in _ended(own, entries).items():
            found.setdefault(key, result)
        waiting += _taken_up(own)
    return found


def _ended(own: Sequence[Entry], tree: Sequence[Entry]) -> dict[str, Result]:
    """By the key of each agent that a workflow started, the latest if there were several calls."""
    results = {
        entry.address.run_id: entry.event.result for entry in tree if isinstance(entry.event, RunEnded)
    }
    found: dict[str, Result] = {}
    for entry in own:
        event = entry.event
        if isinstance(event, ChildSpawned) and event.task.mode == "workflow":
            result = results.get(event.child_run_id)
            if result is not None and result.succeeded:
                found[event.task.key] = result
    return found


def _taken_up(own: Sequence[Entry]) -> list[str]:
    """Runs whose results the workflows of this one had taken."""
    found: list[str] = []
    for entry in own:
        event = entry.event
        if isinstance(event, ToolCallStarted) and event.name == "workflow":
            try:
                arguments: object = json.loads(event.arguments)
            except ValueError:
                continue
            if isinstance(arguments, dict):
                resume = cast("dict[str, object]", arguments).get("resume")
                if isinstance(resume, str) and resume.strip():
                    found.append(resume.strip())
    return found
