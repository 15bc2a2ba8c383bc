"""The pool of sandboxes: bounded, in order, one sandbox for one run, and nothing left."""

import asyncio
from collections.abc import Coroutine

import pytest

from sandbox.pool_backends import (
    NOTHING,
    NotedBackend,
    NotedSandbox,
    WarmNotedBackend,
    pool_of,
    settled,
    spec_of,
    unheard,
)
from xclaw.contracts.errors import SandboxLost, SandboxUnavailable
from xclaw.contracts.sandbox import SandboxBackend
from xclaw.sandbox import pool as pool_module
from xclaw.sandbox.pool import SandboxPool
from xclaw.sandbox.settings import SandboxSettings


def ran(scenario: Coroutine[None, None, None]) -> None:
    async def main() -> None:
        async with asyncio.timeout(10):
            await scenario

    asyncio.run(main())


def test_every_run_gets_a_sandbox_of_its_own_with_the_policy_of_the_settings() -> None:
    async def scenario() -> None:
        backend = NotedBackend()
        pool = pool_of(backend, memory_bytes=1_000_000)
        for number in range(3):
            sandbox = await pool.open(spec_of(number))
            await sandbox.exec(NOTHING, unheard)
            await sandbox.close()
        specs = [made.spec for made in backend.made]
        assert [spec.task_id for spec in specs if spec] == ["000000", "000001", "000002"]
        assert {spec.policy.memory_bytes for spec in specs if spec} == {1_000_000}
        assert not backend.open
        assert [made.commands for made in backend.made] == [1, 1, 1], "one was used for two runs"

    ran(scenario())


def test_who_wants_more_than_there_may_be_waits_in_order() -> None:
    async def scenario() -> None:
        backend = NotedBackend()
        pool = pool_of(backend, max_open=2)
        first, second = await pool.open(spec_of(1)), await pool.open(spec_of(2))
        got: list[int] = []

        async def wait(number: int) -> None:
            sandbox = await pool.open(spec_of(number))
            got.append(number)
            await sandbox.close()

        waiting = [asyncio.create_task(wait(number)) for number in (3, 4, 5)]
        await settled()
        assert got == []
        await first.close()
        await asyncio.wait(waiting)
        assert got == [3, 4, 5]
        await second.close()
        assert not backend.open

    ran(scenario())


def test_a_wait_can_be_cancelled_and_costs_nobody_a_place() -> None:
    async def scenario() -> None:
        backend = NotedBackend()
        pool = pool_of(backend, max_open=1)
        first = await pool.open(spec_of(1))
        waiting = [asyncio.create_task(pool.open(spec_of(number))) for number in (2, 3)]
        await settled()
        waiting[0].cancel()
        closing = asyncio.create_task(first.close())
        third = await waiting[1]
        await closing
        await third.close()
        await (await pool.open(spec_of(4))).close()
        # A place that is given at the very moment of the cancellation goes on to the next.
        fifth = await pool.open(spec_of(5))
        late = asyncio.create_task(pool.open(spec_of(6)))
        await settled()
        await fifth.close()
        late.cancel()
        await asyncio.wait([late])
        if not late.cancelled():
            await late.result().close()
        await (await pool.open(spec_of(7))).close()

    ran(scenario())


def test_an_idle_sandbox_gives_its_place_to_a_run_that_waits() -> None:
    """Runs that wait for one another would otherwise wait for ever for a place."""

    async def scenario() -> None:
        backend = NotedBackend()
        pool = pool_of(backend, max_open=1)
        parent = await pool.open(spec_of(1))
        await parent.exec(NOTHING, unheard)
        child = await pool.open(spec_of(2))
        assert backend.made[0].is_closed
        await child.exec(NOTHING, unheard)
        await parent.exec(NOTHING, unheard)
        assert [made.spec.task_id for made in backend.made if made.spec] == ["000001", "000002", "000001"]
        assert len(backend.open) == 1
        await parent.close()
        await child.exec(NOTHING, unheard)
        await child.close()
        assert not backend.open

    ran(scenario())


def test_a_sandbox_in_which_something_runs_keeps_its_place_until_that_has_ended() -> None:
    async def scenario() -> None:
        backend = NotedBackend()
        pool = pool_of(backend, max_open=1)
        busy = await pool.open(spec_of(1))
        backend.made[0].may_end = asyncio.Event()
        running = asyncio.create_task(busy.exec(NOTHING, unheard))
        await backend.made[0].going_on.wait()
        waiting = asyncio.create_task(pool.open(spec_of(2)))
        await settled()
        assert not waiting.done()
        assert not backend.made[0].is_closed
        backend.made[0].may_end.set()
        assert (await running).code == 0
        await (await waiting).close()
        await busy.close()

    ran(scenario())


def test_one_that_does_not_work_here_is_said_so_and_takes_no_place() -> None:
    async def scenario() -> None:
        backend = NotedBackend()
        backend.fails = True
        pool = pool_of(backend, max_open=1)
        for _ in range(3):
            with pytest.raises(SandboxUnavailable, match="none today"):
                await pool.open(spec_of())
        backend.fails = False
        await (await pool.open(spec_of())).close()

    ran(scenario())


