"""A runtime whose workers are forked, with a model written in Python in the parent."""

import asyncio
import os
import select
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from xclaw.agents.registry import AgentRegistry
from xclaw.contracts.agents import Agent
from xclaw.contracts.events import ChildEnded, ChildSpawned, Entry, NotificationQueued, RunEnded, RunStarted
from xclaw.contracts.messages import AssistantMessage, UserMessage
from xclaw.contracts.models import Model, ModelProfile, ModelRequest
from xclaw.contracts.results import Result
from xclaw.contracts.tools import Tool
from xclaw.contracts.usage import Spend
from xclaw.contracts.workers import WorkerKind, WorkerLink
from xclaw.loop.state import fold
from xclaw.memory.settings import MemorySettings
from xclaw.models.embedded.coaching import SmallModelCoaching
from xclaw.runtime.approvals import Approvals, Desk
from xclaw.runtime.grants import GrantFile
from xclaw.runtime.permissions import PermissionSettings, settings_level
from xclaw.runtime.runs import RunRequest, Runs
from xclaw.runtime.services import Services
from xclaw.runtime.sessions import Sessions
from xclaw.runtime.settings import RuntimeSettings
from xclaw.sandbox.host import HostSandboxes
from xclaw.spawn.forked import ForkedLauncher
from xclaw.spawn.forked_keeper import descendants
from xclaw.spawn.forked_process import ForkSettings, allowed_environment, start_forked
from xclaw.spawn.local import LocalLauncher
from xclaw.store.journal import SqliteJournal
from xclaw.store.settings import StoreSettings
from xclaw.testing import FunctionModel
from xclaw.testing.script_files import ScriptedCall, ScriptedReply
from xclaw.toolbox import build_toolbox
from xclaw.workspaces.local import LocalWorkspaces
from xclaw.workspaces.settings import WorkspaceSettings

WAIT_S = 20.0

Answer = Callable[[ModelRequest], Awaitable[str | ScriptedReply]]
KILL_WORKER = "kill -9 $(awk '{print $4}' /proc/$PPID/stat)"
"""Of the shell tool: its shell is started by a leader, and that by the worker."""


@dataclass
class Scene:
    runs: Runs
    services: Services
    journal: SqliteJournal
    links: list[WorkerLink] = field(default_factory=list[WorkerLink])

    async def entries(self, root_id: str) -> list[Entry]:
        return await self.journal.read_tree(root_id)

    def workers(self) -> set[int]:
        """Processes of every worker that there ever was: empty when all are gone."""
        return {pid for link in self.links for pid in descendants(link.pid) | _alive(link.pid)}


def _alive(pid: int) -> set[int]:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return set()
    return {pid}


@dataclass(frozen=True)
class Wishes:
    """How the scene differs from the ordinary one."""

    agents: Sequence[Agent] = ()
    tools: Sequence[Tool] = ()
    settings: RuntimeSettings = field(default_factory=RuntimeSettings)
    permissions: PermissionSettings = field(default_factory=PermissionSettings)
    profile: ModelProfile = field(default_factory=ModelProfile)
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    module: str = "xclaw.worker"
    owner: str = "test"
    model: Model | None = None
    """In place of the one that answers by a function."""


@asynccontextmanager
async def forked_scene(home: Path, answer: Answer, wishes: Wishes | None = None) -> AsyncGenerator[Scene]:
    wishes = wishes or Wishes()
    journal = await SqliteJournal.open(StoreSettings(str(home / "xclaw.db")))
    await journal.register_owner(wishes.owner, os.getpid(), "")
    links: list[WorkerLink] = []
    services = _services(home, journal, answer, wishes, links)
    runs = Runs(services, Sessions(lambda _: None, lambda _: None), ("test:m",))
    scene = Scene(runs, services, journal, links)
    try:
        yield scene
    finally:
        await runs.close()
        await journal.close()
        assert not scene.workers(), "a worker outlived its run"


