"""The spawn suite passes a right spawn and the shipped launcher, and catches wrong ones."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Literal

import pytest

from xclaw.contracts.errors import SpawnRefused
from xclaw.contracts.ids import child_run_id, delegate_session, task_id_from
from xclaw.contracts.results import Result
from xclaw.contracts.spawn import AgentState, Birth, Child, Spawn
from xclaw.contracts.tasks import Context, Task
from xclaw.contracts.teams import Membership, TeamLead
from xclaw.spawn.local import LocalLauncher
from xclaw.testing.spawn_conformance import (
    CRASHING,
    ECHO,
    FAILING,
    LAUNCHER_CHECKS,
    SPAWN_CHECKS,
    WAITING,
    HarnessFactory,
    LauncherCheck,
    SpawnCheck,
    SpawnHarness,
    check_a_failed_child_is_a_result,
    check_an_unknown_agent_is_refused,
    check_background_results_come_through_wait,
    check_cancelling_run_cancels_the_child,
    check_name,
    check_the_same_key_starts_once,
    check_who_stops_waiting_cancels_nothing,
)

Flaw = Literal[
    "", "starts again", "raises", "hides the agents", "leaves children", "gives twice", "waiting kills"
]
AGENTS = {name: f"the {name} one" for name in (ECHO, FAILING, CRASHING, WAITING)}


class Harness:
    """Children that are tasks of this process, kept by run id."""

    def __init__(self, flaw: Flaw) -> None:
        self.flaw: Flaw = flaw
        self.launcher = LocalLauncher()
        self.all: dict[str, Child] = {}
        self.background: dict[str, Child] = {}
        self.begun = Counter[str]()
        self.changed = asyncio.Condition()

    def spawn(self, call_id: str) -> Spawn:
        return _Spawn(self, call_id)

    def starts(self, agent: str) -> int:
        return self.begun[agent]

    async def wait_started(self, agent: str, count: int) -> None:
        async with self.changed:
            await self.changed.wait_for(lambda: self.begun[agent] >= count)

    async def drive(self, task: Task) -> Result:
        async with self.changed:
            self.begun[task.agent] += 1
            self.changed.notify_all()
        match task.agent:
            case "echo":
                return Result("success", task.text)
            case "failing":
                return Result("error", reason="it did not work")
            case "crashing":
                raise RuntimeError("out of luck")
            case _:
                try:
                    await asyncio.get_running_loop().create_future()
                except asyncio.CancelledError:
                    return Result("cancelled", reason="stopped")
                raise AssertionError("unreachable")


class _Spawn:
    def __init__(self, harness: Harness, call_id: str) -> None:
        self._harness = harness
        self._call_id = call_id

    def agents(self) -> Mapping[str, str]:
        return AGENTS

    def resolve(self, name: str) -> str | None:
        wide = {0xFEE0 + code: code for code in range(0x21, 0x7F)}
        folded = name.translate(wide).strip(" \"'[]@").lower()
        return folded if folded in AGENTS else None

    def model_of(self, agent: str) -> str:
        return "reference:model"

    async def start(self, task: Task, *, background: bool = False) -> Child:
        if task.agent not in AGENTS:
            hidden = self._harness.flaw == "hides the agents"
            raise SpawnRefused("no such agent" if hidden else f"there are {', '.join(AGENTS)}")
        run_id = child_run_id("parent", self._call_id, task.key)
        if run_id not in self._harness.all or self._harness.flaw == "starts again":
            task_id = task_id_from(run_id)
            birth = Birth(run_id, delegate_session("s", task.agent, task_id), task_id, task.agent)
            child: Child = self._harness.launcher.launch(birth, lambda: self._harness.drive(task))
            if self._harness.flaw in ("raises", "waiting kills"):
                child = _WrongChild(child, self._harness.flaw)
            self._harness.all[run_id] = child
        if background:
            self._harness.background[run_id] = self._harness.all[run_id]
        return self._harness.all[run_id]

    async def run(self, task: Task) -> Result:
        child = await self.start(task)
        try:
            return await child.result()
        except asyncio.CancelledError:
            if self._harness.flaw != "leaves children":
                await child.cancel("the parent was cancelled")
            raise

    def listing(self) -> list[AgentState]:
        return []

    async def send(self, to: str, text: str) -> str:
        raise SpawnRefused(f"{to} reads nothing")

    async def stop(self, to: str, reason: str) -> tuple[str, Result]:
        return to, await self._harness.all[to].cancel(reason)

    def membership(self) -> Membership:
        raise SpawnRefused("there are no teams here")

    def team(self) -> TeamLead:
        raise SpawnRefused("there are no teams here")

    def context_tokens(self, context: Context) -> int:
        return 0

    def children(self) -> Mapping[str, Child]:
        return dict(self._harness.background)

    async def wait(self, run_ids: tuple[str, ...] = (), timeout_s: float | None = None) -> dict[str, Result]:
        known = self._harness.background
        wanted = {
            run_id: asyncio.create_task(known[run_id].result())
            for run_id in run_ids or tuple(known)
            if run_id in known
        }
        if not wanted:
            return {}
        await asyncio.wait(wanted.values(), timeout=timeout_s)
        ended = {run_id: task.result() for run_id, task in wanted.items() if task.done()}
        for run_id, task in wanted.items():
            task.cancel()
            if run_id in ended and self._harness.flaw != "gives twice":
                del known[run_id]
        return ended


class _WrongChild:
    def __init__(self, right: Child, flaw: Flaw) -> None:
        self._right = right
        self._flaw: Flaw = flaw
        self.run_id = right.run_id
        self.session_id = right.session_id
        self.task_id = right.task_id

    async def result(self) -> Result:
        try:
            result = await self._right.result()
        except asyncio.CancelledError:
            if self._flaw == "waiting kills":
                await self._right.cancel("nobody waits")
            raise
        if self._flaw == "raises" and result.outcome == "error":
            raise RuntimeError(result.reason)
        return result

    async def cancel(self, reason: str) -> Result:
        return await self._right.cancel(reason)


def _opener(flaw: Flaw) -> HarnessFactory:
    @asynccontextmanager
    async def opened() -> AsyncGenerator[SpawnHarness]:
        harness = Harness(flaw)
        try:
            yield harness
        finally:
            for child in harness.all.values():
                await child.cancel("the end")

    return opened


@pytest.mark.parametrize("check", SPAWN_CHECKS, ids=check_name)
def test_a_right_spawn_passes(check: SpawnCheck) -> None:
    async def main() -> None:
        await check(_opener(""))

    asyncio.run(main())


@pytest.mark.parametrize(
    ("flaw", "check"),
    [
        ("starts again", check_the_same_key_starts_once),
        ("raises", check_a_failed_child_is_a_result),
        ("hides the agents", check_an_unknown_agent_is_refused),
        ("leaves children", check_cancelling_run_cancels_the_child),
        ("gives twice", check_background_results_come_through_wait),
        ("waiting kills", check_who_stops_waiting_cancels_nothing),
    ],
)
def test_a_wrong_spawn_is_caught(flaw: Flaw, check: SpawnCheck, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xclaw.testing.spawn_conformance.WAIT_S", 0.5)

    async def main() -> None:
        await check(_opener(flaw))

    with pytest.raises((AssertionError, RuntimeError, TimeoutError)):
        asyncio.run(main())


@pytest.mark.parametrize("check", LAUNCHER_CHECKS, ids=check_name)
def test_the_local_launcher_passes(check: LauncherCheck) -> None:
    async def main() -> None:
        await check(LocalLauncher)

    asyncio.run(main())
