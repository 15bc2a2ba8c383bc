"""One reader of one conversation: everything once, in order, at its own pace, in bounded memory.

What a slow reader leaves lying is forgotten here and read again from the journal when it comes back
for it; streamed text that it has not fetched is one piece by then.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Self

from xclaw.contracts.channels import Failed, Outgoing
from xclaw.contracts.events import Entry, ModelAnswered, RunEnded, RunStarted, ToolCallEnded, ToolCallStarted
from xclaw.gateway.feeds import Feed, LiveText

PAGE = 100
"""Entries that are read from the journal at once."""
ENTRY_BYTES = 500
"""What an entry is taken to weigh beside its texts."""

ReadOn = Callable[[int, int], Awaitable[list[Entry]]]
"""The conversation's entries after an id, at most so many, their requests known to the feed."""


class Outlet:
    """Async iterator of `Outgoing`. Implements `feeds.Reader`."""

    def __init__(self, feed: Feed, read_on: ReadOn, after: int, limit_bytes: int) -> None:
        self.after = after
        """Where the watch began."""
        self.running: tuple[str, ...] = ()
        """Requests that were being answered then."""
        self._feed = feed
        self._read_on = read_on
        self._limit = limit_bytes
        self._queue: deque[Entry | LiveText | Failed] = deque()
        self.queued = 0
        """About how many bytes wait to be read, as far as they are kept for this reader."""
        self._handed = after
        """The last stored entry that was handed out."""
        self._newest = after
        """The last stored entry that was queued."""
        self._sent: dict[str, tuple[LiveText, int, int]] = {}
        """By run: the text it says, and how many parts and characters of it were handed out."""
        self._behind = True
        self._closed = False
        self._wake = asyncio.Event()
        feed.readers.append(self)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Outgoing:
        """Raises `JournalError` when the journal cannot be read. May be cancelled; nothing is lost."""
        while True:
            while self._queue:
                outgoing = self._handed_out(self._queue.popleft())
                if outgoing is not None:
                    return outgoing
            self.queued = 0
            if self._closed:
                raise StopAsyncIteration
            if self._behind:
                await self._catch_up()
            else:
                self._wake.clear()
                await self._wake.wait()

    def stored(self, entry: Entry) -> None:
        if self._closed or self._behind or entry.id <= self._newest:
            return
        self._newest = entry.id
        self._put(entry, _weight(entry))

    def streamed(self, live: LiveText, text: str) -> None:
        if self._closed or self._behind:
            return
        if self._queue and self._queue[-1] is live:
            self._weigh(len(text))
        else:
            self._put(live, len(text))

    def failed(self, failed: Failed) -> None:
        if not self._closed:
            self._put(failed, ENTRY_BYTES + len(failed.text))

    def missed(self, failures: Sequence[Failed]) -> None:
        """Those of before the watch began, also of the moment in which it did."""
        known = {item.request for item in self._queue if isinstance(item, Failed)}
        for failed in failures[-PAGE:]:
            if failed.request not in known:
                self.failed(failed)

    def close(self) -> None:
        """End the iteration once what is queued has been handed out; nothing comes after that."""
        self._closed = True
        self._behind = False
        self._wake.set()

    def leave(self) -> None:
        """Forget the feed."""
        if self in self._feed.readers:
            self._feed.readers.remove(self)

    def _put(self, item: Entry | LiveText | Failed, weight: int) -> None:
        self._queue.append(item)
        self._wake.set()
        self._weigh(weight)

    def _weigh(self, weight: int) -> None:
        self.queued += weight
        if self.queued > self._limit:
            failures = [item for item in self._queue if isinstance(item, Failed)][-PAGE:]
            self._queue.clear()
            self._queue.extend(failures)
            self.queued, self._newest, self._behind = 0, self._handed, True

    def _handed_out(self, item: Entry | LiveText | Failed) -> Outgoing | None:
        if isinstance(item, Failed):
            return item
        if isinstance(item, Entry):
            self._handed = item.id
            if isinstance(item.event, RunEnded):
                self._sent.pop(item.address.run_id, None)
            return self._feed.outgoing(item)
        known, parts, characters = self._sent.get(item.run_id, (item, 0, 0))
        if known is not item:
            parts = characters = 0
        text = "".join(item.parts[parts:])
        if not text:
            return None
        self._sent[item.run_id] = (item, len(item.parts), characters + len(text))
        return self._feed.delta(item, characters, text)

    async def _catch_up(self) -> None:
        """Read on; once nothing is left to read, what is being said comes next, and then what happens."""
        published = self._feed.newest  # is in the journal, unless it was deleted: waiting for it is no use
        page = await self._read_on(self._handed, PAGE)
        if self._closed:
            return
        self._queue.extend(page)
        self._newest = page[-1].id if page else self._handed
        if len(page) == PAGE or self._feed.newest > max(self._newest, published):
            return
        self._behind = False
        self._queue.extend(live for live in self._feed.texts if live.parts)


def _weight(entry: Entry) -> int:
    event = entry.event
    match event:
        case ModelAnswered():
            calls = sum(len(call.arguments) for call in event.message.tool_calls)
            return ENTRY_BYTES + len(event.message.text) + calls
        case ToolCallEnded():
            return ENTRY_BYTES + len(event.content)
        case ToolCallStarted():
            return ENTRY_BYTES + len(event.arguments)
        case RunStarted():
            return ENTRY_BYTES + len(event.input)
        case _:
            return ENTRY_BYTES