def _services(
    home: Path, journal: SqliteJournal, answer: Answer, wishes: Wishes, links: list[WorkerLink]
) -> Services:
    agents = AgentRegistry(wishes.agents)
    workspace = WorkspaceSettings(str(home / "workspace"), durable=False)
    workspaces = LocalWorkspaces(workspace)
    tools = build_toolbox(workspaces.find, agents.roster(), wishes.tools)
    there = frozenset(tools.names()) - {tool.spec.name for tool in wishes.tools}
    environment = {**allowed_environment(os.environ), **wishes.environment}
    fork = ForkSettings(environment, module=wishes.module)

    async def start() -> WorkerLink:
        link = await start_forked(fork)
        links.append(link)
        return link

    memory = MemorySettings(str(home / "memory"), str(home / "scratchpads"))
    setup: dict[str, object] = {
        "workspace": msgspec.to_builtins(workspace),
        "memory": msgspec.to_builtins(memory),
    }
    model = wishes.model or FunctionModel(answer, profile=wishes.profile)
    return Services(
        journal=journal,
        models=lambda chain: model,
        agents=agents,
        tools=tools,
        workspaces=workspaces,
        launchers={"local": LocalLauncher(), "teammate": LocalLauncher(), "forked": ForkedLauncher()},
        coaching=SmallModelCoaching(),
        settings=wishes.settings,
        owner=wishes.owner,
        owner_alive=lambda owner: owner == wishes.owner,
        memory_root=str(home / "memory"),
        sandboxes=HostSandboxes(),
        approvals=Approvals(_desk(home, journal, workspaces, wishes, tools.select)),
        workers={"forked": WorkerKind(start, there, setup)},
    )


def _desk(
    home: Path,
    journal: SqliteJournal,
    workspaces: LocalWorkspaces,
    wishes: Wishes,
    tools: Callable[[Sequence[str]], Mapping[str, Tool]],
) -> Desk:
    async def tell(owner: str, approval_id: str) -> None:
        raise AssertionError("nobody else drives anything")

    settings = wishes.permissions
    return Desk(
        store=journal.approvals,
        journal=journal,
        workspaces=workspaces,
        tools=tools,
        grants=GrantFile(home / "permissions.toml"),
        settings=settings,
        base=settings_level(settings, allow_shell=wishes.settings.allow_shell),
        tell=tell,
        identity=lambda name: name,
    )


def forked(name: str, *tools: str, orchestrator: bool = False, script: tuple[str, ...] = ()) -> Agent:
    return Agent(
        name,
        f"the {name} one",
        "Work.",
        tools=tools,
        isolation="forked",
        orchestrator=orchestrator,
        script=script,
        source="python",
    )


def local(agent: Agent) -> Agent:
    return replace(agent, isolation="local")


def turns(request: ModelRequest) -> int:
    """How often the agent has answered."""
    return sum(isinstance(message, AssistantMessage) for message in request.messages)


def call(name: str, **arguments: object) -> ScriptedReply:
    return ScriptedReply(calls=(ScriptedCall(name=name, arguments=arguments),))


def shell(command: str) -> ScriptedReply:
    return call("shell", command=command)


async def until(condition: Callable[[], bool]) -> None:
    """Poll what cannot be waited for: the processes of others."""
    async with asyncio.timeout(WAIT_S):
        while not condition():
            await asyncio.to_thread(_pause)


def _pause() -> None:
    select.select([], [], [], 0.01)


def started(request: ModelRequest) -> str:
    """The task or message that the agent works on."""
    asked = [m.text for m in request.messages if isinstance(m, UserMessage) and m.origin in ("user", "agent")]
    return asked[-1]


def results(entries: Sequence[Entry]) -> dict[str, Result]:
    """How each agent's run ended."""
    names = {e.address.run_id: e.event.agent for e in entries if isinstance(e.event, RunStarted)}
    return {names[e.address.run_id]: e.event.result for e in entries if isinstance(e.event, RunEnded)}


def check_journal(entries: Sequence[Entry]) -> None:
    """Every run began once, ended once and is numbered without a gap; every result was taken once; a
    run's spend is what its calls and its children's cost."""
    runs: dict[str, list[Entry]] = {}
    for entry in entries:
        runs.setdefault(entry.address.run_id, []).append(entry)
    for run in runs.values():
        assert [entry.seq for entry in run] == list(range(1, len(run) + 1))
        assert [type(entry.event) for entry in run].count(RunStarted) == 1
        assert [type(entry.event) for entry in run].count(RunEnded) == 1
        assert isinstance(run[-1].event, RunEnded | NotificationQueued)
    spawned = sorted(e.event.child_run_id for e in entries if isinstance(e.event, ChildSpawned))
    taken = sorted(e.event.child_run_id for e in entries if isinstance(e.event, ChildEnded))
    assert spawned == taken
    assert {run_id for run_id, run in runs.items() if run[0].address.parent_id} <= set(spawned)
    root = next(run for run in runs.values() if not run[0].address.parent_id)
    ended = next(e.event for e in root if isinstance(e.event, RunEnded))
    assert ended.result.spend == sum((fold(run).spend for run in runs.values()), Spend())


async def ended(scene: Scene, request: RunRequest) -> list[Entry]:
    """Run a request to its end; the tree's entries, which are sound."""
    async with asyncio.timeout(WAIT_S):
        handle = await scene.runs.start(request)
        await handle.result()
        entries = await scene.entries(handle.root_id)
    check_journal(entries)
    return entries
