"""The SessionStore contract on the journal's file: whose a conversation is, and what was said into it."""

import asyncio
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from xclaw.contracts.errors import UsageError
from xclaw.contracts.events import Entry
from xclaw.contracts.sessions import Inbound, SessionRow
from xclaw.store import forgetting
from xclaw.store.codec import well_formed
from xclaw.store.database import transaction
from xclaw.store.inbound import inbound_of, inbound_where, values_of
from xclaw.store.reader import Reader, conversation_entries, last_entry, storable
from xclaw.store.writer import Writer

T = TypeVar("T")

_ACCEPT = """
    INSERT INTO inbound (message, conversation, channel, content, sent_at, type, caller, parent_session,
        user, client_id, manner, wishes)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
_DROP = """
    UPDATE inbound SET dropped = ?, dropped_after = (SELECT coalesce(max(id), 0) FROM events)
    WHERE message = ? AND run = '' AND dropped = ''
"""
_COLUMNS = "session, conversation, user, name, role, title, channel, created_at, used_at"
_OPEN = f"""
    INSERT INTO sessions ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (session) DO UPDATE SET used_at = excluded.used_at RETURNING {_COLUMNS}
"""
_RENAME = "UPDATE sessions SET title = ? WHERE session = ?"


class SqliteSessions:
    """Implements `SessionStore` with the threads of a `SqliteJournal`, whose property it is.

    Which message was taken, by which run, is written by the journal with the events that say so. It
    also makes the row of a session that nobody opened before a root began in it: the owner's.
    """

    def __init__(self, writer: Writer, reader: Reader) -> None:
        self._writer = writer
        self._reader = reader

    async def accept(self, inbound: Inbound) -> Inbound:
        """As `SessionStore.accept`. The same `message.id` from the same user into the same conversation
        is the same message too; from elsewhere it raises `UsageError`."""
        values = values_of(inbound)

        def work(connection: sqlite3.Connection) -> Inbound:
            with transaction(connection):
                connection.execute(_ACCEPT, values)
                found = _accepted(connection, inbound)
            if found is None:
                raise UsageError(
                    f"the message id {inbound.message.id!r} is taken: leave it empty, or choose another one"
                )
            return found

        return await self._writer.finish(work)

    async def inbound(self, message_id: str) -> Inbound | None:
        return await self._reader.call(lambda connection: inbound_of(connection, message_id))

    async def pending(self, conversation: str | None = None) -> list[Inbound]:
        where: dict[str, str | None] = {"run = ''": None, "dropped = ''": None}
        if conversation is not None:
            where["conversation = ?"] = conversation
        return await self._reader.call(lambda connection: inbound_where(connection, where))

    async def drop(self, message_id: str, reason: str) -> bool:
        values = (well_formed(reason) or "for no reason given", well_formed(message_id))
        return await self._writer.finish(_changing(_DROP, values))

    async def dropped(self, conversation: str, after_id: int) -> list[Inbound]:
        where = {"conversation = ?": conversation, "dropped <> ''": None, "dropped_after >= ?": str(after_id)}
        return await self._reader.call(lambda connection: inbound_where(connection, where))

    async def open_session(self, row: SessionRow) -> SessionRow:
        """As `SessionStore.open_session`. Times that are 0 are the time of the call."""
        now = time.time()
        texts = (row.session_id, row.conversation, row.user, row.name, row.role, row.title, row.channel)
        values = (*map(well_formed, texts), row.created_at or now, row.used_at or now)

        def work(connection: sqlite3.Connection) -> SessionRow:
            return SessionRow(*connection.execute(_OPEN, values).fetchall()[0])

        return await self._writer.finish(work)

    async def session(self, session_id: str) -> SessionRow | None:
        found = await self._rows({"session = ?": session_id}, 1)
        return found[0] if found else None

    async def sessions(
        self,
        *,
        user: str | None = None,
        conversation: str | None = None,
        without_channel: str = "",
        limit: int = 100,
    ) -> list[SessionRow]:
        where = {"channel <> ?": without_channel} if without_channel else {}
        if user is not None:
            where["user = ?"] = user
        if conversation is not None:
            where["conversation = ?"] = conversation
        return await self._rows(where, limit)

    async def rename(self, session_id: str, title: str) -> bool:
        return await self._writer.finish(_changing(_RENAME, (well_formed(title), well_formed(session_id))))

    async def delete(self, session_ids: tuple[str, ...]) -> int:
        """As `SessionStore.delete`. All of it is gone for every reader at once; then the events are
        removed from the file a bit at a time, so that no run waits for it.

        Cancelling the wait lets it go on; what a crash or `close` leaves over is removed when the
        journal is opened next. The file does not get smaller: its free pages, which are overwritten
        with zeros, are used again. `VACUUM` would return them to the disk, but holds up every run.
        """
        forget = forgetting.forget(tuple(map(well_formed, session_ids)))

        def work(connection: sqlite3.Connection) -> tuple[int, Future[None]]:
            count = forget(connection)
            return count, self._writer.start_repeating(forgetting.sweep)

        count, swept = await self._writer.finish(work)
        await asyncio.shield(asyncio.wrap_future(swept))
        return count

    async def read_conversation(self, conversation: str, after_id: int, limit: int) -> list[Entry]:
        return await self._reader.call(conversation_entries(well_formed(conversation), after_id, limit))

    async def last_id(self) -> int:
        return await self._reader.call(last_entry)

    async def _rows(self, where: dict[str, str], limit: int) -> list[SessionRow]:
        conditions = " AND ".join(where) or "TRUE"
        query = (
            f"SELECT {_COLUMNS} FROM sessions WHERE {conditions} ORDER BY used_at DESC, rowid DESC LIMIT ?"
        )

        values = [*map(well_formed, where.values()), storable(limit)]

        def work(connection: sqlite3.Connection) -> list[SessionRow]:
            return [SessionRow(*row) for row in connection.execute(query, values)]

        return await self._reader.call(work)


def _accepted(connection: sqlite3.Connection, inbound: Inbound) -> Inbound | None:
    """The message that was stored for it, now or before."""
    whose = {"conversation = ?": inbound.message.session_id, "user = ?": inbound.user}
    if inbound.client_id:
        by_client = {"client_id = ?": inbound.client_id, "client_id <> ''": None}
        found = inbound_where(connection, {**whose, **by_client})
        if found:
            return found[0]
    found = inbound_where(connection, {**whose, "message = ?": inbound.message.id})
    return found[0] if found else None


def _changing(statement: str, values: tuple[str, ...]) -> Callable[[sqlite3.Connection], bool]:
    """Whether the statement found a row."""
    return lambda connection: connection.execute(statement, values).rowcount > 0
