"""The stream of a tree: what happens, in order, to the journal and to whoever watches.

A stored event reaches watchers once it is durable; streamed text at once, but never before an
event that was recorded ahead of it.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from xclaw.contracts.errors import JournalError
from xclaw.contracts.events import Address, Entry, Event, TextDelta
from xclaw.contracts.journal import Committed, Journal
from xclaw.loop.state import RunState

logger = logging.getLogger(__name__)

Receive = Callable[[Entry], None]
Told = Callable[[int, BaseException | None], None]
"""How many records have become durable, or why not."""


@dataclass(slots=True)
class _Batch:
    """What one run recorded back to back."""

    entries: list[Entry]
    records: int
    told: Told


class TreeStream:
    """One per tree. Owns the order; the journal owns durability.

    What a run records in one step of the event loop, with nothing of another run in between, is one
    append: half as many as there are records, and each costs both threads.
    """

    def __init__(self, journal: Journal, everybody: Sequence[Receive] = ()) -> None:
        """`everybody` is told of every tree; the list belongs to the caller and may change."""
        self._journal = journal
        self._everybody = everybody
        self._recorded: list[_Batch] = []
        """Of this step of the event loop, in order; not yet with the journal."""
        self._watchers: list[Receive] = []
        self._outgoing: deque[Sequence[Entry] | None] = deque()
        """What was recorded and not yet shown; a `None` is a batch the journal has not committed."""
        self.frozen = False
        """Nothing more may be recorded: the tree is left as it is, for another process to take up."""

    def subscribe(self, receive: Receive) -> Callable[[], None]:
        """Call `receive` for every entry from now on. It must not block; answers the unsubscriber."""
        self._watchers.append(receive)

        def stop() -> None:
            with suppress(ValueError):
                self._watchers.remove(receive)

        return stop

    def append(self, entries: list[Entry], told: Told) -> None:
        """Queue entries of one run for the journal; `told` hears when they are durable, or why not."""
        recorded = self._recorded
        follows = self._outgoing and self._outgoing[-1] is None  # no streamed text came in between
        if recorded and follows and recorded[-1].entries[-1].address is entries[0].address:
            recorded[-1].entries += entries
            recorded[-1].records += 1
            return
        if not recorded:
            asyncio.get_running_loop().call_soon(self.flush)
        recorded.append(_Batch(entries, 1, told))
        self._outgoing.append(None)

    def flush(self) -> None:
        """Hand what was recorded to the journal."""
        recorded, self._recorded = self._recorded, []
        for batch in recorded:
            self._journal.append(batch.entries, partial(self._done, batch))

    def _done(self, batch: _Batch, stored: Sequence[Entry], error: BaseException | None) -> None:
        self._committed(() if error else stored)
        batch.told(batch.records, error)

    def adopt(self, entries: Sequence[Entry], committed: Committed) -> None:
        """Journal and show what another process recorded, as it is; `committed` hears of it as from the
        journal itself."""
        self.flush()
        self._outgoing.append(None)

        def done(stored: Sequence[Entry], error: BaseException | None) -> None:
            self._committed(() if error else stored)
            committed(stored, error)

        self._journal.append(entries, done)

    def delta(self, address: Address, text: str) -> None:
        if not self._watchers and not self._everybody:
            return
        entry = Entry(address, 0, time.time(), TextDelta(text))
        if self._outgoing:
            self._outgoing.append((entry,))
        else:
            self._show(entry)

    def _committed(self, stored: Sequence[Entry]) -> None:
        """The oldest open batch is in (commit order is append order); show it and what waited for it."""
        outgoing = self._outgoing
        outgoing.popleft()
        for entry in stored:
            self._show(entry)
        while outgoing and (batch := outgoing[0]) is not None:
            outgoing.popleft()
            for entry in batch:
                self._show(entry)

    def _show(self, entry: Entry) -> None:
        for receive in [*self._everybody, *self._watchers]:
            try:
                receive(entry)
            except Exception:  # a watcher's bug must not stop the run, or the others that watch it
                logger.exception("a watcher of %s failed and is not told any more", entry.address.root_id)
                self._watchers = [other for other in self._watchers if other is not receive]


class RunLog:
    """The stream of one run: folds into its state, numbers and queues its events."""

    def __init__(self, stream: TreeStream, address: Address, state: RunState, last_seq: int = 0) -> None:
        self.address = address
        self.state = state
        self._stream = stream
        self._seq = last_seq
        self._open = 0
        self._error: BaseException | None = None
        self._waiters: list[asyncio.Future[None]] = []

    @property
    def recorded(self) -> int:
        """How many events the run has."""
        return self._seq

    def record(self, *events: Event) -> None:
        if self._error is not None:
            raise self._failure()
        if self._stream.frozen:
            raise JournalError("the run is left to another process")
        now = time.time()
        entries: list[Entry] = []
        for event in events:
            self._seq += 1
            self.state.apply(event)
            entries.append(Entry(self.address, self._seq, now, event))
        self._open += 1
        self._stream.append(entries, self._committed)

    def adopt(self, entries: Sequence[Entry], committed: Committed, check: Callable[[Event], None]) -> None:
        """Take over what another process that drives the run recorded; the numbers go on from there.

        `check` is asked about each event, with those before it folded. What it raises is raised, once what
        came before is recorded. Raises `JournalError` as `record` does, `ValueError` for numbers that do
        not follow.
        """
        if self._error is not None:
            raise self._failure()
        if self._stream.frozen:
            raise JournalError("the run is left to another process")
        taken: list[Entry] = []
        try:
            for entry in entries:
                if entry.seq != self._seq + 1:
                    raise ValueError(f"event {entry.seq} of a run does not follow event {self._seq}")
                check(entry.event)
                self._seq += 1
                self.state.apply(entry.event)
                taken.append(Entry(self.address, entry.seq, entry.at, entry.event))
        finally:
            if taken:
                self._open += 1
                self._stream.adopt(taken, partial(self._adopted, committed))

    def _adopted(self, committed: Committed, stored: Sequence[Entry], error: BaseException | None) -> None:
        self._committed(1, error)
        committed(stored, error)

    def delta(self, text: str) -> None:
        self._stream.delta(self.address, text)

    async def durable(self) -> None:
        """Raises `JournalError` (`Fenced`) if anything the run recorded could not be stored."""
        if self._open:
            self._stream.flush()
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter
        if self._error is not None:
            raise self._failure()

    def _failure(self) -> JournalError:
        error = self._error
        return error if isinstance(error, JournalError) else JournalError(str(error))

    def _committed(self, records: int, error: BaseException | None) -> None:
        self._open -= records
        self._error = self._error or error
        if self._open:
            return
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
