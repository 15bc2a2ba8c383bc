"""One gateway for each home, and how others find it.

Whether one runs is told by a lock that its process holds. The kernel frees it when the process dies,
however it dies, so neither a file that was left behind nor a pid that was given out again looks alive.
"""

import fcntl
import os
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from xclaw.contracts.errors import UsageError
from xclaw.gateway.private_files import make_home, read_private, replace_private, unusable

LOCK_FILE = "gateway.lock"
STATE_FILE = "gateway.json"
_TRIES = 40
_TRY_AGAIN_S = 0.01
"""Whoever looks whether the lock is held has it for a moment."""


@dataclass(frozen=True, slots=True)
class Running:
    """A gateway that lives. While it starts its `url` is empty; so is what else it has not said yet."""

    pid: int = 0
    url: str = ""
    workspace: str = ""
    version: str = ""
    started_at: float = 0.0
    """Unix time, seconds."""
    options: dict[str, str] = field(default_factory=dict[str, str])
    """Flags that hold for its whole process, with their values."""
    sources: tuple[str, ...] = ()
    """The settings files and folders of agents that it read."""

    @property
    def ready(self) -> bool:
        """It can be reached."""
        return bool(self.url)


class HeldLock:
    """What the one gateway of a home holds; says how to reach it."""

    def __init__(self, state_file: Path, clock: Callable[[], float]) -> None:
        self._state_file = state_file
        self._clock = clock

    def announce(
        self,
        url: str,
        *,
        workspace: str,
        version: str,
        options: Mapping[str, str] | None = None,
        sources: Sequence[str] = (),
    ) -> Running:
        """Say that the gateway listens. Raises `UsageError` when that cannot be written."""
        given = dict(options or {})
        running = Running(os.getpid(), url, workspace, version, self._clock(), given, tuple(sources))
        replace_private(self._state_file, msgspec.json.encode(running) + b"\n")
        return running


@contextmanager
def hold(
    home: Path, state_file: Path | None = None, *, clock: Callable[[], float] = time.time
) -> Generator[HeldLock]:
    """Be the gateway of `home` as long as the block lasts. May wait for a fraction of a second.

    Raises:
        UsageError: another gateway is, and which; or the home cannot be used.
    """
    state_file = state_file or home / STATE_FILE
    make_home(home)
    descriptor = _opened(home / LOCK_FILE)
    try:
        if not _taken(descriptor):
            raise UsageError(_named(find(home, state_file)))
        with suppress(OSError):
            state_file.unlink()  # of one that was killed
        try:
            yield HeldLock(state_file, clock)
        finally:
            with suppress(OSError):
                state_file.unlink()
    finally:
        os.close(descriptor)


def find(home: Path, state_file: Path | None = None) -> Running | None:
    """The gateway of `home`, as far as it has said how to reach it; None when there is none.

    Raises:
        UsageError: the files cannot be read, or are open to others.
    """
    try:
        descriptor = os.open(home / LOCK_FILE, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise unusable(home / LOCK_FILE, error) from None
    try:
        # Shared, so that two who look at once do not take each other for the gateway.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _said(state_file or home / STATE_FILE)
    finally:
        os.close(descriptor)
    return None


def _said(state_file: Path) -> Running:
    content = read_private(state_file)
    if content is None:
        return Running()
    try:
        return msgspec.json.decode(content, type=Running)
    except msgspec.DecodeError as error:
        raise UsageError(
            f"{state_file}: damaged: {error}. Stop the gateway and start it again; it writes the file anew."
        ) from None


def _opened(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise unusable(path, error) from None


def _taken(descriptor: int) -> bool:
    for attempt in range(_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if attempt + 1 < _TRIES:
                time.sleep(_TRY_AGAIN_S)
        else:
            return True
    return False


def _named(running: Running | None) -> str:
    if running is None or not running.ready:
        return "another gateway of this home is starting or stopping. Wait a moment and try again."
    return (
        f"a gateway runs already: {running.url}, process {running.pid}, workspace {running.workspace}. "
        "Use that one, or stop it: xclaw serve --stop"
    )
