"""Opening the file: made whole, upgraded whole, never overwritten."""

import asyncio
import os
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Barrier

import pytest

from store.journals import locked, message_of, opened, start_of
from xclaw.contracts.errors import JournalError, UsageError, XclawError
from xclaw.contracts.events import MessageAdded
from xclaw.contracts.sessions import SessionRow
from xclaw.store.codec import encode_event
from xclaw.store.database import APPLICATION_ID, connect, migrations, open_writer, upgrade
from xclaw.store.settings import StoreSettings
from xclaw.testing.journal_conformance import append_and_wait, started


def test_a_new_journal_is_made_with_its_directories_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "a" / "deep directory" / "journal #1?.db"

    async def main() -> None:
        async with opened(path) as journal:
            await append_and_wait(journal, start_of("r1"))
            assert path.stat().st_mode & 0o077 == 0, "conversations are private"
        assert [item.name for item in path.parent.iterdir() if item.suffix == ".new"] == []

    asyncio.run(main())


def test_many_who_open_a_new_journal_at_once_share_one(tmp_path: Path) -> None:
    settings = StoreSettings(str(tmp_path / "journal.db"))
    together = Barrier(8)

    def open_it(_: int) -> int:
        together.wait(30)
        connection = open_writer(settings)[1]
        with closing(connection):
            connection.execute("INSERT INTO owners VALUES (hex(randomblob(8)), 1, '', '', 0)")
        return 1

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(open_it, range(8))) == 8
    with closing(connect(tmp_path / "journal.db")) as connection:
        assert connection.execute("SELECT count(*) FROM owners").fetchone() == (8,)
    assert sorted(item.name for item in tmp_path.iterdir() if ".new" in item.name) == []


def test_opening_a_current_journal_waits_for_no_writer(tmp_path: Path) -> None:
    async def main() -> None:
        path = tmp_path / "journal.db"
        async with opened(path) as journal:
            await append_and_wait(journal, start_of("r1"))
        blocker = locked(path)
        async with asyncio.timeout(10):
            async with opened(path) as journal:
                assert [row.run_id for row in await journal.runs()] == ["r1"]
        blocker.close()

    asyncio.run(main())


def _write(content: bytes) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        path.write_bytes(content)

    return damage


