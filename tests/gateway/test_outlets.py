"""A reader of a conversation gets everything once, in order, whatever its pace, in bounded memory."""

import asyncio
import random
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from xclaw.contracts.agents import Limits
from xclaw.contracts.channels import Delta, Failed, Happened, Outgoing, Reply
from xclaw.contracts.events import (
    Address,
    Entry,
    Event,
    MessageAdded,
    RunEnded,
    RunStarted,
    TextDelta,
    TurnStarted,
)
from xclaw.contracts.results import Result
from xclaw.gateway.feeds import Feed
from xclaw.gateway.outlets import PAGE, Outlet


@dataclass
class Journal:
    """A conversation's entries, and the feed that tells of them."""

    feed: Feed = field(default_factory=lambda: Feed("s"))
    entries: list[Entry] = field(default_factory=list[Entry])
    reads: int = 0

    async def read_on(self, after: int, limit: int) -> list[Entry]:
        self.reads += 1
        await asyncio.sleep(0)
        return [entry for entry in self.entries if entry.id > after][:limit]

    def store(self, run: str, event: Event, root: str = "") -> Entry:
        entry = Entry(
            Address(run, root or run, "" if run == (root or run) else root, "s"),
            1,
            0.0,
            event,
            len(self.entries) + 1,
        )
        self.entries.append(entry)
        return entry

    def say(self, run: str, event: Event, root: str = "") -> None:
        self.feed.publish(self.store(run, event, root))

    def stream(self, run: str, text: str) -> None:
        self.feed.publish(Entry(Address(run, run, "", "s"), 0, 0.0, TextDelta(text)))

    def outlet(self, after: int = 0, limit: int = 1_000_000) -> Outlet:
        return Outlet(self.feed, self.read_on, after, limit)


def started(message_id: str = "m1") -> RunStarted:
    return RunStarted("coder", "hi", "user", 0, "", (), (), "native", Limits(), message_id=message_id)


ENDED = RunEnded(Result("success", "done"), "success", 1)


def ids(seen: list[Outgoing]) -> list[int]:
    return [item.entry.id for item in seen if isinstance(item, Happened | Reply)]


async def take(outlet: Outlet, count: int) -> list[Outgoing]:
    async with asyncio.timeout(5):
        return [await anext(outlet) for _ in range(count)]


def test_what_happened_before_comes_first_and_what_happens_then_follows_without_a_gap() -> None:
    async def main() -> None:
        journal = Journal()
        journal.feed.remember("r1", "m1")
        journal.store("r1", started())
        for number in range(PAGE + 20):
            journal.store("r1", MessageAdded(str(number), "user"))
        outlet = journal.outlet(after=5)
        seen = await take(outlet, 40)
        journal.say("r1", TurnStarted(1, "m", 1, None))
        seen += await take(outlet, PAGE + 20 - 44 + 1)
        journal.say("r1", ENDED)
        seen += await take(outlet, 1)
        assert ids(seen) == list(range(6, PAGE + 24))
        assert isinstance(seen[-1], Reply)
        assert {item.request for item in seen} == {"m1"}

    asyncio.run(main())


def test_an_entry_that_is_read_from_the_journal_and_then_published_comes_once() -> None:
    async def main() -> None:
        journal = Journal()
        entry = journal.store("r1", started())
        outlet = journal.outlet()
        assert ids(await take(outlet, 1)) == [1]
        journal.feed.publish(entry)
        journal.say("r1", ENDED)
        assert ids(await take(outlet, 1)) == [2]

    asyncio.run(main())


def test_text_that_is_being_said_is_given_whole_to_whoever_comes_later_and_goes_on_from_there() -> None:
    async def main() -> None:
        journal = Journal()
        journal.say("r1", started())
        journal.say("r1", TurnStarted(1, "m", 1, None))
        journal.stream("r1", "Hello, ")
        journal.stream("r1", "wor")
        outlet = journal.outlet(after=2)
        first = (await take(outlet, 1))[0]
        journal.stream("r1", "ld")
        second = (await take(outlet, 1))[0]
        assert isinstance(first, Delta)
        assert isinstance(second, Delta)
        assert (first.after, first.offset, first.text, first.agent) == (2, 0, "Hello, wor", "coder")
        assert (second.after, second.offset, second.text) == (2, 10, "ld")

    asyncio.run(main())


