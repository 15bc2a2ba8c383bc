"""The SessionStore contract on SQLite, and reading a conversation of a busy journal."""

import asyncio
from contextlib import closing
from pathlib import Path

import pytest

from store.journals import opened, start_of
from xclaw.contracts.errors import JournalError
from xclaw.contracts.events import Entry, MessageAdded
from xclaw.store.database import connect
from xclaw.store.journal import SqliteJournal
from xclaw.store.reader import conversation_entries
from xclaw.store.settings import StoreSettings
from xclaw.testing.journal_conformance import append_and_wait, entries_of, root_address
from xclaw.testing.session_conformance import SESSION_CHECKS, SessionCheck, answer, inbound, session

CROWD = 2_500
"""Entries of others: more than one look at the journal takes in."""


@pytest.mark.parametrize("check", SESSION_CHECKS)
def test_sqlite_sessions_keep_the_contract(check: SessionCheck, tmp_path: Path) -> None:
    asyncio.run(check(lambda: SqliteJournal.open(StoreSettings(str(tmp_path / "journal.db")))))


def test_every_page_of_a_conversation_is_whole_however_busy_others_are(tmp_path: Path) -> None:
    """Whichever way a page is looked up, it is the same one."""

    async def main() -> None:
        async with opened(tmp_path / "journal.db") as journal:
            mine: list[Entry] = []
            for number in range(3):
                mine += await answer(journal, f"r{number}", "talk")
                await _crowd(journal, f"x{number}", CROWD)
            mine += await answer(journal, "r3", "talk")
            last = await journal.sessions.last_id()
            for after in (
                0,
                1,
                2,
                3,
                last - CROWD - 3,
                last - CROWD - 2,
                last - CROWD,
                last - 2,
                last - 1,
                last,
            ):
                wanted = [entry for entry in mine if entry.id > after]
                for limit in (1, 2, 3, 100):
                    page = await journal.sessions.read_conversation("talk", after, limit)
                    assert page == wanted[:limit], f"after {after}, {limit} of them"

    asyncio.run(main())


@pytest.mark.parametrize("whose", ["others", "talk"])
def test_what_was_said_before_costs_a_client_that_reconnects_nothing(whose: str, tmp_path: Path) -> None:
    """A15: reading from the end on is no walk through the journal."""
    path = tmp_path / "journal.db"

    async def main() -> int:
        async with opened(path) as journal:
            await answer(journal, f"r{await journal.sessions.last_id()}", "talk")
            last = await journal.sessions.last_id()
        steps = 0

        def count() -> int:
            nonlocal steps
            steps += 1
            return 0

        with closing(connect(path)) as connection:
            connection.set_progress_handler(count, 1)
            assert len(conversation_entries("talk", last - 2, 100)(connection)) == 2
        return steps

    async def grow() -> None:
        async with opened(path) as journal:
            await _crowd(journal, "x", CROWD, whose)

    first = asyncio.run(main())
    asyncio.run(grow())
    assert first > 0
    assert asyncio.run(main()) < 2 * first


def test_a_closed_journal_has_no_sessions(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path / "journal.db") as journal:
            store = journal.sessions
        for doing in (
            store.accept(inbound("m1")),
            store.pending(),
            store.drop("m1", "x"),
            store.open_session(session("talk", "talk")),
            store.sessions(),
            store.delete(("talk",)),
            store.last_id(),
        ):
            with pytest.raises(JournalError, match="closed"):
                await doing

    asyncio.run(main())


def test_a_session_that_is_opened_without_times_has_that_of_now(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path / "journal.db") as journal:
            await append_and_wait(journal, start_of("r1"))
            row = await journal.sessions.open_session(session("talk", "talk", used_at=0.0))
            assert row.used_at > 1_000_000_000
            assert [row.session_id for row in await journal.sessions.sessions()] == ["talk", "cli"]

    asyncio.run(main())


async def _crowd(journal: SqliteJournal, run_id: str, count: int, session_id: str = "others") -> None:
    texts = [MessageAdded(f"{number}", "user") for number in range(count)]
    await append_and_wait(journal, *entries_of(root_address(run_id, session_id), *texts))
