"""What any `Spawn`, and any `Launcher` under it, must do (SPEC G1, L1; faults C01, C05, N02).

    @pytest.mark.parametrize("check", SPAWN_CHECKS, ids=check_name)
    def test_conforms(check: SpawnCheck) -> None:
        asyncio.run(check(open_harness))

A harness is one running parent with four agents, whatever kind they are: `ECHO` answers success with
its task's text, `FAILING` ends with outcome "error", `CRASHING` dies without a result (an exception
nobody expects, a killed process), `WAITING` ends only when it is cancelled.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from xclaw.contracts.errors import SpawnRefused
from xclaw.contracts.results import Outcome, Result
from xclaw.contracts.spawn import Birth, Launcher, Spawn
from xclaw.contracts.tasks import Task

ECHO = "echo"
FAILING = "failing"
CRASHING = "crashing"
WAITING = "waiting"

WAIT_S = 30.0
"""Whatever a check waits for comes within this many seconds, also on a busy machine."""
SHORT_S = 0.05
"""A time-out that is meant to run out."""


class SpawnHarness(Protocol):
    """One parent run and what its children did."""

    def spawn(self, call_id: str) -> Spawn:
        """The `Spawn` of a tool call; the same id again is that call replayed."""
        ...

    def starts(self, agent: str) -> int:
        """How many children of the agent have begun to work."""
        ...

    async def wait_started(self, agent: str, count: int) -> None:
        """Until `starts(agent)` is at least `count`."""
        ...


HarnessFactory = Callable[[], AbstractAsyncContextManager[SpawnHarness]]
SpawnCheck = Callable[[HarnessFactory], Awaitable[None]]
LauncherCheck = Callable[[Callable[[], Launcher]], Awaitable[None]]


def task_for(agent: str, text: str = "work", key: str = "0") -> Task:
    return Task(agent, text, "delegate", key, structured=False)


async def check_a_child_answers(open_harness: HarnessFactory) -> None:
    """start → result, and run; the child is named by run, session and a task of six hex digits."""
    async with open_harness() as harness, asyncio.timeout(WAIT_S):
        spawn = harness.spawn("call")
        child = await spawn.start(task_for(ECHO, "hello"))
        result = await child.result()
        assert (result.outcome, result.text) == ("success", "hello"), f"{result}"
        assert len(child.task_id) == 6, f"{child.task_id=}"
        assert int(child.task_id, 16) >= 0, f"{child.task_id=}"
        assert child.task_id in child.session_id, f"{child.session_id=} does not name {child.task_id=}"
        again = await spawn.run(task_for(ECHO, "goodbye", "1"))
        assert (again.outcome, again.text) == ("success", "goodbye"), f"{again}"


async def check_an_unknown_agent_is_refused(open_harness: HarnessFactory) -> None:
    """The refusal lists the agents there are, as `agents` does; nothing starts (D1)."""
    async with open_harness() as harness, asyncio.timeout(WAIT_S):
        spawn = harness.spawn("call")
        for number, use in enumerate((spawn.start, spawn.run)):
            refusal = ""
            try:
                await use(task_for("nobody", key=str(number)))
            except SpawnRefused as error:
                refusal = str(error)
            known = set(spawn.agents())
            missing = [name for name in known if name not in refusal]
            assert {ECHO, FAILING, CRASHING, WAITING} <= known, f"agents() has {known}"
            assert refusal, "an unknown agent was not refused with SpawnRefused"
            assert not missing, f"the refusal does not name {missing}: {refusal}"


async def check_names_are_folded(open_harness: HarnessFactory) -> None:
    """What models make of a name leads to the agent; another name leads to nobody (N02)."""
    async with open_harness() as harness:
        spawn = harness.spawn("call")
        for name in (ECHO, "Echo", " ECHO ", '"echo"', "'echo'", "@echo", "[echo]", '["echo"]', "ｅｃｈｏ"):
            assert spawn.resolve(name) == ECHO, f"{name!r} → {spawn.resolve(name)!r}"
        for name in ("", "nobody", "echo2"):
            assert spawn.resolve(name) is None, f"{name!r} → {spawn.resolve(name)!r}"


async def check_the_same_key_starts_once(open_harness: HarnessFactory) -> None:
    """A replayed call finds its child, running or ended; another key or call is another child (Z01)."""
    async with open_harness() as harness, asyncio.timeout(WAIT_S):
        first = await harness.spawn("call").start(task_for(WAITING))
        await harness.wait_started(WAITING, 1)
        replayed = await harness.spawn("call").start(task_for(WAITING))
        assert replayed.run_id == first.run_id, "a replayed start made another child"
        await first.cancel("enough")
        assert (await replayed.result()).outcome == "cancelled", "both handles are of one child"
        assert harness.starts(WAITING) == 1, f"it began {harness.starts(WAITING)} times"
        ended = await harness.spawn("done").run(task_for(ECHO))
        assert await harness.spawn("done").run(task_for(ECHO)) == ended, "the result changed"
        assert harness.starts(ECHO) == 1, f"an ended child began {harness.starts(ECHO)} times"
        other_key = await harness.spawn("call").start(task_for(ECHO, key="1"))
        other_call = await harness.spawn("call2").start(task_for(ECHO))
        ids = {first.run_id, other_key.run_id, other_call.run_id}
        assert len(ids) == 3, "children of different keys or calls share a run id"


async def check_a_failed_child_is_a_result(open_harness: HarnessFactory) -> None:
    """A child that fails or crashes answers "error" with a reason; nothing is raised."""
    async with open_harness() as harness, asyncio.timeout(WAIT_S):
        for agent in (FAILING, CRASHING):
            started = await (await harness.spawn("call").start(task_for(agent, key=agent))).result()
            ran = await harness.spawn("run").run(task_for(agent, key=agent))
            for result in (started, ran):
                assert result.outcome == "error", f"{agent}: {result}"
                assert result.reason, f"{agent}: the reason is empty"


async def check_siblings_do_not_disturb_each_other(open_harness: HarnessFactory) -> None:
    """Run at once, each ends as it would alone (C01)."""
    async with open_harness() as harness, asyncio.timeout(WAIT_S):
        spawn = harness.spawn("call")
        async with asyncio.TaskGroup() as group:
            running = {
                agent: group.create_task(spawn.run(task_for(agent, key=agent)))
                for agent in (CRASHING, FAILING, ECHO)
            }
        outcomes = {agent: task.result().outcome for agent, task in running.items()}
        assert outcomes == {CRASHING: "error", FAILING: "error", ECHO: "success"}, f"{outcomes}"


async def check_cancel_ends_a_child(open_harness: HarnessFactory) -> None:
    """It answers how the child ended, also the second time; everybody who waits gets that (C05, C07)."""
    async with open_harness() as harness, asyncio.timeout(WAIT_S):
        child = await harness.spawn("call").start(task_for(WAITING))
        await harness.wait_started(WAITING, 1)
        async with asyncio.TaskGroup() as group:
            waiters = [group.create_task(child.result()) for _ in range(3)]
            ended = await child.cancel("no longer needed")
        assert ended.outcome == "cancelled", f"{ended}"
        outcomes = [waiter.result().outcome for waiter in waiters]
        assert outcomes == ["cancelled"] * 3, f"{outcomes}"
        assert (await child.cancel("again")).outcome == "cancelled", "a second cancel answers otherwise"
        done = await harness.spawn("done").start(task_for(ECHO))
        await done.result()
        late = await done.cancel("too late")
        assert late.outcome == "success", f"cancelling an ended child changed its outcome: {late}"


async def check_who_stops_waiting_cancels_nothing(open_harness: HarnessFactory) -> None:
    """Cancelling a wait for `result` leaves the child running."""
    async with open_harness() as harness, asyncio.timeout(WAIT_S):
        child = await harness.spawn("call").start(task_for(WAITING))
        await harness.wait_started(WAITING, 1)
        assert await _times_out(child.result()), "a child that waits has ended"
        assert await _times_out(child.result()), "the child ended because a wait for it was cancelled"
        assert (await child.cancel("done")).outcome == "cancelled"


async def check_cancelling_run_cancels_the_child(open_harness: HarnessFactory) -> None:
    """`run` that is cancelled raises CancelledError once the child has ended (C05)."""
    async with open_harness() as harness, asyncio.timeout(WAIT_S):
        running = asyncio.create_task(harness.spawn("call").run(task_for(WAITING)))
        await harness.wait_started(WAITING, 1)
        running.cancel()
        await asyncio.wait([running])
        assert running.cancelled(), f"a cancelled run() answered {running}"
        child = await harness.spawn("call").start(task_for(WAITING))
        assert (await child.result()).outcome == "cancelled", f"{await child.result()}"
        assert harness.starts(WAITING) == 1, "the cancelled child began again"


async def check_background_results_come_through_wait(open_harness: HarnessFactory) -> None:
    """`start` answers at once; `wait` gives each result to one call, an empty answer is a time-out (G1)."""
    async with open_harness() as harness, asyncio.timeout(WAIT_S):
        spawn = harness.spawn("call")
        slow = await spawn.start(task_for(WAITING, key="slow"), background=True)
        quick = await spawn.start(task_for(ECHO, "hi", "quick"), background=True)
        broken = await spawn.start(task_for(CRASHING, key="broken"), background=True)
        children = {slow.run_id, quick.run_id, broken.run_id}
        assert set(spawn.children()) == children, f"{set(spawn.children())} is not {children}"
        got = await harness.spawn("wait for two").wait((quick.run_id, broken.run_id))
        outcomes = {run_id: result.outcome for run_id, result in got.items()}
        assert outcomes == {quick.run_id: "success", broken.run_id: "error"}, f"{outcomes}"
        assert set(spawn.children()) == {slow.run_id}, "a result that was taken is still there"
        early = await harness.spawn("wait a moment").wait(timeout_s=SHORT_S)
        assert early == {}, f"nothing had ended before the time-out, but there came {early}"
        assert set(spawn.children()) == {slow.run_id}, "a time-out took a child away"
        await slow.cancel("enough")
        last = await harness.spawn("wait for all").wait()
        assert {run_id: result.outcome for run_id, result in last.items()} == {slow.run_id: "cancelled"}
        again = await harness.spawn("wait again").wait()
        assert again == {}, f"a result was given twice: {again}"


SPAWN_CHECKS: tuple[SpawnCheck, ...] = (
    check_a_child_answers,
    check_an_unknown_agent_is_refused,
    check_names_are_folded,
    check_the_same_key_starts_once,
    check_a_failed_child_is_a_result,
    check_siblings_do_not_disturb_each_other,
    check_cancel_ends_a_child,
    check_who_stops_waiting_cancels_nothing,
    check_cancelling_run_cancels_the_child,
    check_background_results_come_through_wait,
)


async def check_a_launched_child_ends_as_its_drive(make: Callable[[], Launcher]) -> None:
    """A result, an unexpected exception and a cancel all become the `Result` that anybody may take."""

    async def answer() -> Result:
        return Result("success", "done")

    async def crash() -> Result:
        raise RuntimeError("out of luck")

    async with asyncio.timeout(WAIT_S):
        launcher = make()
        for drive, outcome in ((answer, "success"), (crash, "error")):
            child = launcher.launch(Birth("run", "session", "abc123", "agent"), drive)
            assert (child.run_id, child.session_id, child.task_id) == ("run", "session", "abc123")
            result = await child.result()
            assert result.outcome == outcome, f"{drive.__name__}: {result}"
            assert await child.result() == result, "a second wait answers otherwise"
            told = "out of luck" in result.reason
            assert told == (outcome == "error"), f"the reason is {result.reason!r}"


async def check_a_launched_child_is_cancelled(make: Callable[[], Launcher]) -> None:
    """Before it began, while it works, and when it has ended; a cancelled wait leaves it running."""
    working = asyncio.Event()

    async def work() -> Result:
        working.set()
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            return Result("cancelled", "what there was", reason="stopped")
        raise AssertionError("a future that nobody resolves has a result")

    async with asyncio.timeout(WAIT_S):
        launcher = make()
        unborn = launcher.launch(Birth("r0", "s0", "abc120", "agent"), work)
        await _assert_outcome(unborn.cancel("not needed"), "cancelled")
        child = launcher.launch(Birth("r1", "s1", "abc121", "agent"), work)
        await working.wait()
        assert await _times_out(child.result()), "it ended before it was cancelled"
        ended = await child.cancel("stop")
        assert (ended.outcome, ended.text) == ("cancelled", "what there was"), f"{ended}"
        assert await child.cancel("stop") == ended, "a second cancel answers otherwise"


LAUNCHER_CHECKS: tuple[LauncherCheck, ...] = (
    check_a_launched_child_ends_as_its_drive,
    check_a_launched_child_is_cancelled,
)


def check_name(check: Callable[..., object]) -> str:
    """For the ids of a parametrized test."""
    return check.__name__.removeprefix("check_")


async def _assert_outcome(ending: Awaitable[Result], outcome: Outcome) -> None:
    result = await ending
    assert result.outcome == outcome, f"{result}"


async def _times_out(ending: Awaitable[Result]) -> bool:
    """Whether it is still waiting after `SHORT_S`, and is then cancelled."""
    try:
        async with asyncio.timeout(SHORT_S):
            await ending
    except TimeoutError:
        return True
    return False
