"""Finishing what must be finished although whoever waits for it is being cancelled."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")


async def finished(work: Coroutine[None, None, T]) -> T:
    """The result of `work`, which is awaited to its end however often the caller is cancelled meanwhile. The
    caller is cancelled then, after it."""
    task = asyncio.get_running_loop().create_task(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as cancel:
            cancelled = cancel
    if cancelled is not None:
        raise cancelled from task.exception()
    return task.result()
