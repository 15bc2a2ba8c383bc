"""One writer, group commit: who is told what, in which order, and who is left alone."""

import asyncio
import resource
import sqlite3
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest

from store.journals import locked, message_of, nobody, opened, start_of
from xclaw.contracts.errors import Fenced, JournalError
from xclaw.contracts.events import Compacted, Entry, MessageAdded, RunEnded, TextDelta, Warned
from xclaw.contracts.results import Result
from xclaw.store.database import open_writer
from xclaw.store.journal import SqliteJournal
from xclaw.store.settings import StoreSettings
from xclaw.store.writer import CROWD, TRY_AFTER, Gathering
from xclaw.testing.journal_conformance import append_and_wait, entries_of, root_address


def test_what_is_queued_during_a_commit_is_one_transaction_and_one_wake_up(tmp_path: Path) -> None:
    async def main() -> None:
        path, connection = open_writer(StoreSettings(str(tmp_path / "journal.db")))
        loop = asyncio.get_running_loop()
        statements: list[str] = []
        begun = asyncio.Event()

        def trace(statement: str) -> None:
            statements.append(statement)
            loop.call_soon_threadsafe(begun.set)

        connection.set_trace_callback(trace)
        journal = SqliteJournal(str(path), connection)
        told: list[int] = []
        told_when_the_loop_turned: list[int] = []
        everybody = asyncio.Event()
        blocker = locked(path)
        journal.append([start_of("waits for the lock")], nobody)
        async with asyncio.timeout(30):
            await begun.wait()

        def committed(number: int) -> None:
            told.append(number)
            if number == 0:
                loop.call_soon(lambda: told_when_the_loop_turned.append(len(told)))
            if number == 49:
                everybody.set()

        for number in range(50):
            journal.append([start_of(f"r{number}")], lambda _, __, number=number: committed(number))
        blocker.rollback()
        blocker.close()
        async with asyncio.timeout(30):
            await everybody.wait()
        assert told == list(range(50))
        assert told_when_the_loop_turned == [50]
        assert statements.count("COMMIT") == 2, "the batch that waited for the lock, and the fifty"
        await journal.close()

    asyncio.run(main())


def test_a_batch_that_fails_does_not_fail_the_others_of_its_transaction(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path / "journal.db") as journal:
            await append_and_wait(journal, start_of("r1"))
            outcomes = await _append_together(
                tmp_path / "journal.db",
                journal,
                [start_of("r2")],
                [start_of("r1")],  # seq 1 exists
                [message_of("r2", 2)],
                [start_of("r3"), message_of("r3", 1)],  # the same seq twice
                [start_of("r4")],
            )
            assert [type(outcome) for outcome in outcomes] == [int, Fenced, int, Fenced, int]
            ids = [outcome for outcome in outcomes if isinstance(outcome, int)]
            assert ids == sorted(ids)
            assert await journal.read_run("r3") == []
            assert await journal.run_row("r3") is None
            assert [entry.seq for entry in await journal.read_run("r2")] == [1, 2]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (entries_of(root_address("bad"), TextDelta("tok"), first_seq=2)[0], "TextDelta is never stored"),
        (
            entries_of(root_address("bad"), RunEnded(Result("success", "", object()), "success", 1))[0],
            "an event of run bad cannot be stored",
        ),
        (
            entries_of(root_address("bad"), Compacted(1, "", 2, 1, cost_usd=cast("float", "free")))[0],
            "Expected `float | null`, got `str`",
        ),
        (
            entries_of(root_address("bad"), Warned("late", cast("str", None)))[0],
            "Expected `str`, got `null`",
        ),
        (entries_of(root_address("bad"), cast("Warned", None))[0], "cannot be stored"),
        (entries_of(root_address("bad", "\ud800"), MessageAdded("x", "user"))[0], "surrogates not allowed"),
        (message_of("bad", 2**70), "too large"),
    ],
    ids=[
        "text delta",
        "not JSON",
        "wrong type",
        "nothing for text",
        "no event",
        "session id that is not Unicode",
        "seq of 70 bits",
    ],
)
def test_what_cannot_be_stored_fails_its_own_run_only(bad: Entry, says: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path / "journal.db") as journal:
            outcomes = await _append_together(
                tmp_path / "journal.db", journal, [start_of("r1")], [bad], [start_of("r2")]
            )
            assert [type(outcome) for outcome in outcomes] == [int, JournalError, int]
            assert says in str(outcomes[1])
            with pytest.raises(JournalError):
                await append_and_wait(journal, message_of("bad", 1))

    asyncio.run(main())


