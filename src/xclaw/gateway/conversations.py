"""The messages of one conversation: one at a time, in order, each answered once (SPEC A5)."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from xclaw.contracts.channels import Failed
from xclaw.contracts.errors import JournalError, SessionBusy, UsageError, XclawError
from xclaw.contracts.notifications import TASK_NOTIFICATION
from xclaw.contracts.results import Result
from xclaw.contracts.sessions import Inbound, SessionStore
from xclaw.gateway.feeds import Feed
from xclaw.runtime.notified import parse
from xclaw.runtime.runs import RunHandle

logger = logging.getLogger(__name__)

BUSY_RETRY_S = 0.5
"""How often a session that another process works in is tried."""
JOURNAL_RETRY_S = 1.0
"""How often a journal that cannot be used, on a full disk for instance, is tried."""
INTERRUPTED = "interrupted by a new message of the user"
NOBODY_TO_TELL = "a task notification is for a run that goes on, and none does in this session"

Begin = Callable[[Inbound], Awaitable[RunHandle]]
"""Routes a message and starts its run. Raises `UsageError` for one that can never be answered."""


def given_up(inbound: Inbound, name: str, reason: str) -> Failed:
    """What is said of a message that has no answer to whoever watches the conversation of that name."""
    return Failed(inbound.message.id, name, "refused", reason)


class Conversation:
    """What waits and what runs. The store has what waits, too: this is its order in memory."""

    def __init__(self, feed: Feed, store: SessionStore, *, begin: Begin, on_idle: Callable[[], None]) -> None:
        """`on_idle` is called when nothing runs and nothing waits any more."""
        self.feed = feed
        self._store = store
        self._begin = begin
        self._on_idle = on_idle
        self._waiting: deque[Inbound] = deque()
        self._replaced: list[Inbound] = []
        """Messages that should have taken a run's place, and in whose place others came."""
        self._steered: list[Inbound] = []
        self._current: RunHandle | None = None
        self._answering = ""
        """The message that is being answered, also while it is routed."""
        self._give_up = ""
        """Why the run that is about to start shall end at once."""
        self._worker: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()
        self._arriving = 0

    @asynccontextmanager
    async def accepting(self) -> AsyncGenerator[None]:
        """Hold it from storing a message until it has its place here: one at a time, in order."""
        self._arriving += 1
        try:
            async with self._turn:
                yield
        finally:
            self._arriving -= 1
            if self.idle:
                self._on_idle()

    @property
    def idle(self) -> bool:
        return self._worker is None and not self._waiting and not self._arriving

    @property
    def waiting(self) -> int:
        """How many messages come before the next one."""
        return len(self._waiting) + bool(self._answering)

    @property
    def running(self) -> tuple[str, ...]:
        """The requests that are being answered."""
        return (self._answering,) if self._answering else ()

    @property
    def current(self) -> RunHandle | None:
        return self._current

    def add(self, inbound: Inbound) -> None:
        """Give an accepted message its place: behind the others, into the run, or in place of it."""
        if inbound.message.type == TASK_NOTIFICATION and self._current is not None:
            self._tell(self._current, inbound)
        elif inbound.manner == "interrupt":
            self._replace_interrupts()
            self._waiting.appendleft(inbound)
            if self._answering:
                self._end_current(INTERRUPTED)
        elif inbound.manner == "steer" and self._current is not None:
            self._steered.append(inbound)
            self._current.steer(inbound.message.content, inbound.message.id)
        else:
            self._waiting.append(inbound)
        self._work()

    def adopt(self, handle: RunHandle, message_id: str) -> None:
        """Go on with a run that an earlier process had begun."""
        self._current, self._answering = handle, message_id
        self._work()

    async def cancel(self, reason: str) -> int:
        """End what runs and drop what waits; answers how many runs ended."""
        waiting = [*self._steered, *self._replaced, *self._waiting]
        self._waiting.clear()
        self._replaced.clear()
        for inbound in waiting:
            await self.drop(inbound, reason)
        current = self._current
        if current is None:
            self._give_up = reason if self._answering else ""
            return 0
        return len(await current.cancel(reason))

    async def drop(self, inbound: Inbound, reason: str) -> bool:
        """Give a waiting message up, and tell whoever watches."""
        if inbound in self._waiting:
            self._waiting.remove(inbound)
        if not await self._store.drop(inbound.message.id, reason):
            return False
        self.feed.fail(given_up(inbound, self.feed.name, reason))
        return True

    async def stop(self) -> None:
        """Stop taking messages on; those that wait stay in the store. The run is not ended by this."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.cancel()
            await asyncio.wait([worker])

    def _work(self) -> None:
        if self._worker is None or self._worker.done():
            self._worker = asyncio.get_running_loop().create_task(self._answer_all())

    def _replace_interrupts(self) -> None:
        """What interrupted and was not begun yet ends as the run would that it was to become."""
        for inbound in [each for each in self._waiting if each.manner == "interrupt"]:
            self._waiting.remove(inbound)
            self._replaced.append(inbound)

    def _tell(self, run: RunHandle, inbound: Inbound) -> None:
        """What others say of their tasks is data for the run, whatever the client wished."""
        self._steered.append(inbound)
        message = inbound.message
        run.notify(parse(message.content), message.channel, message.id)

    def _end_current(self, reason: str) -> None:
        if self._current is None:
            self._give_up = reason
            return
        task = asyncio.get_running_loop().create_task(self._current.cancel(reason))
        task.add_done_callback(lambda done: done.exception())

    async def _answer_all(self) -> None:
        """Until nothing waits. Cancelling it leaves run and store as they are."""
        try:
            if self._current is not None:
                await self._to_its_end(self._current)
            while self._waiting or self._replaced:
                try:
                    await self._next()
                except JournalError as failure:
                    logger.error("conversation %s waits for the journal: %s", self.feed.name, failure)
                    await asyncio.sleep(JOURNAL_RETRY_S)
        finally:
            self._current, self._answering, self._give_up = None, "", ""
            self._worker = None
            self._on_idle()

    async def _next(self) -> None:
        """Answer or give up what comes next. It stays in its place when the journal cannot be used."""
        if self._replaced:
            replaced = self._replaced.pop(0)
            try:
                await self.drop(replaced, INTERRUPTED)
            except JournalError:
                self._replaced.insert(0, replaced)
                raise
            return
        inbound = self._waiting.popleft()
        try:
            await self._answer(inbound)
        except JournalError:
            self._waiting.appendleft(inbound)
            raise

    async def _answer(self, inbound: Inbound) -> None:
        self._answering, self._give_up = inbound.message.id, ""
        try:
            await self._answer_pending(inbound)
        finally:
            self._answering = ""

    async def _answer_pending(self, inbound: Inbound) -> None:
        stored = await self._store.inbound(inbound.message.id)
        if stored is None or stored.run_id or stored.dropped:
            return
        if inbound.message.type == TASK_NOTIFICATION:  # it asks for nothing: no run is begun for it
            await self.drop(inbound, NOBODY_TO_TELL)
            return
        try:
            handle = await self._started(inbound)
        except JournalError:
            raise
        except XclawError as failure:
            await self.drop(inbound, str(failure))
        except Exception as failure:
            logger.exception("message %s could not be answered", inbound.message.id)
            await self.drop(inbound, f"internal error: {type(failure).__name__}")
        else:
            result = await self._to_its_end(handle)
            if result.outcome == "interrupted" and not await self._is_taken(inbound):
                raise JournalError(result.reason)

    async def _is_taken(self, inbound: Inbound) -> bool:
        """False when not even the beginning of its run could be stored."""
        stored = await self._store.inbound(inbound.message.id)
        return stored is not None and bool(stored.run_id)

    async def _started(self, inbound: Inbound) -> RunHandle:
        while True:
            try:
                return await self._begin(inbound)
            except SessionBusy:
                if self._give_up:
                    raise UsageError(self._give_up) from None
                await asyncio.sleep(BUSY_RETRY_S)

    async def _to_its_end(self, handle: RunHandle) -> Result:
        self._current = handle
        for inbound in [each for each in self._waiting if each.message.type == TASK_NOTIFICATION]:
            self._waiting.remove(inbound)
            self._tell(handle, inbound)
        if self._give_up:
            reason, self._give_up = self._give_up, ""
            await handle.cancel(reason)
        result = await handle.result()
        self._current = None
        self._answering = ""
        await self._requeue_steering()
        return result

    async def _requeue_steering(self) -> None:
        """What was meant for the run and came too late for its last turn is answered next."""
        steered, self._steered = self._steered, []
        for inbound in reversed(steered):
            stored = await self._store.inbound(inbound.message.id)
            if stored is not None and not stored.run_id and not stored.dropped:
                self._waiting.appendleft(inbound)
