"""One slot, in a fair order."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from xclaw.models.embedded.queue import CallQueue


def run(main: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(5):
            await main()

    asyncio.run(limited())


class Calls:
    """Calls that note when their turn comes, and end when they are told to."""

    def __init__(self) -> None:
        self.queue = CallQueue()
        self.order: list[str] = []
        self.go = asyncio.Event()

    async def call(self, name: str, *, orchestrator: bool = False) -> None:
        async with self.queue.turn(orchestrator=orchestrator):
            self.order.append(name)
            await self.go.wait()


async def settle() -> None:
    """Let every task that can run do so."""
    for _ in range(10):
        await asyncio.sleep(0)


def test_first_come_first_served_with_orchestrators_before_workers() -> None:
    async def main() -> None:
        calls = Calls()
        async with asyncio.TaskGroup() as group:
            for name in ("worker 1", "worker 2", "worker 3"):
                group.create_task(calls.call(name))
            await settle()
            for name in ("orchestrator 1", "orchestrator 2"):
                group.create_task(calls.call(name, orchestrator=True))
            await settle()
            assert calls.order == ["worker 1"], "one at a time"
            assert calls.queue.waiting == 4
            calls.go.set()
        assert calls.order == ["worker 1", "orchestrator 1", "orchestrator 2", "worker 2", "worker 3"]
        assert calls.queue.waiting == 0

    run(main)


def test_a_cancelled_wait_leaves_the_queue_and_a_cancelled_turn_passes_on() -> None:
    async def main() -> None:
        calls = Calls()
        tasks = [asyncio.create_task(calls.call(name)) for name in ("a", "b", "c")]
        await settle()
        tasks[1].cancel()
        await settle()
        assert calls.queue.waiting == 1
        tasks[0].cancel()
        await settle()
        assert calls.order == ["a", "c"]
        calls.go.set()
        await tasks[2]

    run(main)


def test_a_turn_given_to_a_call_that_is_cancelled_in_the_same_moment_is_not_lost() -> None:
    async def main() -> None:
        calls = Calls()

        async def end_and_cancel() -> None:
            await calls.call("a")
            second.cancel()  # it has just been given the turn, and has not run yet

        first = asyncio.create_task(end_and_cancel())
        second = asyncio.create_task(calls.call("b"))
        third = asyncio.create_task(calls.call("c"))
        await settle()
        calls.go.set()
        await first
        with pytest.raises(asyncio.CancelledError):
            await second
        await third
        assert calls.order == ["a", "c"]
        await calls.call("d")

    run(main)


def test_a_call_that_fails_passes_on() -> None:
    async def main() -> None:
        queue = CallQueue()
        with pytest.raises(ValueError, match="broken"):
            async with queue.turn(orchestrator=False):
                raise ValueError("broken")
        async with queue.turn(orchestrator=False):
            assert queue.waiting == 0

    run(main)
