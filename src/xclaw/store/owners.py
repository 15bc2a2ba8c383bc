"""Who drives runs. A process holds a lock on its own file for as long as it lives.

The kernel frees the lock when the process dies, however it dies, so a stale file or a reused pid
never looks like a living owner.
"""

import fcntl
import hashlib
import os
import re
import socket as sockets
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from xclaw.contracts.errors import JournalError

_PLAIN = re.compile(r"[a-z0-9_-][a-z0-9_.-]{0,99}")
"""Names that are file names as they are, also where upper and lower case are one."""


@dataclass(frozen=True, slots=True)
class OwnerRow:
    owner: str
    pid: int
    host: str
    socket: str
    """Where it listens; empty when it does not."""
    started_at: float
    """Unix time, seconds."""


class OwnerLocks:
    """The lock files beside one database. Blocks on nothing."""

    def __init__(self, database: str) -> None:
        self._directory = Path(f"{database}.owners")
        self._held: dict[str, int] = {}

    def take(self, owner: str) -> None:
        """Raises `JournalError` when a living process has that name."""
        if owner in self._held:
            return
        path = self._path(owner)
        while True:
            descriptor = self._opened(path)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                os.close(descriptor)
                raise JournalError(f"{owner!r} is held by a process that lives") from error
            if _is_file(descriptor, path):
                break
            # Its last holder removed the file after we had opened it: that lock keeps nobody out.
            os.close(descriptor)
        self._held[owner] = descriptor

    def drop(self, owner: str) -> None:
        """Give the lock up and remove its file. The file of a living process is left alone."""
        if owner not in self._held and self.alive(owner):
            return
        with suppress(FileNotFoundError):
            self._path(owner).unlink()
        descriptor = self._held.pop(owner, None)
        if descriptor is not None:
            os.close(descriptor)

    def held(self) -> list[str]:
        return list(self._held)

    def alive(self, owner: str) -> bool:
        """Whether the process of that name lives; this one counts."""
        if owner in self._held:
            return True
        try:
            descriptor = os.open(self._path(owner), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        except PermissionError:
            return True  # another user's: not ours to take over
        try:
            # Shared, so that two who ask at once do not take each other for the owner.
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def _opened(self, path: Path) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        try:
            return os.open(path, flags, 0o600)
        except FileNotFoundError:
            self._directory.mkdir(parents=True, exist_ok=True)
            return os.open(path, flags, 0o600)

    def _path(self, owner: str) -> Path:
        plain = (
            owner if _PLAIN.fullmatch(owner) else hashlib.sha256(owner.encode("utf-8", "replace")).hexdigest()
        )
        return self._directory / f"{plain}.lock"


def _is_file(descriptor: int, path: Path) -> bool:
    """Whether the open file is the one that `path` names now."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def add(owner: str, pid: int, socket: str) -> Callable[[sqlite3.Connection], None]:
    row = (owner, pid, sockets.gethostname(), socket, time.time())

    def work(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT OR REPLACE INTO owners VALUES (?, ?, ?, ?, ?)", row)

    return work


def remove(owners: list[str]) -> Callable[[sqlite3.Connection], None]:
    def work(connection: sqlite3.Connection) -> None:
        connection.executemany("DELETE FROM owners WHERE owner = ?", [(owner,) for owner in owners])

    return work


def rows(connection: sqlite3.Connection) -> list[OwnerRow]:
    """Oldest first."""
    found: list[tuple[str, int, str, str, float]] = connection.execute(
        "SELECT owner, pid, host, socket, started_at FROM owners ORDER BY started_at, owner"
    ).fetchall()
    return [OwnerRow(*row) for row in found]
