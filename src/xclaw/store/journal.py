"""The Journal contract on one SQLite file, which any number of processes may share."""

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from typing import Self

from xclaw.contracts.errors import JournalError
from xclaw.contracts.events import Entry
from xclaw.contracts.journal import Committed, RunRow
from xclaw.store import forgetting, owners, reader
from xclaw.store.approvals import SqliteApprovals
from xclaw.store.database import open_writer
from xclaw.store.owners import OwnerLocks, OwnerRow
from xclaw.store.reader import Reader
from xclaw.store.sessions import SqliteSessions
from xclaw.store.settings import StoreSettings
from xclaw.store.writer import Writer


class SqliteJournal:
    """Implements `Journal`. Owns the file's connections, one writer thread and a few reader threads.

    Made by `open`. A run that was started here belongs to the registered owner; once another
    process has claimed it, appends to it are `Fenced`.
    """

    def __init__(self, path: str, connection: sqlite3.Connection) -> None:
        self.path = path
        """Absolute, links resolved."""
        self._writer = Writer(connection)
        self._reader = Reader(path)
        self._locks = OwnerLocks(path)
        self._sessions = SqliteSessions(self._writer, self._reader)
        self._approvals = SqliteApprovals(self._writer, self._reader)

    @classmethod
    async def open(cls, settings: StoreSettings) -> Self:
        """Open the file; create or upgrade it first.

        Raises `UsageError` for a path that cannot hold a journal and for one of a newer xclaw,
        `JournalError` for a damaged file. No file is ever overwritten.
        """

        def prepare() -> tuple[str, sqlite3.Connection, bool]:
            path, connection = open_writer(settings)
            return str(path), connection, forgetting.left_over(connection)

        path, connection, left_over = await asyncio.to_thread(prepare)
        journal = cls(path, connection)
        if left_over:
            journal._writer.start_repeating(forgetting.sweep)
        return journal

    @property
    def sessions(self) -> SqliteSessions:
        """The `SessionStore` of this file; usable until `close`."""
        return self._sessions

    @property
    def approvals(self) -> SqliteApprovals:
        """The `ApprovalStore` of this file; usable until `close`."""
        return self._approvals

    def append(self, entries: Sequence[Entry], committed: Committed) -> None:
        """As `Journal.append`. Call it on an event loop; `committed` is called on the same one."""
        self._writer.append(entries, committed)

    async def read_run(self, run_id: str) -> list[Entry]:
        return await self._reader.call(reader.run_entries(run_id))

    async def read_tree(self, root_id: str, after_id: int = 0) -> list[Entry]:
        return await self._reader.call(reader.tree_entries(root_id, after_id))

    async def read_session(self, session_id: str) -> list[Entry]:
        return await self._reader.call(reader.session_entries(session_id))

    async def read_open_trees(self, owner: str | None = None) -> dict[str, list[Entry] | JournalError]:
        """Every entry of every tree with a run that has not ended, by root id, in one read.

        With `owner`, only trees in which that owner has such a run. A tree that cannot be read
        comes as its error, so that it does not hold the others up.
        """
        return await self._reader.call(reader.open_trees(owner))

    async def run_row(self, run_id: str) -> RunRow | None:
        found = await self._reader.call(reader.run_rows({"run = ?": run_id}, 1))
        return found[0] if found else None

    async def runs(
        self,
        *,
        session_id: str | None = None,
        root_id: str | None = None,
        roots_only: bool = False,
        open_only: bool = False,
        limit: int = 100,
    ) -> list[RunRow]:
        where: dict[str, str | None] = {}
        if session_id is not None:
            where["session = ?"] = session_id
        if root_id is not None:
            where["root = ?"] = root_id
        if roots_only:
            where["parent = ''"] = None
        if open_only:
            where["ended_at IS NULL"] = None
        return await self._reader.call(reader.run_rows(where, limit))

    async def claim(self, root_id: str, from_owner: str, to_owner: str) -> bool:
        """As `Journal.claim`. Also lets runs be written again whose appends had failed here."""
        return await self._writer.claim(root_id, from_owner, to_owner)

    async def register_owner(self, owner: str, pid: int, socket: str) -> None:
        """Become `owner`: take its lock for as long as this process lives, then say so in the file.

        Runs that start from now on belong to it. Raises `JournalError` when a living process has
        that name.
        """
        await asyncio.to_thread(self._locks.take, owner)
        try:
            await self._writer.call(owners.add(owner, pid, socket))
            await self._writer.become(owner)
        except JournalError:
            self._locks.drop(owner)
            raise

    async def owner_row(self, owner: str) -> OwnerRow | None:
        return next((row for row in await self.owners() if row.owner == owner), None)

    async def owners(self) -> list[OwnerRow]:
        """All that registered and were not removed, the dead too; oldest first."""
        return await self._reader.call(owners.rows)

    async def remove_owner(self, owner: str) -> None:
        """Forget an owner: itself at its end, or a dead one whose runs have been claimed."""
        await self._writer.call(owners.remove([owner]))
        await asyncio.to_thread(self._locks.drop, owner)

    def owner_alive(self, owner: str) -> bool:
        """Whether the process that registered as `owner` lives. Asks the kernel, in microseconds."""
        return self._locks.alive(owner)

    async def close(self) -> None:
        """Commit what is queued, forget the owner registered here, end all threads. Safe to repeat."""
        held = self._locks.held()
        if held:
            # A journal that cannot be written any more must still close.
            with suppress(JournalError):
                await self._writer.call(owners.remove(held))
        await self._writer.close()
        await self._reader.close()
        for owner in held:
            self._locks.drop(owner)
