"""Who may use the one slot of the model next."""

import asyncio
import heapq
import itertools
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


class CallQueue:
    """One call at a time: first come, first served, but orchestrators before workers.

    A worker's answer is worth nothing while its orchestrator waits behind other workers. Cancelling
    a wait leaves the queue; cancelling a turn ends it.
    """

    def __init__(self) -> None:
        self._busy = False
        self._order = itertools.count()
        self._entries: list[tuple[bool, int, asyncio.Future[None]]] = []

    @property
    def waiting(self) -> int:
        """Calls that wait for their turn."""
        return sum(not future.done() for _, _, future in self._entries)

    @asynccontextmanager
    async def turn(self, *, orchestrator: bool) -> AsyncGenerator[None]:
        await self._wait_turn(orchestrator)
        try:
            yield
        finally:
            self._pass_on()

    async def _wait_turn(self, orchestrator: bool) -> None:
        if not self._busy:
            self._busy = True
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._entries, (not orchestrator, next(self._order), future))
        try:
            await future
        except asyncio.CancelledError:
            if not future.cancelled():  # the turn was handed over in the same moment
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        while self._entries:
            _, _, future = heapq.heappop(self._entries)
            if not future.done():
                future.set_result(None)
                return
        self._busy = False