def test_a_reader_that_stops_reading_costs_no_memory_and_misses_no_stored_entry() -> None:
    """G03."""

    async def main() -> None:
        journal = Journal()
        journal.say("r1", started())
        outlet = journal.outlet(limit=20_000)
        seen = await take(outlet, 1)
        for number in range(1_000):
            journal.say("r1", MessageAdded("x" * 100, "user"))
            journal.stream("r1", "y" * 1_000)
            assert outlet.queued <= 20_000, number
        journal.say("r1", ENDED)
        while not isinstance(seen[-1], Reply):
            seen += await take(outlet, 1)
        assert ids(seen) == list(range(1, 1_003))

    asyncio.run(main())


def test_text_that_piles_up_is_one_piece_when_it_is_fetched() -> None:
    async def main() -> None:
        journal = Journal()
        journal.say("r1", started())
        outlet = journal.outlet()
        await take(outlet, 1)
        waiting = asyncio.ensure_future(take(outlet, 1))
        await asyncio.sleep(0)
        for _ in range(500):
            journal.stream("r1", "ab")
        (delta,) = await waiting
        assert isinstance(delta, Delta)
        assert delta.text == "ab" * 500

    asyncio.run(main())


def test_a_closed_feed_ends_the_watch_after_what_was_queued() -> None:
    async def main() -> None:
        journal = Journal()
        journal.say("r1", started())
        outlet = journal.outlet()
        await take(outlet, 1)
        journal.say("r1", ENDED)
        journal.feed.fail(Failed("m2", "s", "refused", "no"))
        journal.feed.close()
        async with asyncio.timeout(5):
            rest = [item async for item in outlet]
        assert [type(item) for item in rest] == [Reply, Failed]

    asyncio.run(main())


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([600, 3_000, 1_000_000]), st.integers(0, 30))
def test_whatever_the_pace_stored_entries_come_once_in_order_and_text_has_no_holes_within_a_turn(
    seed: int, limit: int, after: int
) -> None:
    """G01, G03. Text that was lost with a fallen-behind queue is the whole text of a turn that was stored
    since; of the turn that is being said nothing is missing."""

    async def main() -> None:
        rng = random.Random(seed)
        journal = Journal()
        for run in ("r1", "r2"):
            journal.say(run, started(f"m-{run}"))
        seen: list[Outgoing] = []
        reading = asyncio.ensure_future(read_slowly(journal.outlet(after, limit), rng, seen))
        said = await stir(journal, rng)
        for _ in range(3_000):
            await asyncio.sleep(0)
        journal.feed.close()
        await reading
        assert ids(seen) == list(range(after + 1, len(journal.entries) + 1))
        shown = texts_of(seen)
        assert all(said[key].startswith(text) for key, text in shown.items())
        for run in ("r1", "r2"):
            last = max(entry.id for entry in journal.entries if entry.address.run_id == run)
            assert shown.get((run, last), "") == said.get((run, last), "")

    asyncio.run(main())


async def read_slowly(outlet: Outlet, rng: random.Random, seen: list[Outgoing]) -> None:
    async for item in outlet:
        seen.append(item)
        for _ in range(rng.randrange(3)):
            await asyncio.sleep(0)


async def stir(journal: Journal, rng: random.Random) -> dict[tuple[str, int], str]:
    """Two runs store and stream; answers what was streamed after each stored entry."""
    last = {"r1": 1, "r2": 2}
    said: dict[tuple[str, int], str] = {}
    for _ in range(120):
        run = rng.choice(["r1", "r2"])
        if rng.random() < 0.3:
            journal.say(run, MessageAdded("x" * rng.randrange(400), "user"))
            last[run] = len(journal.entries)
        else:
            text = "".join(rng.choices("abcdef", k=rng.randrange(1, 90)))
            journal.stream(run, text)
            said[run, last[run]] = said.get((run, last[run]), "") + text
        if rng.random() < 0.4:
            await asyncio.sleep(0)
    return said


def texts_of(seen: list[Outgoing]) -> dict[tuple[str, int], str]:
    """Streamed text by run and stored entry; every piece begins where the one before it ended."""
    shown: dict[tuple[str, int], str] = {}
    for item in seen:
        if isinstance(item, Delta):
            key = (item.run_id, item.after)
            assert item.offset == len(shown.get(key, ""))
            shown[key] = shown.get(key, "") + item.text
    return shown