def _truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _overwrite_header(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(os.urandom(100))


def _make_foreign(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE notes (text)")
        connection.commit()


def _make_newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")


@pytest.mark.parametrize(
    ("damage", "error", "says"),
    [
        (_write(b""), JournalError, "is an empty file"),
        (_write(b"\0" * 8_192), JournalError, "not a database"),
        (_write(b"# notes\n" * 500), JournalError, "not a database"),
        (_write(b"x"), JournalError, "not a database"),
        (_truncate, JournalError, "malformed"),
        (_overwrite_header, JournalError, "not a database"),
        (_make_foreign, UsageError, "another program"),
        (_make_newer, UsageError, f"has format 99, and this xclaw knows {len(migrations())}: upgrade xclaw"),
    ],
    ids=["empty", "zeros", "text", "one byte", "truncated", "bad header", "another program's", "newer"],
)
def test_a_file_that_is_no_journal_is_named_and_left_alone(
    damage: Callable[[Path], None], error: type[XclawError], says: str, tmp_path: Path
) -> None:
    """D06: whatever is wrong with the file, it is never overwritten, however often we start."""
    path = tmp_path / "journal.db"

    async def main() -> None:
        async with opened(path) as journal:
            for number in range(20):
                await append_and_wait(journal, start_of(f"r{number}"))
        damage(path)
        before = path.read_bytes()
        for _ in range(2):
            with pytest.raises(error) as caught:
                async with opened(path):
                    pass
            assert says in str(caught.value)
            assert repr(str(path)) in str(caught.value)
            assert path.read_bytes() == before
        assert [item for item in tmp_path.iterdir() if ".new" in item.name] == []

    asyncio.run(main())


@pytest.mark.parametrize("where", ["", "a\0b", ".", "loop/journal.db", "file/journal.db"])
def test_a_path_that_cannot_hold_a_journal_is_a_usage_error(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").write_text("a file")

    async def main() -> None:
        with pytest.raises(UsageError, match="journal"):
            async with opened(Path(where) if where and "\0" not in where else tmp_path):
                pass
        with pytest.raises(UsageError, match="journal"):
            open_writer(StoreSettings(where))

    asyncio.run(main())


def test_a_log_whose_file_is_gone_is_not_mixed_into_a_new_journal(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    (tmp_path / "journal.db-wal").write_bytes(b"events of the lost file")
    with pytest.raises(JournalError, match="is missing, but its log"):
        open_writer(StoreSettings(str(path)))
    assert not path.exists()


def test_damage_inside_the_file_is_a_journal_error_to_readers(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"

    async def main() -> None:
        async with opened(path) as journal:
            await append_and_wait(journal, start_of("r1"))
            for seq in range(2, 200):
                journal.append([message_of("r1", seq, "x" * 2_000)], lambda _, __: None)
        size = path.stat().st_size
        with path.open("r+b") as file:
            file.seek(size // 4)
            file.write(os.urandom(size // 2))
        async with opened(path) as journal:
            with pytest.raises(JournalError):
                await journal.read_run("r1")

    asyncio.run(main())


NEXT = """
CREATE TABLE approvals (id INTEGER PRIMARY KEY);
-- a trigger has semicolons inside
CREATE TRIGGER approvals_kept BEFORE DELETE ON approvals BEGIN
    SELECT raise(ABORT, 'kept'); SELECT 1;
END;
"""


def test_an_older_journal_is_upgraded_and_keeps_its_events(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"

    async def write() -> None:
        async with opened(path) as journal:
            await append_and_wait(journal, start_of("r1"))

    asyncio.run(write())
    with closing(connect(path)) as connection:
        upgrade(connection, [*migrations(), NEXT])
        assert _version(connection) == len(migrations()) + 1
        assert connection.execute("SELECT count(*) FROM events").fetchone() == (1,)
        connection.execute("INSERT INTO approvals VALUES (1)")
        with pytest.raises(sqlite3.IntegrityError, match="kept"):
            connection.execute("DELETE FROM approvals")


def test_sessions_of_a_journal_that_had_none_are_the_owners(tmp_path: Path) -> None:
    """Whoever used xclaw before there were users finds their conversations again."""
    path = tmp_path / "journal.db"
    _make_first_format(path)

    async def main() -> None:
        async with opened(path) as journal:
            assert await journal.sessions.sessions() == [
                SessionRow("web-1", "web-1", "owner", "web-1", "", "And now?", "", 6.0, 6.0),
                SessionRow("cli", "cli", "owner", "cli", "", "Hi", "cli", 1.0, 5.0),
            ]
            assert [row.message_id for row in await journal.runs()] == [""] * 5
            entries = await journal.sessions.read_conversation("cli", 0, 10)
            assert [entry.address.run_id for entry in entries] == ["r1", "c1"]
            assert await journal.sessions.pending() == []

    asyncio.run(main())


def _make_first_format(path: Path) -> None:
    """Roots in two sessions, one of them begun by a run whose start is missing, and a child."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        upgrade(connection, migrations()[:1])
        connection.executemany(
            "INSERT INTO runs (run, root, parent, session, title, owner, started_at) VALUES (?,?,?,?,?,'me',?)",
            [
                ("r1", "r1", "", "cli", "Hi", 1.0),
                ("c1", "r1", "r1", "cli:coder:abc123", "Do it", 2.0),
                ("r2", "r2", "", "cli", "More", 5.0),
                ("r3", "r3", "", "web-1", "", 6.0),
                ("r4", "r4", "", "web-1", "And now?", 4.0),
            ],
        )
        for run, seq, event in (
            ("r1", 1, replace(started(text="Hi"), channel="cli")),
            ("c1", 1, replace(started(), channel="child")),
            ("r3", 2, MessageAdded("late", "user")),
        ):
            connection.execute(
                "INSERT INTO events (run, seq, at, kind, body) VALUES (?, ?, 1.0, ?, ?)",
                (run, seq, event.kind, encode_event(event)),
            )


def test_an_upgrade_that_fails_leaves_nothing_half_done(tmp_path: Path) -> None:
    path, connection = open_writer(StoreSettings(str(tmp_path / "journal.db")))
    with closing(connection):
        before = _schema(connection)
        with pytest.raises(sqlite3.OperationalError):
            upgrade(connection, [*migrations(), NEXT, "CREATE TABLE more (id);\nCREATE TABLE runs (id);"])
        assert _schema(connection) == before
        assert _version(connection) == len(migrations())
        upgrade(connection, [*migrations(), NEXT])
    with pytest.raises(UsageError, match="upgrade xclaw"):
        open_writer(StoreSettings(str(path)))


def test_two_processes_that_upgrade_at_once_do_it_once(tmp_path: Path) -> None:
    path, connection = open_writer(StoreSettings(str(tmp_path / "journal.db")))
    connection.close()
    together = Barrier(4)

    def upgrade_it(_: int) -> int:
        with closing(connect(path)) as own:
            together.wait(30)
            upgrade(own, [*migrations(), NEXT])
            return _version(own)

    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(upgrade_it, range(4))) == {len(migrations()) + 1}


def _version(connection: sqlite3.Connection) -> int:
    row: tuple[int] = connection.execute("PRAGMA user_version").fetchone()
    return row[0]


def _schema(connection: sqlite3.Connection) -> list[tuple[str]]:
    return connection.execute("SELECT sql FROM sqlite_schema ORDER BY name").fetchall()
