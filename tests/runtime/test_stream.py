"""The stream of a tree shows what happened in the order in which it happened."""

import asyncio
from collections.abc import Sequence

from xclaw.contracts.events import Address, Entry, TextDelta, TurnStarted, Warned
from xclaw.contracts.journal import Committed
from xclaw.loop.state import RunState
from xclaw.runtime.stream import RunLog, TreeStream


class LateJournal:
    """Commits when it is told to."""

    def __init__(self) -> None:
        self.batches: list[tuple[Sequence[Entry], Committed]] = []

    def append(self, entries: Sequence[Entry], committed: Committed) -> None:
        self.batches.append((entries, committed))

    def commit(self) -> None:
        for entries, committed in self.batches:
            committed(entries, None)
        self.batches = []


def test_text_that_a_model_streams_without_a_pause_stands_before_what_is_recorded_after_it() -> None:
    async def main() -> None:
        journal = LateJournal()
        stream = TreeStream(journal)  # pyright: ignore[reportArgumentType] - appends are all that it uses
        log = RunLog(stream, Address("r", "r", "", "s"), RunState())
        seen: list[object] = []
        stream.subscribe(lambda entry: seen.append(entry.event))
        log.record(TurnStarted(1, "m", 1, None))
        log.record(Warned("late", "a"))
        log.delta("hello")
        log.record(Warned("late", "b"))
        await asyncio.sleep(0)
        assert len(journal.batches) == 2
        journal.commit()
        assert seen == [
            TurnStarted(1, "m", 1, None),
            Warned("late", "a"),
            TextDelta("hello"),
            Warned("late", "b"),
        ]

    asyncio.run(main())
