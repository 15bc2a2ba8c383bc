"""One transaction's worth of appends, as rows. Knows the tables; knows no threads."""

import asyncio
import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from xclaw.contracts.errors import Fenced, JournalError
from xclaw.contracts.events import (
    Entry,
    Event,
    MessageAdded,
    RunEnded,
    RunResumed,
    RunStarted,
    TextDelta,
)
from xclaw.contracts.journal import Committed
from xclaw.contracts.users import OWNER
from xclaw.store.codec import encode_event, title_from, well_formed

_EVENT = "INSERT INTO events (run, seq, at, kind, body) VALUES (?, ?, ?, ?, ?)"
_STARTED = """
    INSERT INTO runs (run, root, parent, session, agent, title, owner, started_at, message)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (run) DO UPDATE SET agent = excluded.agent, title = excluded.title,
        owner = excluded.owner, started_at = excluded.started_at, message = excluded.message
"""
_SEEN = """
    INSERT OR IGNORE INTO runs (run, root, parent, session, owner, started_at) VALUES (?, ?, ?, ?, ?, ?)
"""
_RESUMED = "UPDATE runs SET owner = ? WHERE run = ?"
_ENDED = "UPDATE runs SET ended_at = ?, outcome = ? WHERE run = ?"
_USED = f"""
    INSERT INTO sessions (session, conversation, user, name, title, channel, created_at, used_at)
    VALUES (?1, ?1, '{OWNER}', ?1, ?2, ?3, ?4, ?4)
    ON CONFLICT (session) DO UPDATE SET used_at = excluded.used_at,
        title = CASE title WHEN '' THEN excluded.title ELSE title END
"""
_TOOK = "UPDATE inbound SET run = ? WHERE message = ? AND run = ''"
_PROJECTED = frozenset(("run_started", "run_resumed", "run_ended", "message_added"))
"""Kinds of events that change a row of another table."""
_TAKEN = """
    SELECT runs.run FROM json_each(?) AS mine JOIN runs ON runs.run = mine.key
    WHERE runs.owner <> mine.value
"""


@dataclass(slots=True)
class Append:
    """One call of `Journal.append` on its way through the writer."""

    entries: tuple[Entry, ...]
    committed: Committed
    loop: asyncio.AbstractEventLoop
    error: JournalError | None = None
    bodies: list[str] = field(default_factory=list[str])

    def runs(self) -> set[str]:
        return {entry.address.run_id for entry in self.entries}

    def encode(self) -> None:
        """Fill `bodies`. Raises an exception for what cannot be stored."""
        for entry in self.entries:
            if isinstance(entry.event, TextDelta):
                raise JournalError("a TextDelta is never stored: publish it, do not append it")
            self.bodies.append(encode_event(entry.event))


