"""The host directory of one sandbox: what is /tmp inside, its own /etc, a note of its control groups.

Its lock is held by xclaw, whose process id is in it. A directory whose lock is free belongs to nobody any more, however
its sandbox ended; the next start removes it, and what it names.
"""

import contextlib
import fcntl
import os
import re
import secrets
import shutil
import signal
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from xclaw.sandbox.linux.control_groups import remove_groups
from xclaw.sandbox.linux.marks import GROUPS_FILE, MARK
from xclaw.sandbox.linux.trees import empty, open_directory

PREFIX = "xclaw-sandbox-"
_OURS = re.compile(re.escape(PREFIX) + "[0-9a-f]{16}")
_LOCK = "lock"
_CONTENTS = frozenset({"tmp", "etc", GROUPS_FILE})
"""Of a directory beside its lock. One with anything else in it is somebody's."""
_LASTING = "/var/tmp"
"""Preferred to a directory that may be held in memory."""
_ROUNDS = 20
_UNLOCKED_S = 3_600.0
"""How old a directory without a lock is that nobody can still be at work on."""


@dataclass(slots=True)
class Home:
    path: Path
    lock: int
    """Descriptor; no other process has it."""

    def remove(self) -> None:
        """End what is left of the sandbox's processes, and remove everything. Safe to repeat."""
        if self.lock < 0:
            return
        _clear(self.path)
        os.close(self.lock)
        self.lock = -1


def make_home() -> Home:
    """Raises `OSError`."""
    path = _parent() / f"{PREFIX}{secrets.token_hex(8)}"
    path.mkdir(mode=0o711)
    path.chmod(0o711)
    lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.write(lock, str(os.getpid()).encode())
    return Home(path, lock)


def sweep() -> int:
    """Remove what killed processes have left behind; answers how many sandboxes that were."""
    swept = 0
    for path in _parent().glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            swept += _swept(path)
    return swept


def _swept(path: Path) -> bool:
    status = path.lstat()
    if status.st_uid != os.geteuid() or path.is_symlink() or not _OURS.fullmatch(path.name):
        return False
    try:
        lock = os.open(path / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:  # it is being made or removed, or was when its xclaw was killed
        names = {entry.name for entry in path.iterdir()}
        if time.time() - status.st_mtime < _UNLOCKED_S or not names <= _CONTENTS:
            return False
        _clear(path)
        return True
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _clear(path)
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
    return True


def _parent() -> Path:
    lasting = Path(_LASTING)
    return lasting if lasting.is_dir() and os.access(lasting, os.W_OK) else Path(tempfile.gettempdir())


def _clear(path: Path) -> None:
    _end_marked(path.name)
    are_gone = True
    with contextlib.suppress(FileNotFoundError):
        are_gone = remove_groups((path / GROUPS_FILE).read_text().splitlines())
    with contextlib.suppress(OSError):
        (path / "tmp").chmod(0o700)  # a command may have closed it
        directory = open_directory(str(path / "tmp"))
        try:
            empty(directory)
        finally:
            os.close(directory)
    if are_gone:  # or else a later sweep finds the note
        for inner in ("tmp", "etc"):  # before the lock, by which a later sweep knows what is left
            shutil.rmtree(path / inner, ignore_errors=True)
        with contextlib.suppress(OSError):
            if not {entry.name for entry in path.iterdir()} & {"tmp", "etc"}:
                shutil.rmtree(path)


def _end_marked(name: str) -> None:
    """Kill what was about to become a sandbox when everything above it was killed."""
    mark = f"{MARK}={name}".encode()
    for _ in range(_ROUNDS):
        found = _marked(mark)
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not found:
            return


def _marked(mark: bytes) -> set[int]:
    found: set[int] = set()
    with contextlib.suppress(OSError):
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):  # another user's, or gone; a zombie has no environment
                    if mark in (entry / "environ").read_bytes().split(b"\0"):
                        found.add(int(entry.name))
    return found