def test_a_full_disk_fails_the_run_and_later_runs_work_when_there_is_room_again(tmp_path: Path) -> None:
    """D06: an error for those whose events are lost; what is stored stays, the process lives."""

    async def main() -> None:
        path, connection = open_writer(StoreSettings(str(tmp_path / "journal.db")))
        journal = SqliteJournal(str(path), connection)
        kept = await append_and_wait(journal, start_of("r1"))
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + 5}")
        outcomes = await _append_together(
            path,
            journal,
            [message_of("r1", 2, "x" * 100_000)],
            [start_of("r2")],
            [message_of("r1", 3)],
        )
        assert [type(outcome) for outcome in outcomes] == [JournalError, int, JournalError]
        assert "full" in str(outcomes[0])
        connection.execute("PRAGMA max_page_count = 1000000")
        await append_and_wait(journal, start_of("r3"))
        with pytest.raises(JournalError, match="full"):
            await append_and_wait(journal, message_of("r1", 2))
        assert await journal.read_run("r1") == list(kept)
        await journal.close()

    asyncio.run(main())


def test_a_write_error_of_the_disk_is_told_and_survived(tmp_path: Path) -> None:
    """D06, with the kernel refusing the write."""

    async def main() -> None:
        async with opened(tmp_path / "journal.db") as journal:
            kept = await append_and_wait(journal, start_of("r1"))
            log = tmp_path / "journal.db-wal"
            with _no_file_grows_over(log.stat().st_size + 10_000), pytest.raises(JournalError):
                await append_and_wait(journal, message_of("r1", 2, "x" * 100_000))
            assert len(await append_and_wait(journal, start_of("r2"))) == 1
            assert await journal.read_run("r1") == list(kept)
        async with opened(tmp_path / "journal.db") as journal:
            assert await journal.read_run("r1") == list(kept)

    asyncio.run(main())


def test_a_lock_that_outlasts_the_patience_fails_all_that_wait_at_once(tmp_path: Path) -> None:
    """D05: told as a JournalError, and over when the lock is."""

    async def main() -> None:
        path, connection = open_writer(StoreSettings(str(tmp_path / "journal.db")))
        connection.execute("PRAGMA busy_timeout = 200")
        journal = SqliteJournal(str(path), connection)
        blocker = locked(path)
        began = asyncio.get_running_loop().time()
        outcomes: list[BaseException | None] = []
        for number in range(50):
            journal.append([start_of(f"r{number}")], lambda _, error: outcomes.append(error))
        with pytest.raises(JournalError, match="database is locked"):
            await append_and_wait(journal, start_of("last"))
        assert [type(outcome) for outcome in outcomes] == [JournalError] * 50
        assert asyncio.get_running_loop().time() - began < 5, "not once per append"
        blocker.rollback()
        blocker.close()
        assert len(await append_and_wait(journal, start_of("later"))) == 1
        await journal.close()

    asyncio.run(main())


def test_a_run_whose_write_failed_can_be_claimed_and_written_again(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path / "journal.db") as journal:
            await journal.register_owner("me", 1, "")
            await append_and_wait(journal, start_of("r1"))
            with pytest.raises(JournalError):
                await append_and_wait(journal, *entries_of(root_address("r1"), TextDelta("x"), first_seq=2))
            with pytest.raises(JournalError):
                await append_and_wait(journal, message_of("r1", 2))
            assert await journal.claim("r1", "me", "me")
            assert len(await append_and_wait(journal, message_of("r1", 2))) == 1

    asyncio.run(main())


def test_a_callback_that_raises_is_reported_and_the_others_are_told(tmp_path: Path) -> None:
    async def main() -> None:
        reported: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        async with opened(tmp_path / "journal.db") as journal:

            def broken(_: object, __: object) -> None:
                raise ValueError("mine")

            journal.append([start_of("r1")], broken)
            assert len(await append_and_wait(journal, start_of("r2"))) == 1
        assert len(reported) == 1
        assert "mine" in repr(reported[0])

    asyncio.run(main())


