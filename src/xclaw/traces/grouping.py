"""Entries of a tree, run by run."""

from collections.abc import Iterable

from xclaw.contracts.events import Entry


def entries_by_run(entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    """The stored entries of each run in the run's own order; runs in order of first appearance."""
    runs: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.event.kind != "text_delta":
            runs.setdefault(entry.address.run_id, []).append(entry)
    for own in runs.values():
        own.sort(key=lambda entry: entry.seq)
    return runs
