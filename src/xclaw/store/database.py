"""Opens the database file: creates it whole, upgrades it whole, and never overwrites one.

A new file is made beside its place and linked there when it is complete, so that no process ever
sees half a database, and an empty file is always a damaged one.
"""

import os
import sqlite3
import tempfile
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote

from xclaw.contracts.errors import JournalError, UsageError
from xclaw.store.codec import reason_from
from xclaw.store.settings import StoreSettings

APPLICATION_ID = 0x78634C57
"""Marks the file as a journal of ours ("xcLW")."""
_MAGIC = b"SQLite format 3\0"
BUSY_TIMEOUT_S = 30.0
CHECKPOINT_PAGES = 4_000
"""Pages of 4 KiB in the log before it is copied back, which waits for the disk."""


def migrations() -> list[str]:
    """The numbered SQL files in order: number N upgrades version N - 1 to N."""
    folder = files("xclaw.store") / "schema"
    names = sorted(item.name for item in folder.iterdir() if item.name.endswith(".sql"))
    return [(folder / name).read_text("utf-8") for name in names]


def open_writer(settings: StoreSettings) -> tuple[Path, sqlite3.Connection]:
    """The real path, and a connection that writes; the file is created or upgraded first.

    Raises `UsageError` for a path that cannot hold a journal, or a journal of a newer xclaw;
    `JournalError` for a damaged file, which is left as it is.
    """
    path = _checked_path(settings.path)
    try:
        if not path.exists():
            _create(path)
        _refuse_non_database(path)
        connection = connect(path)
        try:
            _check_and_upgrade(connection, path, migrations())
            connection.execute(f"PRAGMA synchronous = {settings.synchronous}")
            connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
            # What is deleted is overwritten with zeros, so that it is really gone.
            connection.execute("PRAGMA secure_delete = ON")
        except BaseException:
            connection.close()
            raise
    except sqlite3.DatabaseError as error:
        raise _unusable(path, error) from error
    except OSError as error:
        raise UsageError(f"cannot use {str(path)!r} as the journal: {error.strerror or error}") from error
    return path, connection


def open_reader(path: str) -> sqlite3.Connection:
    connection = connect(Path(path))
    connection.execute("PRAGMA query_only = ON")
    return connection


def connect(path: Path) -> sqlite3.Connection:
    """Connect to a file that exists, with transactions left to the caller."""
    return sqlite3.connect(
        f"file:{quote(str(path))}?mode=rw",
        uri=True,
        timeout=BUSY_TIMEOUT_S,
        isolation_level=None,
        check_same_thread=False,
    )


@contextmanager
def transaction(connection: sqlite3.Connection) -> Generator[None]:
    """All of what is done in the block, or none of it. Waits for other writers before it begins."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def upgrade(connection: sqlite3.Connection, scripts: list[str]) -> None:
    """Run the scripts the database has not had, all or none. Safe when two processes do it at once."""
    with transaction(connection):
        for number in range(_pragma(connection, "user_version"), len(scripts)):
            for statement in _statements(scripts[number]):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {max(len(scripts), _pragma(connection, 'user_version'))}")


def refuse_unusable(path: Path) -> None:
    """Raise what `open_writer` would for a file that exists, without writing to it."""
    _refuse_non_database(_checked_path(str(path)))
    with closing(open_reader(str(path))) as connection:
        try:
            _checked_version(connection, path)
        except sqlite3.DatabaseError as error:
            raise _unusable(path, error) from error


def _checked_path(text: str) -> Path:
    if not text or "\0" in text:
        raise UsageError(f"the journal's path is {text!r}: set `path` to a file")
    try:
        path = Path(text).resolve()
    except (OSError, RuntimeError) as error:
        raise UsageError(f"cannot follow the journal's path {text!r}: {error}") from error
    if path.is_dir():
        raise UsageError(f"the journal's path {str(path)!r} is a directory: set `path` to a file in it")
    if path.exists() and not path.is_file():
        raise UsageError(f"the journal's path {str(path)!r} is no regular file: set `path` to one")
    return path


def _create(path: Path) -> None:
    """Put a complete, empty journal at `path`, unless another process has just done so."""
    log = Path(f"{path}-wal")
    # Asked in this order: a process that creates the journal now makes the log after the file.
    if log.exists() and log.stat().st_size and not path.exists():
        raise JournalError(
            f"the journal {str(path)!r} is missing, but its log {str(log)!r} is there and holds events: "
            "put the file back, or move the log away to begin an empty journal"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f"{path.name}.", suffix=".new", dir=path.parent)
    os.close(descriptor)
    new = Path(name)
    try:
        with closing(connect(new)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            upgrade(connection, migrations())
        with suppress(FileExistsError):
            os.link(new, path)
    finally:
        new.unlink(missing_ok=True)


def _refuse_non_database(path: Path) -> None:
    """SQLite itself would take an empty or very short file for a new database, and fill it."""
    with path.open("rb") as file:
        header = file.read(len(_MAGIC))
    if header != _MAGIC:
        what = "not a database" if header else "an empty file"
        raise JournalError(
            f"the journal {str(path)!r} is {what}, so something damaged or replaced it. "
            "It was left as it is: restore a copy, or move it away to begin an empty journal"
        )


def _check_and_upgrade(connection: sqlite3.Connection, path: Path, scripts: list[str]) -> None:
    version = _checked_version(connection, path)
    connection.execute("PRAGMA journal_mode = WAL")
    if version < len(scripts):
        upgrade(connection, scripts)
    # Reads both ends of the tables, so that a truncated file is noticed now.
    for table, column in (("runs", "number"), ("events", "id")):
        connection.execute(f"SELECT min({column}), max({column}) FROM {table}").fetchall()


def _checked_version(connection: sqlite3.Connection, path: Path) -> int:
    if _pragma(connection, "application_id") != APPLICATION_ID:
        raise UsageError(
            f"{str(path)!r} is a database of another program. It was left as it is: "
            "set `path` to another file"
        )
    version, known = _pragma(connection, "user_version"), len(migrations())
    if version > known:
        raise UsageError(
            f"the journal {str(path)!r} has format {version}, and this xclaw knows {known}: "
            "upgrade xclaw, or set `path` to another file"
        )
    return version


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    row: tuple[int] = connection.execute(f"PRAGMA {name}").fetchone()
    return row[0]


def _statements(script: str) -> list[str]:
    statements: list[str] = []
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            statements.append(pending)
            pending = ""
    return statements


def _unusable(path: Path, error: sqlite3.DatabaseError) -> JournalError | UsageError:
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM")):
        return UsageError(
            f"cannot write the journal {str(path)!r}: {reason_from(error)}. "
            "Check the permissions of the file and its directory, or set `path` to another file"
        )
    if name.startswith("SQLITE_BUSY"):
        return JournalError(
            f"the journal {str(path)!r} has been locked for {BUSY_TIMEOUT_S:.0f} s: "
            "end the program that holds it"
        )
    return JournalError(
        f"cannot read the journal {str(path)!r}: {reason_from(error)}. It was left as it is: "
        "restore a copy, or move it away to begin an empty journal"
    )
