"""The spawn suite on forked sub-agents: a live parent run hands the `Spawn` of its calls to the checks."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from forked_scene import KILL_WORKER, Wishes, forked, forked_scene, local, shell, turns

from xclaw.contracts.errors import ModelRejected
from xclaw.contracts.messages import UserMessage
from xclaw.contracts.models import ModelRequest, ToolSpec
from xclaw.contracts.spawn import Spawn
from xclaw.contracts.tools import ToolContext, ToolOutput
from xclaw.runtime.runs import RunRequest
from xclaw.runtime.settings import RuntimeSettings
from xclaw.spawn.forked import ForkedLauncher
from xclaw.testing.script_files import ScriptedCall, ScriptedReply
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
    check_name,
)

PARENT = "parent"
CALLS = 5


class _HandOut:
    """A tool of the parent that keeps the `Spawn` of each of its calls."""

    spec = ToolSpec("hand_out", "Hands out.", {"type": "object", "properties": {"n": {"type": "integer"}}})
    replayable = True
    timeout_s = None

    def __init__(self) -> None:
        self.spawns: list[Spawn] = []

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        self.spawns.append(context.spawn)
        return ToolOutput(f"handed out {arguments['n']}")


class _Harness:
    def __init__(self) -> None:
        self.hand_out = _HandOut()
        self.ready = asyncio.Event()
        self._taken: dict[str, Spawn] = {}
        self._begun = Counter[str]()
        self._changed = asyncio.Condition()

    def spawn(self, call_id: str) -> Spawn:
        if call_id not in self._taken:
            self._taken[call_id] = self.hand_out.spawns[len(self._taken)]
        return self._taken[call_id]

    def starts(self, agent: str) -> int:
        return self._begun[agent]

    async def wait_started(self, agent: str, count: int) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self._begun[agent] >= count)

    async def answer(self, request: ModelRequest) -> str | ScriptedReply:
        if request.agent == PARENT:
            return await self._answer_parent(request)
        async with self._changed:
            self._begun[request.agent] += 1
            self._changed.notify_all()
        match request.agent:
            case "echo":
                asked = request.messages[-1]
                assert isinstance(asked, UserMessage)
                return asked.text
            case "failing":
                raise ModelRejected("it did not work", status=400)
            case "crashing":
                return shell(KILL_WORKER)
            case _:
                return await asyncio.get_running_loop().create_future()

    async def _answer_parent(self, request: ModelRequest) -> ScriptedReply:
        if not turns(request):
            calls = [ScriptedCall(name="hand_out", arguments={"n": n}) for n in range(CALLS)]
            return ScriptedReply(calls=tuple(calls))
        self.ready.set()
        return await asyncio.get_running_loop().create_future()


def _opener(home: Path) -> HarnessFactory:
    @asynccontextmanager
    async def opened() -> AsyncGenerator[_Harness]:
        harness = _Harness()
        agents = [
            local(forked(PARENT, "hand_out", orchestrator=True)),
            *(forked(name) for name in (ECHO, FAILING, WAITING)),
            forked(CRASHING, "shell"),
        ]
        wishes = Wishes(agents, [harness.hand_out], RuntimeSettings(allow_shell=True))
        async with forked_scene(home, harness.answer, wishes) as scene:
            await scene.runs.start(RunRequest("hand out", "session", PARENT))
            async with asyncio.timeout(10):
                await harness.ready.wait()
            yield harness

    return opened


@pytest.mark.parametrize("check", SPAWN_CHECKS, ids=check_name)
def test_forked_sub_agents_are_spawned_as_the_contract_says(check: SpawnCheck, tmp_path: Path) -> None:
    """G1, G3."""

    async def main() -> None:
        await check(_opener(tmp_path))

    asyncio.run(main())


@pytest.mark.parametrize("check", LAUNCHER_CHECKS, ids=check_name)
def test_the_forked_launcher_is_one(check: LauncherCheck) -> None:
    async def main() -> None:
        await check(ForkedLauncher)

    asyncio.run(main())
