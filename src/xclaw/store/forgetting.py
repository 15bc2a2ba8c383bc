"""Deletes sessions: out of sight in one transaction, out of the file in many small ones."""

import json
import sqlite3
import time
from collections.abc import Callable

from xclaw.contracts.errors import UsageError
from xclaw.store.database import transaction

SLICE_S = 0.01
"""How long one step of `sweep` deletes; committing it takes as long again, or twice."""
_ROWS = 50
"""Events between two looks at the clock."""

_TREES = """
    FROM runs WHERE root IN (
        SELECT run FROM runs WHERE parent = '' AND session IN (SELECT value FROM json_each(?))
    )
"""
_OPEN = f"SELECT run {_TREES} AND ended_at IS NULL LIMIT 1"
_REMEMBER = f"INSERT OR IGNORE INTO forgotten SELECT run {_TREES}"
_TAKEN = "DELETE FROM inbound WHERE run <> '' AND run IN (SELECT run FROM forgotten)"
_UNTAKEN = """
    DELETE FROM inbound WHERE run = '' AND conversation IN (
        SELECT conversation FROM sessions WHERE role = '' AND session IN (SELECT value FROM json_each(?))
    )
"""
_RUNS = "DELETE FROM runs WHERE run IN (SELECT run FROM forgotten)"
_SESSIONS = "DELETE FROM sessions WHERE session IN (SELECT value FROM json_each(?))"
_EVENTS = """
    DELETE FROM events WHERE id IN (SELECT id FROM events WHERE run = ? ORDER BY seq LIMIT ?)
"""


def forget(session_ids: tuple[str, ...]) -> Callable[[sqlite3.Connection], int]:
    """Take sessions out of sight; answers how many runs they had. Raises `UsageError` while one is open."""
    ids = (json.dumps(session_ids),)

    def work(connection: sqlite3.Connection) -> int:
        with transaction(connection):
            found: list[tuple[str]] = connection.execute(_OPEN, ids).fetchall()
            if found:
                raise UsageError(
                    f"run {found[0][0]!r} has not ended: cancel it or wait for it, then delete its session"
                )
            connection.execute(_REMEMBER, ids)
            connection.execute(_TAKEN)
            connection.execute(_UNTAKEN, ids)
            count = connection.execute(_RUNS).rowcount
            connection.execute(_SESSIONS, ids)
        return count

    return work


def sweep(connection: sqlite3.Connection) -> bool:
    """Remove some events of forgotten runs from the file; false when none are left."""
    until = time.monotonic() + SLICE_S
    if not left_over(connection):
        return False
    with transaction(connection):
        while (run := _next(connection)) is not None:
            if connection.execute(_EVENTS, (run, _ROWS)).rowcount < _ROWS:
                connection.execute("DELETE FROM forgotten WHERE run = ?", (run,))
            if time.monotonic() >= until:
                break
    return run is not None


def left_over(connection: sqlite3.Connection) -> bool:
    """Whether a deletion is not at its end: it goes on, or a crash or the closing of a journal cut it off."""
    return _next(connection) is not None


def _next(connection: sqlite3.Connection) -> str | None:
    found: list[tuple[str]] = connection.execute("SELECT run FROM forgotten LIMIT 1").fetchall()
    return found[0][0] if found else None
