"""The composition root: settings in, a wired runtime out. The only file that knows all rooms."""

import asyncio
import os
import secrets
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from xclaw import __version__
from xclaw.agents.loader import load_agents
from xclaw.agents.registry import AgentRegistry
from xclaw.agents.settings import AgentSettings
from xclaw.contracts.agents import Agent
from xclaw.contracts.errors import JournalError, SessionBusy, UsageError
from xclaw.contracts.models import Model
from xclaw.contracts.results import Result
from xclaw.contracts.tools import Tool
from xclaw.contracts.workers import WorkerKind
from xclaw.gateway.gateway import Gateway
from xclaw.gateway.metrics import Metrics
from xclaw.gateway.routing.building import build_router
from xclaw.gateway.routing.router import Router
from xclaw.gateway.services import GatewayServices
from xclaw.loop.schema_checks import violations
from xclaw.memory.keeping import pad_keeper
from xclaw.memory.meaning import embedder_of
from xclaw.memory.memory import FileMemory
from xclaw.memory.scratchpad import FileScratchpad
from xclaw.memory.toolset import stored_tools
from xclaw.memory.words import words_of
from xclaw.models.catalog import ModelCatalog
from xclaw.models.embedded.coaching import SmallModelCoaching
from xclaw.models.embedded.joining import Progress
from xclaw.models.embedded.model import LocalModel
from xclaw.patterns import selfcontained
from xclaw.patterns.workflows.earlier import earlier_results
from xclaw.patterns.workflows.file_model import PROVIDER, ScriptFileModel
from xclaw.patterns.workflows.tool import WorkflowTool
from xclaw.runtime.approvals import Approvals, Desk
from xclaw.runtime.collector import collect_less_often
from xclaw.runtime.control import ControlSocket, cancel_elsewhere, sweep_socket, wake_elsewhere
from xclaw.runtime.grants import GrantFile
from xclaw.runtime.permissions import settings_level
from xclaw.runtime.runs import Runs
from xclaw.runtime.services import Services
from xclaw.runtime.sessions import Sessions
from xclaw.runtime.tree import NodeEnd
from xclaw.settings.loading import Settings, front_agent
from xclaw.spawn.forked import ForkedLauncher
from xclaw.spawn.forked_process import ForkSettings, allowed_environment, start_forked
from xclaw.spawn.leftovers import MARK, end_marked
from xclaw.spawn.local import LocalLauncher
from xclaw.store.journal import SqliteJournal
from xclaw.store.owners import OwnerLocks
from xclaw.testing.scripted_model import ScriptedModel
from xclaw.toolbox import Phases, build_sandboxes, build_toolbox
from xclaw.tools.registry import ToolRegistry
from xclaw.tools.web import web_fetch_tool
from xclaw.traces.otel_export import BackgroundExport
from xclaw.workspaces.local import LocalWorkspaces
from xclaw.workspaces.projects.projects import LocalProjects


@dataclass(frozen=True, slots=True)
class App:
    """A wired runtime. Made by `open_app`, which also ends it."""

    settings: Settings
    runs: Runs
    journal: SqliteJournal
    agents: AgentRegistry
    models: ModelCatalog
    workspaces: LocalWorkspaces
    projects: LocalProjects
    router: Router
    warnings: tuple[str, ...]
    """What was ignored in settings and agent files, and why."""

    async def cancel(self, run_id: str, reason: str) -> list[NodeEnd]:
        """End a run, whichever living process drives it. Raises `UsageError` if nobody does."""
        ends = await self.runs.cancel(run_id, reason)
        if ends:
            return ends
        row = await self.journal.run_row(run_id)
        if row is None:
            raise UsageError(f"there is no run {run_id!r}; `xclaw tasks` lists them")
        if row.outcome is not None:
            return [NodeEnd(row.run_id, row.agent, row.outcome)]
        owner = await self.journal.owner_row(row.owner)
        if owner is None or not self.journal.owner_alive(row.owner):
            return await self.runs.abandon(row.root_id, reason)
        return await cancel_elsewhere(owner.socket, run_id, reason)