class RunTable:
    """Writes batches; remembers which runs this process drives, to notice when one is taken away."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._driven: dict[str, str] = {}
        self._checked: dict[str, int] = {}
        """The `data_version` at which a run was last known to be ours."""
        self.owner = ""
        """Who new runs belong to."""

    def write(self, appends: Sequence[Append]) -> None:
        """Write all of them in one transaction, and give the entries their ids; or raise, and write none.

        Raises `Fenced` or an `sqlite3.Error`.
        """
        entries = [entry for append in appends for entry in append.entries]
        if not entries:
            return
        bodies = [body for append in appends for body in append.bodies]
        runs = {entry.address.run_id for entry in entries}
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            version = self._refuse_taken(runs)
            changes = [entry for entry in entries if entry.event.kind in _PROJECTED]
            self._write_runs(entries, runs, changes)
            last = self._write_events(entries, bodies)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        self._remember(changes)
        self._checked.update((run, version) for run in runs if run in self._driven)
        _number(appends, last - len(entries) + 1)

    def claim(self, root_id: str, from_owner: str, to_owner: str) -> list[str]:
        """The runs that changed hands."""
        rows: list[tuple[str]] = self._connection.execute(
            "UPDATE runs SET owner = ? WHERE root = ? AND owner = ? AND ended_at IS NULL RETURNING run",
            (to_owner, root_id, from_owner),
        ).fetchall()
        runs = [run for (run,) in rows]
        for run in runs:
            self._checked.pop(run, None)
            if to_owner == self.owner and run in self._driven:
                self._driven[run] = to_owner
        return runs

    def _refuse_taken(self, runs: set[str]) -> int:
        """Look up the owners again if another connection has written since; answers the version seen."""
        row: tuple[int] = self._connection.execute("PRAGMA data_version").fetchone()
        version = row[0]
        unsure = {
            run: self._driven[run]
            for run in runs
            if run in self._driven and self._checked.get(run) != version
        }
        if unsure:
            found: list[tuple[str]] = self._connection.execute(_TAKEN, (json.dumps(unsure),)).fetchall()
            if found:
                raise Fenced(f"run {found[0][0]!r} has been taken over by another process")
        return version

    def _write_runs(self, entries: Sequence[Entry], runs: set[str], changes: Sequence[Entry]) -> None:
        """Keep the projection: a row for each run, then what changes it, in order."""
        unseen = runs - self._driven.keys()
        for entry in entries if unseen else ():
            run = entry.address.run_id
            if run in unseen:
                unseen.remove(run)
                if entry.event.kind != "run_started":
                    self._see(entry)
        for entry in changes:
            self._project(entry, entry.event)

    def _project(self, entry: Entry, event: Event) -> None:
        run = entry.address.run_id
        if isinstance(event, RunStarted):
            self._start(entry, event)
        elif isinstance(event, RunResumed):
            self._connection.execute(_RESUMED, (event.owner, run))
        elif isinstance(event, RunEnded):
            self._connection.execute(_ENDED, (entry.at, event.outcome, run))
        elif isinstance(event, MessageAdded) and event.message_id:
            self._connection.execute(_TOOK, (entry.address.root_id, well_formed(event.message_id)))

    def _see(self, entry: Entry) -> None:
        address = entry.address
        self._connection.execute(
            _SEEN,
            (
                address.run_id,
                address.root_id,
                address.parent_id,
                address.session_id,
                self.owner,
                entry.at,
            ),
        )

    def _start(self, entry: Entry, event: RunStarted) -> None:
        address = entry.address
        title = title_from(event.input if event.task is None else event.task.text)
        message = "" if address.parent_id else well_formed(event.message_id)
        self._connection.execute(
            _STARTED,
            (
                address.run_id,
                address.root_id,
                address.parent_id,
                address.session_id,
                well_formed(event.agent),
                title,
                self.owner,
                entry.at,
                message,
            ),
        )
        if not address.parent_id:
            used = (address.session_id, title, well_formed(event.channel), entry.at)
            self._connection.execute(_USED, used)
            if message:
                self._connection.execute(_TOOK, (address.run_id, message))

    def _write_events(self, entries: Sequence[Entry], bodies: Sequence[str]) -> int:
        rows = [
            (entry.address.run_id, entry.seq, entry.at, entry.event.kind, body)
            for entry, body in zip(entries, bodies, strict=True)
        ]
        try:
            self._connection.executemany(_EVENT, rows)
        except sqlite3.IntegrityError as error:
            if error.sqlite_errorname != "SQLITE_CONSTRAINT_UNIQUE":
                raise
            raise Fenced(f"another process has written to one of these runs: {error}") from error
        row: tuple[int] = self._connection.execute("SELECT last_insert_rowid()").fetchone()
        return row[0]

    def _remember(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            event = entry.event
            if isinstance(event, RunStarted):
                self._driven[entry.address.run_id] = self.owner
            elif isinstance(event, RunResumed):
                self._driven[entry.address.run_id] = event.owner
            elif isinstance(event, RunEnded):
                self._driven.pop(entry.address.run_id, None)
                self._checked.pop(entry.address.run_id, None)


def _number(appends: Sequence[Append], first: int) -> None:
    for append in appends:
        append.entries = tuple(
            Entry(entry.address, entry.seq, entry.at, entry.event, number)
            for number, entry in enumerate(append.entries, first)
        )
        first += len(append.entries)
