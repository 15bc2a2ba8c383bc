"""Deleting sessions: gone at once for whoever reads, gone from the file soon after."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from store.journals import opened
from xclaw.contracts.errors import UsageError
from xclaw.contracts.events import Entry, MessageAdded
from xclaw.store import forgetting
from xclaw.store.database import connect, open_writer
from xclaw.store.journal import SqliteJournal
from xclaw.store.settings import StoreSettings
from xclaw.store.writer import Writer
from xclaw.testing.journal_conformance import append_and_wait, ended, entries_of, root_address, started
from xclaw.testing.session_conformance import answer, session

EVENTS = 5_000
SECRET = "the launch code is 0000"


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine where each step of a deletion takes all the time it has."""
    monkeypatch.setattr(forgetting, "SLICE_S", 0.0)


def test_what_is_deleted_is_not_in_the_file_any_more(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"

    async def main() -> None:
        async with opened(path) as journal:
            await _talk(journal, 100)
            await answer(journal, "r2", "other")
        assert SECRET.encode() in path.read_bytes()
        async with opened(path) as journal:
            assert await journal.sessions.delete(("talk",)) == 1
        assert SECRET.encode() not in path.read_bytes()
        assert _events(path) == 2

    asyncio.run(main())


def test_free_pages_are_used_again(tmp_path: Path) -> None:
    """A home where conversations come and go does not grow."""
    path = tmp_path / "journal.db"

    async def main() -> None:
        sizes: list[int] = []
        for _ in range(3):
            async with opened(path) as journal:
                await _talk(journal, 500)
                await journal.sessions.delete(("talk",))
            sizes.append(path.stat().st_size)
        assert sizes[0] == sizes[1] == sizes[2]

    asyncio.run(main())


def test_a_big_deletion_lets_runs_write_in_between(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"

    async def main() -> None:
        async with opened(path) as journal:
            await _talk(journal, EVENTS)
            deleting = asyncio.ensure_future(journal.sessions.delete(("talk",)))
            written = 0
            async with asyncio.timeout(30):
                while not deleting.done():
                    assert await answer(journal, f"r-{written}", "other")
                    written += 1
                    assert await journal.run_row("r1") is None or written == 1
            assert await deleting == 1
            assert written > 2, "what was queued went in between the steps"
            assert len(await journal.sessions.read_conversation("other", 0, 10_000)) == 2 * written
        assert _events(path) == 2 * written

    asyncio.run(main())


def test_a_deletion_that_a_crash_cut_off_is_finished_when_the_journal_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"

    async def main() -> None:
        async with opened(path) as journal:
            await _talk(journal, EVENTS)
            await answer(journal, "r2", "other")
        with closing(connect(path)) as connection:
            assert forgetting.forget(("talk",))(connection) == 1
        assert _events(path) == EVENTS + 4
        async with opened(path) as journal:
            assert await journal.read_run("r1") == []
            assert await journal.sessions.read_conversation("talk", 0, 10) == []
            async with asyncio.timeout(30):
                while _events(path) > 2:
                    await journal.sessions.rename("other", "waits for the writing thread")
            assert len(await journal.read_run("r2")) == 2

    asyncio.run(main())


def test_closing_the_journal_ends_a_deletion_which_goes_on_when_it_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"

    async def main() -> None:
        async with opened(path) as journal:
            await _talk(journal, EVENTS)
            deleting = asyncio.ensure_future(journal.sessions.delete(("talk",)))
            async with asyncio.timeout(30):
                while await journal.run_row("r1") is not None:
                    pass
        async with asyncio.timeout(5):
            assert await deleting == 1
        async with opened(path) as journal:
            assert await journal.sessions.delete(()) == 0
        assert _events(path) == 0

    asyncio.run(main())


def test_a_deletion_that_is_no_longer_waited_for_is_done(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"

    async def main() -> None:
        async with opened(path) as journal:
            await _talk(journal, EVENTS)
            deleting = asyncio.ensure_future(journal.sessions.delete(("talk",)))
            await asyncio.sleep(0)
            deleting.cancel()
            await asyncio.wait((deleting,))
            async with asyncio.timeout(30):
                while _events(path):
                    await journal.sessions.rename("talk", "waits for the writing thread")
            assert await journal.run_row("r1") is None

    asyncio.run(main())


def test_the_run_that_goes_on_is_named(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path / "journal.db") as journal:
            await journal.sessions.open_session(session("talk", "talk"))
            await append_and_wait(journal, *entries_of(root_address("r1", "talk"), started()))
            with pytest.raises(UsageError, match="run 'r1' has not ended: cancel it"):
                await journal.sessions.delete(("talk",))

    asyncio.run(main())


def test_closing_ends_work_that_is_done_in_many_steps(tmp_path: Path) -> None:
    most = 100_000

    async def main() -> None:
        writer = Writer(open_writer(StoreSettings(str(tmp_path / "journal.db")))[1])
        steps = 0

        def step(_: sqlite3.Connection) -> bool:
            nonlocal steps
            steps += 1
            return steps < most

        done = writer.start_repeating(step)
        assert await writer.call(lambda _: "in between") == "in between"
        await writer.close()
        assert done.done()
        assert 0 < steps < most
        assert writer.start_repeating(step).done(), "nothing is begun any more"

    asyncio.run(main())


async def _talk(journal: SqliteJournal, count: int) -> list[Entry]:
    """A run that ended and said something secret many times."""
    said = [MessageAdded(SECRET + "." * 200, "user") for _ in range(count)]
    entries = entries_of(root_address("r1", "talk"), started(), *said, ended())
    return list(await append_and_wait(journal, *entries))


def _events(path: Path) -> int:
    with closing(connect(path)) as connection:
        row: tuple[int] = connection.execute("SELECT count(*) FROM events").fetchone()
    return row[0]
