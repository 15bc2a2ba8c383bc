"""Finishing what must be finished although the caller is being cancelled."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


async def to_the_end(work: Coroutine[None, None, T]) -> T:
    """Await `work` to its end, however often the caller is cancelled meanwhile.

    The cancellation is not lost on the caller's side: it decides what to do after, as it was told before.
    """
    task = asyncio.get_running_loop().create_task(work)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([task])
    return task.result()