@asynccontextmanager
async def open_app(
    settings: Settings,
    progress: Progress | None = None,
    *,
    agents: Sequence[Agent] = (),
    tools: Sequence[Tool] = (),
) -> AsyncGenerator[App]:
    """A runtime for as long as the block lasts; at its end every run is ended and journaled.

    `progress` is told of the embedded model's preparation, which takes seconds or a download.
    `agents` stand beside the built-in ones and those from files, in place of any of the same name;
    `tools` can be named in an agent's `tools`.

    Raises `UsageError` for what is wrong with settings, agent files or the database. For the whole
    process, Python's garbage collector runs less often from then on.
    """
    collect_less_often()
    Path(settings.workspace.root).mkdir(mode=0o700, parents=True, exist_ok=True)
    registry, warnings = load_agents(_knowing(settings.agents, tools), agents)
    models = ModelCatalog(settings.models, _makers(settings, progress))
    router = build_router(settings.router, registry, models, front=front_agent(settings))
    journal = await SqliteJournal.open(settings.store)
    workspaces = LocalWorkspaces(settings.workspace)
    locks = OwnerLocks(f"{settings.store.path}.sessions")
    projects = LocalProjects(settings.project)
    services = replace(
        _services(settings, registry, models, journal, workspaces, tools),
        projects=projects,
        project_directory=settings.project.directory,
    )
    export = BackgroundExport(settings.traces, journal.read_tree)
    runs = Runs(services, _sessions(locks), settings.models.chain, export.root_ended)
    control = ControlSocket(runs.cancel, services.approvals.wake)
    try:
        await control.open()
        await journal.register_owner(services.owner, os.getpid(), control.path)
        await _forget_the_dead(journal)
        yield App(
            settings,
            runs,
            journal,
            registry,
            models,
            workspaces,
            projects,
            router,
            (*settings.warnings, *warnings),
        )
    finally:
        await runs.close()
        projects.close()
        await services.sandboxes.close()
        await export.close()
        await control.close()
        await journal.close()
        await models.close()


@dataclass(frozen=True, slots=True)
class GatewayApp:
    """A runtime and the door to it. Made by `open_gateway`."""

    app: App
    gateway: Gateway


@asynccontextmanager
async def open_gateway(
    settings: Settings,
    progress: Progress | None = None,
    *,
    agents: Sequence[Agent] = (),
    tools: Sequence[Tool] = (),
) -> AsyncGenerator[GatewayApp]:
    """As `open_app`, with a gateway that takes up what an earlier one left.

    At its end runs are not ended but left to the next one (`Gateway.drain` gives them time before).
    """
    async with open_app(settings, progress, agents=agents, tools=tools) as app:
        gateway = Gateway(
            GatewayServices(
                runs=app.runs,
                journal=app.journal,
                sessions=app.journal.sessions,
                agents=app.agents,
                router=app.router,
                metrics=Metrics(__version__),
                approvals=app.runs.approvals,
                settings=settings.gateway,
                cancel=app.cancel,
            )
        )
        _have_ready()
        await gateway.open()
        try:
            yield GatewayApp(app, gateway)
        finally:
            await gateway.drain(0)


def _have_ready() -> None:
    """What a process with one run makes when it needs it: here everybody else's would stand still meanwhile."""
    selfcontained.prepare()
    words_of("字")  # loads the dictionary
    violations(None, {})  # loads the library


def _services(
    settings: Settings,
    agents: AgentRegistry,
    models: ModelCatalog,
    journal: SqliteJournal,
    workspaces: LocalWorkspaces,
    given: Sequence[Tool],
) -> Services:
    """What the runtime works with; `given` are the tools that were made in Python."""
    owner = f"p{os.getpid()}-{secrets.token_hex(4)}"
    embedder = embedder_of(settings.memory.meaning, settings.memory.embedder_threads)
    outward = _outward_tools(settings, workspaces, journal)
    own = [*stored_tools(settings.memory, embedder), *outward, *given]
    sandbox = settings.sandbox if settings.workspace.mode == "full" else None
    toolbox = build_toolbox(workspaces.find, agents.roster(), own, _phases(settings), sandbox)
    return Services(
        journal=journal,
        models=models,
        agents=agents,
        tools=toolbox,
        workspaces=workspaces,
        launchers={"local": LocalLauncher(), "teammate": LocalLauncher(), "forked": ForkedLauncher()},
        coaching=SmallModelCoaching(),
        settings=settings.runtime,
        sandboxes=build_sandboxes(sandbox, owner),
        owner=owner,
        owner_alive=journal.owner_alive,
        memory_root=settings.memory.root,
        memory=FileMemory(settings.memory, embedder),
        approvals=Approvals(_desk(settings, journal, workspaces, toolbox, agents)),
        workers={"forked": _forked(settings, owner, toolbox, given)},
    )


