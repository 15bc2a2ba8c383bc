"""Reads, in a few threads with connections of their own, so that neither loop nor writer waits."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from xclaw.contracts.errors import JournalError
from xclaw.contracts.events import Entry
from xclaw.contracts.journal import RunRow
from xclaw.store.codec import EntryRow, entries_from, reason_from, well_formed
from xclaw.store.database import open_reader

T = TypeVar("T")

_THREADS = 4
_COLUMNS = """
    events.id, events.run, runs.root, runs.parent, runs.session, events.seq, events.at, events.kind,
    events.body
"""
_ENTRIES = f"SELECT {_COLUMNS} FROM events JOIN runs ON runs.run = events.run"
_RUNS = """
    SELECT run, root, parent, session, agent, title, owner, started_at, ended_at, outcome, message FROM runs
"""
_ROOTS = """
    SELECT root.run FROM sessions JOIN runs AS root ON root.session = sessions.session
    WHERE sessions.conversation = :conversation AND root.parent = ''
"""
_ITS_RUNS = f"SELECT run FROM runs WHERE root IN ({_ROOTS})"
_RUNS_OF_A_STRETCH = """
    SELECT near.run FROM (
        SELECT DISTINCT run FROM events NOT INDEXED WHERE id > :after_id AND id <= :until
    ) AS near
    CROSS JOIN runs ON runs.run = near.run
    CROSS JOIN runs AS root ON root.run = runs.root
    CROSS JOIN sessions ON sessions.session = root.session
    WHERE sessions.conversation = :conversation AND root.parent = ''
"""
_PAGE = f"""
    SELECT {_COLUMNS} FROM (
        SELECT id FROM events WHERE run IN ({{runs}}) AND +id > :after_id AND +id <= :until
        ORDER BY +id LIMIT :limit
    ) AS page
    CROSS JOIN events ON events.id = page.id
    CROSS JOIN runs ON runs.run = events.run
    ORDER BY events.id
"""
"""Finds the ids in the index of the runs' events alone, and reads only those that are asked for."""
_PAGE_OF_ALL = _PAGE.format(runs=_ITS_RUNS)
_PAGE_OF_A_STRETCH = _PAGE.format(runs=_RUNS_OF_A_STRETCH)
_STRETCH = 2_000
"""Entries, of whatever session, of which it is quick to ask whose they are: enough for a client that
was away for a moment, and for each page of a conversation that has most of the journal."""
_LARGEST = 2**63 - 1


class Reader:
    """A pool of read-only connections, opened when first needed."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="xclaw-read")
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._closed = False

    async def call(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in a thread. Raises `JournalError`. Cancelling the wait lets the thread finish."""
        if self._closed:
            raise JournalError("the journal is closed")

        def read() -> T:
            try:
                return work(self._connection())
            except sqlite3.Error as error:
                raise JournalError(
                    f"the journal {self._path!r} cannot be read: {reason_from(error)}"
                ) from error

        return await asyncio.get_running_loop().run_in_executor(self._threads, read)

    async def close(self) -> None:
        self._closed = True
        await asyncio.to_thread(self._threads.shutdown)
        while self._connections:
            self._connections.pop().close()

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = open_reader(self._path)
            self._connections.append(connection)
        return connection


def run_entries(run_id: str) -> Callable[[sqlite3.Connection], list[Entry]]:
    return lambda connection: entries_from(
        connection.execute(f"{_ENTRIES} WHERE events.run = ? ORDER BY events.seq", (well_formed(run_id),))
    )


def tree_entries(root_id: str, after_id: int) -> Callable[[sqlite3.Connection], list[Entry]]:
    return lambda connection: entries_from(
        connection.execute(
            f"{_ENTRIES} WHERE runs.root = ? AND events.id > ? ORDER BY events.id",
            (well_formed(root_id), storable(after_id)),
        )
    )


def session_entries(session_id: str) -> Callable[[sqlite3.Connection], list[Entry]]:
    return lambda connection: entries_from(
        connection.execute(
            f"{_ENTRIES} WHERE runs.session = ? ORDER BY events.id", (well_formed(session_id),)
        )
    )


def conversation_entries(
    conversation: str, after_id: int, limit: int
) -> Callable[[sqlite3.Connection], list[Entry]]:
    """As `SessionStore.read_conversation`."""
    first, most = storable(after_id), storable(limit)

    def page(connection: sqlite3.Connection, query: str, until: int) -> list[EntryRow]:
        values = {"conversation": conversation, "after_id": first, "until": until, "limit": most}
        return connection.execute(query, values).fetchall()

    def work(connection: sqlite3.Connection) -> list[Entry]:
        until = storable(first + _STRETCH)
        rows = page(connection, _PAGE_OF_A_STRETCH, until)
        if len(rows) < most and until < last_entry(connection):
            rows = page(connection, _PAGE_OF_ALL, _LARGEST)
        return entries_from(rows)

    return work


def last_entry(connection: sqlite3.Connection) -> int:
    row: tuple[int] = connection.execute("SELECT coalesce(max(id), 0) FROM events").fetchone()
    return row[0]


def storable(number: int) -> int:
    """Clients send any number; SQLite's have 64 bits."""
    return min(max(number, 0), _LARGEST)


def open_trees(owner: str | None) -> Callable[[sqlite3.Connection], dict[str, list[Entry] | JournalError]]:
    def work(connection: sqlite3.Connection) -> dict[str, list[Entry] | JournalError]:
        trees: dict[str, list[EntryRow]] = {}
        for row in connection.execute(
            f"{_ENTRIES} WHERE runs.root IN (SELECT root FROM runs WHERE ended_at IS NULL"
            " AND owner = coalesce(?, owner)) ORDER BY events.id",
            (owner,),
        ):
            trees.setdefault(row[2], []).append(row)
        return {root_id: _tree_from(rows) for root_id, rows in trees.items()}

    return work


def _tree_from(rows: list[EntryRow]) -> list[Entry] | JournalError:
    try:
        return entries_from(rows)
    except JournalError as error:
        return error


def run_rows(where: dict[str, str | None], limit: int) -> Callable[[sqlite3.Connection], list[RunRow]]:
    """Newest first. `where` maps conditions with at most one placeholder to its value, or None."""
    conditions = " AND ".join(where) or "TRUE"
    values = [well_formed(value) for value in where.values() if value is not None]

    def work(connection: sqlite3.Connection) -> list[RunRow]:
        found = connection.execute(
            f"{_RUNS} WHERE {conditions} ORDER BY number DESC LIMIT ?", [*values, storable(limit)]
        )
        return [RunRow(*row) for row in found]

    return work