def test_what_was_asked_for_is_never_replaced() -> None:
    """`choose` refuses; nothing is started."""

    async def scenario() -> None:
        async def none() -> SandboxBackend:
            raise SandboxUnavailable("kvm does not work here")

        pool = SandboxPool(none, SandboxSettings())
        with pytest.raises(SandboxUnavailable, match="kvm does not"):
            await pool.ready()
        with pytest.raises(SandboxUnavailable, match="kvm does not"):
            await pool.open(spec_of())

    ran(scenario())


def test_a_start_that_takes_too_long_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "START_MARGIN_S", 0.01)

    async def scenario() -> None:
        backend = NotedBackend()
        backend.may_start = asyncio.Event()
        pool = pool_of(backend, max_open=1, boot_timeout_s=0.01)
        with pytest.raises(SandboxUnavailable, match="not ready after"):
            await pool.open(spec_of())
        backend.may_start.set()
        await (await pool.open(spec_of())).close()

    ran(scenario())


def test_a_sandbox_that_is_lost_ends_its_run_only_and_gives_its_place_back() -> None:
    async def scenario() -> None:
        backend = NotedBackend()
        pool = pool_of(backend, max_open=1)
        lost = await pool.open(spec_of(1))
        backend.made[0].is_dead = True
        with pytest.raises(SandboxLost):
            await lost.exec(NOTHING, unheard)
        with pytest.raises(SandboxLost):
            await lost.exec(NOTHING, unheard)
        other = await pool.open(spec_of(2))
        assert (await other.exec(NOTHING, unheard)).code == 0
        await lost.close()
        assert (await other.exec(NOTHING, unheard)).code == 0
        await other.close()
        assert not backend.open

    ran(scenario())


def test_warm_ones_are_taken_over_and_refilled_in_the_background() -> None:
    async def scenario() -> None:
        backend = WarmNotedBackend()
        pool = pool_of(backend, pool_size=2)
        await pool.ready()
        await settled()
        assert len(backend.warmed) == 2
        sandbox = await pool.open(spec_of(9))
        assert backend.warmed[0].spec is not None
        assert backend.warmed[0].spec.task_id == "000009"
        await settled()
        assert len(backend.warmed) == 3
        await sandbox.exec(NOTHING, unheard)
        await sandbox.close()
        assert backend.warmed[0].is_closed, "what a run has had was kept"
        await pool.close()
        assert not backend.open

    ran(scenario())


@pytest.mark.parametrize("harm", ["dead", "dumb", "old"])
def test_a_warm_one_that_is_no_good_any_more_is_thrown_away(
    harm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        backend = WarmNotedBackend()
        pool = pool_of(backend, pool_size=1)
        await pool.ready()
        await settled()
        (bad,) = backend.warmed
        bad.is_dead, bad.answers = harm == "dead", harm != "dumb"
        if harm == "old":
            monkeypatch.setattr(pool_module, "MAX_AGE_S", 0.0)
        sandbox = await pool.open(spec_of(1))
        assert (await sandbox.exec(NOTHING, unheard)).code == 0
        await settled()
        assert bad.is_closed
        assert bad.commands == 0
        await sandbox.close()
        await pool.close()
        assert not backend.open

    ran(scenario())


def test_warming_that_fails_is_nobodys_failure() -> None:
    async def scenario() -> None:
        backend = WarmNotedBackend()
        backend.fails = True
        pool = pool_of(backend, pool_size=2)
        await pool.ready()
        await settled()
        backend.fails = False
        await (await pool.open(spec_of(1))).close()
        await pool.close()
        assert not backend.open

    ran(scenario())


def test_closing_ends_everything_and_whoever_waits() -> None:
    async def scenario() -> None:
        backend = WarmNotedBackend()
        pool = pool_of(backend, max_open=1, pool_size=1)
        await pool.ready()
        await settled()
        sandbox = await pool.open(spec_of(1))
        waiting = asyncio.create_task(pool.open(spec_of(2)))
        await settled()
        await pool.close()
        with pytest.raises(SandboxLost, match="shutting down"):
            await waiting
        with pytest.raises(SandboxLost):
            await sandbox.exec(NOTHING, unheard)
        with pytest.raises(SandboxLost):
            await pool.open(spec_of(3))
        await settled()
        assert not backend.open

    ran(scenario())


def test_closing_is_bounded_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "CLOSE_S", 0.05)

    async def scenario() -> None:
        backend = NotedBackend()
        pool = pool_of(backend)
        await pool.open(spec_of(1))
        backend.made[0].may_close = asyncio.Event()
        async with asyncio.timeout(2):
            await pool.close()

    ran(scenario())


def test_closing_a_sandbox_can_be_repeated_and_goes_on_when_the_wait_is_cancelled() -> None:
    async def scenario() -> None:
        backend = NotedBackend()
        pool = pool_of(backend, max_open=1)
        sandbox = await pool.open(spec_of(1))
        made: NotedSandbox = backend.made[0]
        made.may_close = asyncio.Event()
        closing = asyncio.create_task(sandbox.close())
        await settled()
        closing.cancel()
        await asyncio.wait([closing])
        assert not made.is_closed
        made.may_close.set()
        await sandbox.close()
        await sandbox.close()
        assert made.is_closed
        await (await pool.open(spec_of(2))).close()

    ran(scenario())
