"""The spawn suite on the whole runtime: a live parent run hands the `Spawn` of its calls to the checks."""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from xclaw.agents.registry import AgentRegistry
from xclaw.contracts.agents import Agent
from xclaw.contracts.errors import ModelRejected
from xclaw.contracts.messages import AssistantMessage, UserMessage
from xclaw.contracts.models import ModelRequest, ToolSpec
from xclaw.contracts.spawn import Spawn
from xclaw.contracts.tools import ToolContext, ToolOutput
from xclaw.models.embedded.coaching import SmallModelCoaching
from xclaw.runtime.approvals import Approvals, Desk
from xclaw.runtime.grants import GrantFile
from xclaw.runtime.permissions import PermissionSettings, settings_level
from xclaw.runtime.runs import RunRequest, Runs
from xclaw.runtime.services import Services
from xclaw.runtime.sessions import Sessions
from xclaw.runtime.settings import RuntimeSettings
from xclaw.sandbox.host import HostSandboxes
from xclaw.spawn.local import LocalLauncher
from xclaw.store.journal import SqliteJournal
from xclaw.store.settings import StoreSettings
from xclaw.testing import FunctionModel
from xclaw.testing.script_files import ScriptedCall, ScriptedReply
from xclaw.testing.spawn_conformance import (
    CRASHING,
    ECHO,
    FAILING,
    SPAWN_CHECKS,
    WAITING,
    HarnessFactory,
    SpawnCheck,
    check_name,
)
from xclaw.tools.registry import ToolRegistry
from xclaw.workspaces.local import LocalWorkspaces
from xclaw.workspaces.settings import WorkspaceSettings

PARENT = "parent"
CALLS = 5
"""How many tool calls of the parent hand their `Spawn` out: more than any check uses."""


class _HandOut:
    """A tool that keeps the `Spawn` of each of its calls."""

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
                raise RuntimeError("out of luck")
            case _:
                return await asyncio.get_running_loop().create_future()

    async def _answer_parent(self, request: ModelRequest) -> ScriptedReply:
        if not any(isinstance(message, AssistantMessage) for message in request.messages):
            calls = [ScriptedCall(name="hand_out", arguments={"n": n}) for n in range(CALLS)]
            return ScriptedReply(calls=tuple(calls))
        self.ready.set()
        return await asyncio.get_running_loop().create_future()


def _services(home: Path, journal: SqliteJournal, harness: _Harness) -> Services:
    workers = [
        Agent(name, f"the {name} one", "Work.", tools=()) for name in (ECHO, FAILING, CRASHING, WAITING)
    ]
    parent = Agent(PARENT, "hands out", "Hand out.", tools=("hand_out",), orchestrator=True)
    model = FunctionModel(harness.answer)
    tools = ToolRegistry([harness.hand_out])
    workspaces = LocalWorkspaces(WorkspaceSettings(str(home / "workspace"), durable=False))
    settings = PermissionSettings()

    async def tell(owner: str, approval_id: str) -> None:
        raise AssertionError("nobody else drives anything")

    desk = Desk(
        store=journal.approvals,
        journal=journal,
        workspaces=workspaces,
        tools=tools.select,
        grants=GrantFile(home / "permissions.toml"),
        settings=settings,
        base=settings_level(settings, allow_shell=False),
        tell=tell,
        identity=str,
    )
    return Services(
        journal=journal,
        models=lambda chain: model,
        agents=AgentRegistry([parent, *workers]),
        tools=tools,
        workspaces=workspaces,
        launchers={"local": LocalLauncher()},
        coaching=SmallModelCoaching(),
        settings=RuntimeSettings(),
        owner="test",
        owner_alive=lambda owner: owner == "test",
        memory_root=str(home / "memory"),
        sandboxes=HostSandboxes(),
        approvals=Approvals(desk),
    )


def _opener(home: Path) -> HarnessFactory:
    @asynccontextmanager
    async def opened() -> AsyncGenerator[_Harness]:
        harness = _Harness()
        journal = await SqliteJournal.open(StoreSettings(str(home / "xclaw.db")))
        await journal.register_owner("test", os.getpid(), "")
        runs = Runs(_services(home, journal, harness), Sessions(lambda _: None, lambda _: None), ("test:m",))
        try:
            await runs.start(RunRequest("hand out", "session", PARENT))
            async with asyncio.timeout(10):
                await harness.ready.wait()
            yield harness
        finally:
            await runs.close()
            await journal.close()

    return opened


@pytest.mark.parametrize("check", SPAWN_CHECKS, ids=check_name)
def test_the_runtime_spawns_as_the_contract_says(check: SpawnCheck, tmp_path: Path) -> None:
    async def main() -> None:
        await check(_opener(tmp_path))

    asyncio.run(main())
