"""Accepted messages as rows of `inbound`."""

import sqlite3
from collections.abc import Mapping

from xclaw.contracts.messages import Message
from xclaw.contracts.sessions import Inbound
from xclaw.store.codec import well_formed

_COLUMNS = """message, conversation, channel, content, sent_at, type, caller, parent_session,
    user, client_id, manner, wishes, run, dropped"""
_OF_MESSAGE = 8


def values_of(inbound: Inbound) -> tuple[object, ...]:
    """The columns of a new message, up to `wishes`. Text that is not well-formed Unicode is mended."""
    message = inbound.message
    parent = message.parent_session_id
    return (
        *map(well_formed, (message.id, message.session_id, message.channel, message.content)),
        message.timestamp,
        *map(well_formed, (message.type, message.caller)),
        None if parent is None else well_formed(parent),
        *map(well_formed, (inbound.user, inbound.client_id, inbound.manner, inbound.wishes)),
    )


def inbound_where(connection: sqlite3.Connection, where: Mapping[str, str | None]) -> list[Inbound]:
    """In the order of acceptance. `where` maps conditions with at most one placeholder to its value,
    or None."""
    values = [well_formed(value) for value in where.values() if value is not None]
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM inbound WHERE {' AND '.join(where)} ORDER BY number", values
    )
    return [Inbound(Message(*row[:_OF_MESSAGE]), *row[_OF_MESSAGE:]) for row in rows]


def inbound_of(connection: sqlite3.Connection, message_id: str) -> Inbound | None:
    found = inbound_where(connection, {"message = ?": message_id})
    return found[0] if found else None
