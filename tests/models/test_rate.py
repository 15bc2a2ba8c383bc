"""Rate limits of a provider."""

import asyncio

import pytest
from wire_asking import run

from xclaw.models.rate import RateLimits, Slots, TokenBucket
from xclaw.models.settings import ProviderSettings


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def waited_for(slots: Slots, count: int) -> None:
    """Until that many tasks, all of them ready to run, wait for a place."""
    for _ in range(count + 1):
        await asyncio.sleep(0)
    assert slots.waiting == count


def test_a_bucket_gives_a_minutes_worth_and_then_at_its_rate() -> None:
    clock = Clock()
    bucket = TokenBucket(60, clock)
    assert [bucket.take(1) for _ in range(62)] == [0.0] * 60 + [1.0, 2.0]
    clock.now = 3.0
    assert bucket.take(1) == 0.0


def test_a_bucket_never_holds_more_than_a_minutes_worth() -> None:
    clock = Clock()
    bucket = TokenBucket(60, clock)
    clock.now = 10_000
    bucket.take(-500)
    assert bucket.take(61) == 1.0


def test_those_who_wait_are_served_in_order_the_orchestrator_first() -> None:
    async def main() -> None:
        slots = Slots(1)
        await slots.take()
        served: list[str] = []

        async def wait(name: str, first: bool) -> None:
            await slots.take(first)
            served.append(name)
            slots.give_back()

        async with asyncio.TaskGroup() as group:
            for name in ("w1", "w2", "boss", "w3"):
                group.create_task(wait(name, name == "boss"))
            await waited_for(slots, 4)
            slots.give_back()
        assert served == ["boss", "w1", "w2", "w3"]

    run(main)


@pytest.mark.parametrize("turn_had_come", [False, True])
def test_cancelling_a_wait_loses_no_place(turn_had_come: bool) -> None:
    async def main() -> None:
        slots = Slots(1)
        await slots.take()
        waiting = asyncio.create_task(slots.take())
        await waited_for(slots, 1)
        if turn_had_come:
            slots.give_back()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        if not turn_had_come:
            slots.give_back()
        async with asyncio.timeout(1):
            await slots.take()

    run(main)


def test_a_cancelled_wait_for_the_rate_gives_back_what_it_took() -> None:
    async def main() -> None:
        asleep = asyncio.Event()

        async def sleep(_seconds: float) -> None:
            asleep.set()
            await asyncio.get_running_loop().create_future()

        limits = RateLimits(
            ProviderSettings(tokens_per_minute=60, max_concurrent=1), clock=Clock(), sleep=sleep
        )

        async def call(tokens: int) -> None:
            async with limits.admitted(tokens):
                return

        await call(60)
        waiting = asyncio.create_task(call(60))
        await asleep.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        limits.settle(-60)
        async with asyncio.timeout(1):
            await call(60)

    run(main)
