"""Locks between processes. The kernel holds them, so a killed process never leaves one behind."""

import asyncio
import fcntl
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

_POLL_S = 0.2


def try_lock(path: Path) -> int | None:
    """Take the lock now: an open descriptor that holds it until closed, or None if another has it.

    A child that inherits the descriptor holds the lock as long as it lives.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


@asynccontextmanager
async def locked(path: Path, on_wait: Callable[[], None]) -> AsyncGenerator[None]:
    """Hold the lock inside the block; `on_wait` is called once if another process has it now."""
    descriptor = try_lock(path)
    if descriptor is None:
        on_wait()
    while descriptor is None:
        await asyncio.sleep(_POLL_S)
        descriptor = try_lock(path)
    try:
        yield
    finally:
        os.close(descriptor)