def test_an_event_loop_that_has_gone_silences_nobody_else(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    told: list[object] = []

    async def leave() -> tuple[SqliteJournal, sqlite3.Connection]:
        journal = await SqliteJournal.open(StoreSettings(str(path)))
        blocker = locked(path)
        journal.append([start_of("r1")], lambda _, __: told.append("the dead"))
        return journal, blocker

    async def go_on(journal: SqliteJournal, blocker: sqlite3.Connection) -> None:
        blocker.rollback()
        blocker.close()
        await append_and_wait(journal, start_of("r2"))
        assert len(await journal.runs()) == 2
        await journal.close()

    asyncio.run(go_on(*asyncio.run(leave())))
    assert told == []


def test_each_event_loop_is_told_of_its_own_appends(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path / "journal.db") as journal:
            threads: list[str] = []

            async def elsewhere() -> None:
                stored = await append_and_wait(journal, start_of("there"))
                threads.append(f"{threading.current_thread().name} {stored[0].address.run_id}")

            thread = threading.Thread(target=lambda: asyncio.run(elsewhere()), name="second loop")
            thread.start()
            assert (await append_and_wait(journal, start_of("here")))[0].address.run_id == "here"
            await asyncio.to_thread(thread.join)
            assert threads == ["second loop there"]

    asyncio.run(main())


def test_a_cancelled_close_still_commits(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"

    async def main() -> None:
        journal = await SqliteJournal.open(StoreSettings(str(path)))
        blocker = locked(path)
        journal.append([start_of("r1")], nobody)
        closing = asyncio.ensure_future(journal.close())
        await asyncio.wait([closing], timeout=0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        blocker.rollback()
        blocker.close()
        await journal.close()
        async with opened(path) as again:
            assert [row.run_id for row in await again.runs()] == ["r1"]

    asyncio.run(main())


def test_an_empty_batch_is_told_and_stores_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path / "journal.db") as journal:
            assert await append_and_wait(journal) == ()
            assert await journal.runs() == []

    asyncio.run(main())


def test_json_of_any_depth_is_refused_or_can_be_read(tmp_path: Path) -> None:
    """A model chooses the depth of its `summary_data`; a run that cannot be read cannot be resumed."""

    async def main() -> None:
        async with opened(tmp_path / "journal.db") as journal:
            refused = False
            nested: object = None
            for depth in range(1_100):
                nested = [nested]
                if depth < 950:
                    continue
                run = root_address(f"r{depth}")
                event = RunEnded(Result("success", "", nested), "success", 1)
                try:
                    await append_and_wait(journal, *entries_of(run, event))
                except JournalError:
                    refused = True
                else:
                    assert len(await journal.read_run(run.run_id)) == 1
            assert refused

    asyncio.run(main())


def test_waiting_for_company_is_given_up_when_none_comes() -> None:
    gathering = Gathering()
    for _ in range(TRY_AFTER):
        assert not gathering.pays, "one at a time is never held up"
        gathering.count(1)
    assert gathering.pays, "a try, now and then"
    gathering.count(CROWD - 1)
    assert not gathering.pays


def test_waiting_for_company_goes_on_while_there_is_a_crowd() -> None:
    gathering = Gathering()
    gathering.count(TRY_AFTER)
    for _ in range(3):
        assert gathering.pays
        gathering.count(CROWD)
    gathering.count(1)
    assert not gathering.pays


async def _append_together(
    path: Path, journal: SqliteJournal, *batches: list[Entry]
) -> list[int | BaseException]:
    """Append them so that they meet in one transaction; answer the first id, or the error, of each."""
    blocker = locked(path)
    outcomes: list[int | BaseException] = []
    done = asyncio.Event()
    journal.append([start_of("holds the writer up")], nobody)
    for batch in batches:

        def committed(entries: Sequence[Entry], error: BaseException | None) -> None:
            outcomes.append(error or entries[0].id)
            if len(outcomes) == len(batches):
                done.set()

        journal.append(batch, committed)
    blocker.rollback()
    blocker.close()
    async with asyncio.timeout(30):
        await done.wait()
    return outcomes


@contextmanager
def _no_file_grows_over(size: int) -> Generator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
