"""A lock on a directory's files, between threads and between processes.

The kernel frees it when its holder dies, however it dies, so there is no stale lock. It is held for
short, synchronous work only, never across an `await`, and never taken twice by one thread.
"""

import errno
import fcntl
import logging
import os
import random
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from xclaw.contracts.errors import UsageError

PATIENCE_S = 10.0
"""How long a living holder is waited for. What is done under the lock takes less than a millisecond."""
_FIRST_WAIT_S = 0.0002
_LONGEST_WAIT_S = 0.004

logger = logging.getLogger(__name__)


@contextmanager
def locked(path: Path, patience_s: float = PATIENCE_S) -> Generator[None]:
    """Hold the lock file `path`, whose directory exists. Blocks; call it in a thread.

    Raises `UsageError` when a living process has held it for `patience_s`.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        _take(descriptor, path, patience_s)
        _note_holder(descriptor, path)
        try:
            yield
        finally:
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def _take(descriptor: int, path: Path, patience_s: float) -> None:
    deadline = time.monotonic() + patience_s
    wait_s = _FIRST_WAIT_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES, errno.EINTR):
                raise
        else:
            return
        if time.monotonic() >= deadline:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
            raise UsageError(
                f"{path.parent} has been locked for {patience_s:g} s by a process that lives (pid {holder}): "
                "end it, or try again"
            )
        # Uneven waits, so that no two waiters keep in step.
        time.sleep(wait_s * (0.5 + random.random()))
        wait_s = min(wait_s * 2, _LONGEST_WAIT_S)


def _note_holder(descriptor: int, path: Path) -> None:
    """Say who holds it now. What is still written there is of a holder that died."""
    dead = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
    if dead:
        logger.info("the process %s ended while it held %s; its lock is free", dead, path)
        os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