async def _forget_the_dead(journal: SqliteJournal) -> None:
    """Sweep up after killed processes. Their runs keep their name, and stay open to be resumed."""
    for row in await journal.owners():
        if not journal.owner_alive(row.owner):
            sweep_socket(row.socket)
            await asyncio.to_thread(end_marked, row.owner)
            await journal.remove_owner(row.owner)


def _makers(settings: Settings, progress: Progress | None) -> dict[str, Callable[[str], Model]]:
    """Providers that are not a wire: the embedded model, and scripts."""
    return {
        "local": lambda _name: LocalModel(settings.embedded, progress),
        "script": lambda path: ScriptedModel.from_file(Path(path)),
        PROVIDER: lambda _name: ScriptFileModel(),
    }


def _knowing(settings: AgentSettings, tools: Sequence[Tool]) -> AgentSettings:
    """Agent files may name the tools that were given in Python."""
    return replace(settings, known_tools=(*settings.known_tools, *(tool.spec.name for tool in tools)))


def _outward_tools(settings: Settings, workspaces: LocalWorkspaces, journal: SqliteJournal) -> list[Tool]:
    """Tools that reach beyond their run's own files."""

    async def find_earlier(run_id: str, session_id: str) -> Mapping[str, Result]:
        return await earlier_results(journal, run_id, session_id)

    return [WorkflowTool(workspaces.find, find_earlier, settings.workflow), web_fetch_tool(settings.web)]


def _phases(settings: Settings) -> Phases:
    return Phases(settings.coordinator, pad_keeper(FileScratchpad(settings.memory)))


def _forked(settings: Settings, owner: str, toolbox: ToolRegistry, own: Sequence[Tool]) -> WorkerKind:
    """Workers get an allow-listed environment and the settings of their tools: no key is in either. Tools
    that were given in Python stay in this process, and so does `workflow`, which reads the journal."""
    fork = ForkSettings({**allowed_environment(os.environ), MARK: owner})
    there = frozenset(toolbox.names()) - {"workflow", *(tool.spec.name for tool in own)}
    setup: dict[str, object] = {
        "workspace": msgspec.to_builtins(settings.workspace),
        "sandbox": msgspec.to_builtins(settings.sandbox),
        "project": msgspec.to_builtins(settings.project),
        "memory": msgspec.to_builtins(settings.memory),
        "web": msgspec.to_builtins(settings.web),
        "coordinator": msgspec.to_builtins(settings.coordinator),
    }
    return WorkerKind(lambda: start_forked(fork), there, setup)


def _desk(
    settings: Settings,
    journal: SqliteJournal,
    workspaces: LocalWorkspaces,
    tools: ToolRegistry,
    agents: AgentRegistry,
) -> Desk:
    own = settings.home / "agents"

    def identity(name: str) -> str:
        agent = agents.get(name)
        source = agent.source if agent else "nowhere"
        trusted = source in ("built-in", "python") or Path(source).is_relative_to(own)
        return name if trusted else f"{name} ({source})"

    async def tell(owner: str, approval_id: str) -> None:
        row = await journal.owner_row(owner)
        if row is not None and row.socket and journal.owner_alive(owner):
            await wake_elsewhere(row.socket, approval_id)

    return Desk(
        store=journal.approvals,
        journal=journal,
        workspaces=workspaces,
        tools=tools.select,
        grants=GrantFile(settings.home / "permissions.toml"),
        settings=settings.permissions,
        base=settings_level(settings.permissions, allow_shell=settings.runtime.allow_shell),
        tell=tell,
        identity=identity,
    )


def _sessions(locks: OwnerLocks) -> Sessions:
    def take(session_id: str) -> None:
        try:
            locks.take(session_id)
        except JournalError as failure:
            raise SessionBusy(
                f"session {session_id!r} is busy: another xclaw process is working in it; "
                "wait for it, or name another with --session"
            ) from failure

    return Sessions(take, locks.drop)
