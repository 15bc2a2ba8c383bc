"""A process of test_concurrency: tasks that append, and how long their event loop stood still.

Says "queued" when every task has appended once, "waited" once it has been held up for as long as
told, and at the end its longest standstill in seconds.
"""

import asyncio
import sys
from collections.abc import Callable
from contextlib import suppress

from xclaw.contracts.events import MessageAdded
from xclaw.store.journal import SqliteJournal
from xclaw.store.settings import StoreSettings
from xclaw.testing.journal_conformance import append_and_wait, ended, entries_of, root_address, started

TASKS = 8
EVENTS = 200
UPDATES = 20
TICK_S = 0.01


async def append_events(journal: SqliteJournal, name: str, queued: Callable[[], None]) -> None:
    """A run of `EVENTS` events, and `UPDATES` runs that start and end."""
    address = root_address(name)
    first = asyncio.ensure_future(append_and_wait(journal, *entries_of(address, started())))
    first.get_loop().call_soon(queued)
    await first
    for seq in range(2, EVENTS + 1):
        await append_and_wait(journal, *entries_of(address, MessageAdded("row", "user"), first_seq=seq))
    for number in range(UPDATES):
        await append_and_wait(journal, *entries_of(root_address(f"{name}-{number}"), started(), ended()))


async def watch(held_s: float, stop: asyncio.Event) -> float:
    """The longest that the loop was late for its next turn, up to `stop`."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    longest = 0.0
    waited = False
    while not stop.is_set():
        due = loop.time() + TICK_S
        with suppress(TimeoutError):
            async with asyncio.timeout_at(due):
                await stop.wait()
                return longest
        longest = max(longest, loop.time() - due)
        if not waited and loop.time() - began >= held_s:
            waited = True
            tell("waited")
    return longest


def tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def main(path: str, name: str, held_s: float) -> None:
    journal = await SqliteJournal.open(StoreSettings(path))
    waiting = TASKS

    def queued() -> None:
        nonlocal waiting
        waiting -= 1
        if not waiting:
            tell("queued")

    stop = asyncio.Event()
    watching = asyncio.ensure_future(watch(held_s, stop))
    async with asyncio.TaskGroup() as group:
        for number in range(TASKS):
            group.create_task(append_events(journal, f"{name}-{number}", queued))
    stop.set()
    tell(str(await watching))
    await journal.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3])))
