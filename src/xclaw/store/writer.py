"""The one thread that writes: whatever was queued since the last commit is the next transaction."""

import asyncio
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TypeVar

from xclaw.contracts.errors import JournalError, UsageError
from xclaw.contracts.events import Entry
from xclaw.contracts.journal import Committed
from xclaw.store.batch import Append, RunTable
from xclaw.store.codec import reason_from

T = TypeVar("T")

GATHER_S = 0.002
CROWD = 8
"""Appends in one wait that make the next wait worth it."""
TRY_AFTER = 64
"""Appends between two tries."""


class Gathering:
    """Decides whether to wait a moment for company: a transaction costs as much as ten rows.

    One conversation at a time gains nothing by waiting, so a wait is tried now and then, and kept
    up only while it brings in a crowd.
    """

    def __init__(self) -> None:
        self._crowded = False
        self._until_next_try = TRY_AFTER

    @property
    def pays(self) -> bool:
        """Wait before the next batch."""
        return self._crowded or self._until_next_try <= 0

    def count(self, appends: int) -> None:
        """Learn from the size of the batch that came of the last decision."""
        waited = self.pays
        self._crowded = waited and appends >= CROWD
        self._until_next_try = TRY_AFTER if waited else self._until_next_try - appends


class Writer:
    """Owns the writing connection and its thread.

    A run whose append failed is failed: its later appends fail too, until it is claimed anew.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._table = RunTable(connection)
        self._queue: queue.SimpleQueue[Append | Callable[[], None] | None] = queue.SimpleQueue()
        self._failed: dict[str, JournalError] = {}
        self._closing = False
        self._thread = threading.Thread(target=self._serve, name="xclaw-journal", daemon=True)
        self._thread.start()

    def append(self, entries: Sequence[Entry], committed: Committed) -> None:
        """As `Journal.append`. Must be called on a running event loop, which `committed` is called on."""
        loop = asyncio.get_running_loop()
        if self._closing:
            loop.call_soon(committed, tuple(entries), JournalError("the journal is closed"))
            return
        self._queue.put(Append(tuple(entries), committed, loop))

    async def call(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` after everything queued so far, outside of a transaction.

        Cancelling either prevents it or leaves it to be done whole. Raises `JournalError`, or the
        `UsageError` that `work` raised.
        """
        return await asyncio.wrap_future(self._queued(work))

    async def finish(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """As `call`, but it is done even when the wait is cancelled."""
        return await asyncio.shield(asyncio.wrap_future(self._queued(work)))

    def start_repeating(self, work: Callable[[sqlite3.Connection], bool]) -> Future[None]:
        """Run `work` until it answers false, and in between whatever else is queued.

        `close` ends it after the step that it is at. Not to be cancelled.
        """
        done: Future[None] = Future()

        def execute() -> None:
            try:
                again = not self._closing and work(self._connection)
            except Exception as error:  # noqa: BLE001 - the thread must outlive it; it is raised by the waiter
                done.set_exception(_journal_error(error))
                return
            if again:
                self._queue.put(execute)
            else:
                done.set_result(None)

        if self._closing:
            done.set_result(None)
        else:
            self._queue.put(execute)
        return done

    def _queued(self, work: Callable[[sqlite3.Connection], T]) -> Future[T]:
        if self._closing:
            raise JournalError("the journal is closed")
        future: Future[T] = Future()

        def execute() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(work(self._connection))
            except UsageError as error:
                future.set_exception(error)
            except Exception as error:  # noqa: BLE001 - the thread must outlive it; it is raised by the waiter
                future.set_exception(_journal_error(error))

        self._queue.put(execute)
        return future

    async def claim(self, root_id: str, from_owner: str, to_owner: str) -> bool:
        """As `Journal.claim`. A failed run that this process claims may be written again."""

        def work(_: sqlite3.Connection) -> bool:
            runs = self._table.claim(root_id, from_owner, to_owner)
            if to_owner == self._table.owner:
                for run in runs:
                    self._failed.pop(run, None)
            return bool(runs)

        return await self.call(work)

    async def become(self, owner: str) -> None:
        """Name the owner of runs that start from now on."""

        def work(_: sqlite3.Connection) -> None:
            self._table.owner = owner

        await self.call(work)

    async def close(self) -> None:
        """Commit what is queued, end the thread, close the connection. Safe to repeat and to cancel."""
        if not self._closing:
            self._closing = True
            self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _serve(self) -> None:
        gathering = Gathering()
        waiting: list[Append] = []
        serving = True
        while serving:
            item = self._queue.get()
            if gathering.pays:
                time.sleep(GATHER_S)
            while True:
                if isinstance(item, Append):
                    waiting.append(item)
                else:
                    self._commit(waiting)
                    waiting = []
                    if item is None:
                        serving = False
                    else:
                        item()
                try:
                    item = self._queue.get_nowait()
                except queue.Empty:
                    break
            gathering.count(len(waiting))
            self._commit(waiting)
            waiting = []
        self._connection.close()

    def _commit(self, appends: list[Append]) -> None:
        ready = [append for append in appends if self._prepare(append)]
        error = self._try_write(ready)
        if error is not None and (len(ready) == 1 or _is_busy(error)):
            for append in ready:
                self._fail(append, error)
        elif error is not None:
            self._write_one_by_one(ready)
        if appends:
            _deliver(appends)

    def _prepare(self, append: Append) -> bool:
        """Encode it, unless its run has failed before. False when it is not to be written."""
        earlier = self._earlier_failure(append)
        if earlier is None:
            try:
                append.encode()
            except Exception as error:  # noqa: BLE001 - the thread must outlive it; the callback is told
                runs = ", ".join(sorted(append.runs()))
                self._fail(append, JournalError(f"an event of run {runs} cannot be stored: {error}"))
        else:
            self._fail(append, earlier)
        return append.error is None

    def _earlier_failure(self, append: Append) -> JournalError | None:
        if not self._failed:
            return None
        return next((self._failed[run] for run in append.runs() if run in self._failed), None)

    def _try_write(self, appends: list[Append]) -> JournalError | None:
        try:
            self._table.write(appends)
        except Exception as error:  # noqa: BLE001 - the thread must outlive it; the callbacks are told
            return _journal_error(error)
        return None

    def _write_one_by_one(self, appends: list[Append]) -> None:
        """Find who is at fault: each in its own transaction, in order."""
        blocked: JournalError | None = None
        for append in appends:
            error = blocked or self._earlier_failure(append) or self._try_write([append])
            if error is not None:
                self._fail(append, error)
                if _is_busy(error):
                    blocked = error

    def _fail(self, append: Append, error: JournalError) -> None:
        append.error = type(error)(*error.args)
        append.error.__cause__ = error.__cause__
        for run in append.runs():
            self._failed.setdefault(run, append.error)


def _journal_error(error: Exception) -> JournalError:
    if isinstance(error, JournalError):
        return error
    result = JournalError(f"the journal cannot be written: {reason_from(error)}")
    result.__cause__ = error
    return result


def _is_busy(error: JournalError) -> bool:
    """Another process held the file for the whole busy time-out: trying again would take as long."""
    name: str = getattr(error.__cause__, "sqlite_errorname", "")
    return name.startswith("SQLITE_BUSY")


def _deliver(appends: list[Append]) -> None:
    """Tell everybody, with one wake-up per event loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Append]] = {}
    for append in appends:
        by_loop.setdefault(append.loop, []).append(append)
    for loop, theirs in by_loop.items():
        try:
            loop.call_soon_threadsafe(_tell, loop, theirs)
        except RuntimeError:
            continue  # the loop is closed: nobody is left to be told


def _tell(loop: asyncio.AbstractEventLoop, appends: list[Append]) -> None:
    for append in appends:
        try:
            append.committed(append.entries, append.error)
        except Exception as error:  # noqa: BLE001 - one bad callback must not silence the others
            loop.call_exception_handler({"message": "a journal callback failed", "exception": error})
