"""An SQLite file that is an index: made when it is needed, begun anew when it is damaged. Blocks.

Changes are made under a lock of our own, so that SQLite's, which wakes nobody and is not fair, is
hardly ever waited for.
"""

import logging
import sqlite3
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

from xclaw.contracts.errors import UsageError
from xclaw.memory.files import make_directory
from xclaw.memory.layout import LOCK
from xclaw.memory.locking import locked

_BUSY_S = 10.0
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB")

Answer = TypeVar("Answer")
logger = logging.getLogger(__name__)


class _Foreign(Exception):
    """The file is a database of another format."""


class IndexFile:
    """The database at `path`, with the tables of `schema`. Nothing is held open."""

    def __init__(self, path: Path, schema: str, version: int, *, durable: bool) -> None:
        self.path = path
        self._schema = schema
        self._version = version
        self._synchronous = "FULL" if durable else "OFF"

    def read(self, work: Callable[[sqlite3.Connection], Answer], empty: Answer) -> Answer:
        """What `work` answers; `empty` where there is no file, or a damaged one, which is logged.

        Raises `UsageError` when the file cannot be used.
        """
        if not self.path.exists():
            return empty
        try:
            with self._opened() as base:
                return work(base) if _version_of(base) == self._version else empty
        except sqlite3.Error as error:
            if not _is_damage(error):
                raise self._unusable(error) from error
            logger.warning("the index %s is damaged (%s): what it had is not found", self.path, error)
            return empty

    def change(self, work: Callable[[sqlite3.Connection], None]) -> None:
        """Run `work` in a transaction: all of it or nothing. Raises `UsageError`."""
        try:
            make_directory(self.path.parent)
            with locked(self.path.parent / LOCK):
                try:
                    self._transact(work)
                except (sqlite3.Error, _Foreign) as error:
                    if not _is_damage(error):
                        raise
                    self._put_aside(error)
                    self._transact(work)
        except (sqlite3.Error, OSError) as error:
            raise self._unusable(error) from error

    def _transact(self, work: Callable[[sqlite3.Connection], None]) -> None:
        with self._opened() as base:
            base.execute(f"PRAGMA synchronous = {self._synchronous}")
            self._prepare(base)
            base.execute("BEGIN IMMEDIATE")
            try:
                work(base)
                base.execute("COMMIT")
            except BaseException:
                if base.in_transaction:
                    base.execute("ROLLBACK")
                raise

    def _prepare(self, base: sqlite3.Connection) -> None:
        found = _version_of(base)
        if found == self._version:
            return
        if found or base.execute("SELECT 1 FROM sqlite_master").fetchone():
            raise _Foreign(f"it has format {found}, not {self._version}")
        base.executescript(f"BEGIN; {self._schema} PRAGMA user_version = {self._version}; COMMIT;")

    def _put_aside(self, error: Exception) -> None:
        """In place of what was put aside before."""
        logger.warning("the index %s is begun anew (%s); the old one is beside it", self.path, error)
        for name in (self.path, Path(f"{self.path}-journal")):
            if name.exists():
                name.replace(f"{name}.damaged")

    @contextmanager
    def _opened(self) -> Generator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path, timeout=_BUSY_S, isolation_level=None)) as base:
            yield base

    def _unusable(self, error: Exception) -> UsageError:
        return UsageError(f"cannot use the index {self.path}: {error}. Try again, or check its directory")


def _version_of(base: sqlite3.Connection) -> int:
    row: tuple[int] = base.execute("PRAGMA user_version").fetchone()
    return row[0]


def _is_damage(error: Exception) -> bool:
    return isinstance(error, _Foreign) or getattr(error, "sqlite_errorname", "").startswith(_DAMAGED)
