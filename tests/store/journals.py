"""What the store's tests share."""

import sqlite3
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from xclaw.contracts.events import Entry, MessageAdded
from xclaw.store.database import connect
from xclaw.store.journal import SqliteJournal
from xclaw.store.settings import StoreSettings
from xclaw.testing.journal_conformance import entries_of, root_address, started


@asynccontextmanager
async def opened(path: Path) -> AsyncGenerator[SqliteJournal]:
    journal = await SqliteJournal.open(StoreSettings(str(path)))
    try:
        yield journal
    finally:
        await journal.close()


def start_of(run_id: str) -> Entry:
    """The first entry of a run."""
    return entries_of(root_address(run_id), started())[0]


def message_of(run_id: str, seq: int, text: str = "hello") -> Entry:
    return entries_of(root_address(run_id), MessageAdded(text, "user"), first_seq=seq)[0]


def locked(path: Path) -> sqlite3.Connection:
    """Another program's connection that holds the write lock until it is rolled back."""
    connection = connect(path)
    connection.execute("BEGIN IMMEDIATE")
    return connection


def nobody(entries: Sequence[Entry], error: BaseException | None) -> None:
    """A callback for an append whose outcome does not matter."""
