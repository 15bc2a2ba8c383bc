"""One run at a time per session (SPEC A5): in this process by a lock, between processes by another."""

import asyncio
from collections.abc import Callable

Take = Callable[[str], None]


class Sessions:
    """Who is in. `take` and `drop` hold a session against other processes; `take` raises
    `UsageError` when another one has it."""

    def __init__(self, take: Take, drop: Take) -> None:
        self._take = take
        self._drop = drop
        self._locks: dict[str, asyncio.Lock] = {}
        self._inside: dict[str, int] = {}

    async def enter(self, session_id: str) -> None:
        """Wait for the session in order of arrival. Cancelling it gives the place up."""
        lock = self._locks.setdefault(session_id, asyncio.Lock())
        self._inside[session_id] = self._inside.get(session_id, 0) + 1
        try:
            await lock.acquire()
            try:
                self._take(session_id)
            except BaseException:
                lock.release()
                raise
        except BaseException:
            self._left(session_id)
            raise

    def leave(self, session_id: str) -> None:
        self._drop(session_id)
        self._locks[session_id].release()
        self._left(session_id)

    def _left(self, session_id: str) -> None:
        """Forget a session that nobody is in or waits for."""
        self._inside[session_id] -= 1
        if not self._inside[session_id]:
            del self._inside[session_id], self._locks[session_id]
