"""From what the runtime told to a run that can go on: the worker's own wiring."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from xclaw.agents.registry import AgentRegistry
from xclaw.contracts.events import Address, Entry
from xclaw.contracts.workers import WorkerKind
from xclaw.loop.state import RunState, fold
from xclaw.memory.keeping import pad_keeper
from xclaw.memory.meaning import embedder_of
from xclaw.memory.memory import FileMemory
from xclaw.memory.scratchpad import FileScratchpad
from xclaw.memory.settings import MemorySettings
from xclaw.memory.toolset import stored_tools
from xclaw.models.embedded.coaching import SmallModelCoaching
from xclaw.patterns.coordinator.settings import CoordinatorSettings
from xclaw.runtime.approvals import Desk
from xclaw.runtime.assembly import Live
from xclaw.runtime.driver import Driver
from xclaw.runtime.grants import GrantFile
from xclaw.runtime.ledger import TreeLedger
from xclaw.runtime.services import Services
from xclaw.runtime.stream import RunLog
from xclaw.runtime.tree import Node, Tree
from xclaw.runtime.wire import Begin, Want
from xclaw.sandbox.settings import SandboxSettings
from xclaw.spawn.forked import ForkedLauncher
from xclaw.spawn.forked_process import ForkSettings, start_forked
from xclaw.spawn.leftovers import MARK
from xclaw.spawn.local import LocalLauncher
from xclaw.toolbox import Phases, build_sandboxes, build_toolbox
from xclaw.tools.web import web_fetch_tool
from xclaw.tools.web_settings import WebSettings
from xclaw.worker.line import RuntimeLine
from xclaw.worker.proxies import (
    LineApprovals,
    LineApprovalStore,
    LineJournal,
    LineModels,
    LinePlaces,
    LineStream,
)
from xclaw.workspaces.local import LocalWorkspaces
from xclaw.workspaces.projects.projects import LocalProjects
from xclaw.workspaces.projects.settings import ProjectSettings
from xclaw.workspaces.settings import WorkspaceSettings

TIME_MARGIN_S = 5.0
"""The runtime ends the run in time; only where it does not, the worker does."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What a worker needs of the settings."""

    workspace: WorkspaceSettings
    memory: MemorySettings
    sandbox: SandboxSettings = SandboxSettings()
    project: ProjectSettings | None = None
    web: WebSettings = WebSettings()
    coordinator: CoordinatorSettings = CoordinatorSettings()


@dataclass(frozen=True, slots=True)
class Told:
    """Everything that a worker is told at its birth."""

    begin: Begin
    own: Sequence[Entry]
    """The conversation's."""
    below: Sequence[Entry]
    """Of the runs below."""


def compose(line: RuntimeLine, told: Told, environment: dict[str, str]) -> tuple[Driver, Live]:
    """The run, as it stands. `environment` is for workers that this one starts."""
    begin = told.begin
    journal = LineJournal(line, [*told.own, *told.below])
    services = _services(line, begin, journal, environment)
    tree = _tree(line, begin, journal, told)
    line.flush = tree.stream.flush
    driver = Driver(services, tree)
    address = next(entry.address for entry in told.own if entry.address.run_id == begin.run)
    log = RunLog(tree.stream, address, fold(told.own), begin.seq)
    live = driver.recall(log, _above(begin, address, tree))
    live.node.holds_slot = live.node.depth > 0
    return driver, live


def _services(line: RuntimeLine, begin: Begin, journal: LineJournal, environment: dict[str, str]) -> Services:
    setup = msgspec.convert(begin.setup, Setup)
    agents = AgentRegistry(begin.agents)
    workspaces = LocalWorkspaces(setup.workspace)
    embedder = embedder_of(setup.memory.meaning, setup.memory.embedder_threads)
    own = [*stored_tools(setup.memory, embedder), web_fetch_tool(setup.web)]
    phases = Phases(setup.coordinator, pad_keeper(FileScratchpad(setup.memory)))
    # A worker has few runs and none before it begins: nothing is worth keeping warm.
    sandbox = replace(setup.sandbox, pool_size=0) if begin.sandbox else None
    tools = build_toolbox(workspaces.find, agents.roster(), own, phases, sandbox)
    settings = ForkSettings(environment)
    forked = WorkerKind(lambda: start_forked(settings), frozenset(tools.names()), begin.setup)

    async def tell(owner: str, approval_id: str) -> None:
        """Nobody answers questions here."""

    desk = Desk(
        store=LineApprovalStore(line),
        journal=journal,
        workspaces=workspaces,
        tools=tools.select,
        grants=GrantFile(Path("/dev/null")),
        settings=begin.permissions,
        base=begin.base,
        tell=tell,
        identity=lambda name: name,
    )
    return Services(
        journal=journal,
        models=LineModels(line, begin.chains),
        agents=agents,
        tools=tools,
        workspaces=workspaces,
        launchers={"local": LocalLauncher(), "teammate": LocalLauncher(), "forked": ForkedLauncher()},
        coaching=SmallModelCoaching(),
        settings=begin.settings,
        sandboxes=build_sandboxes(sandbox, environment.get(MARK, "")),
        projects=LocalProjects(setup.project) if setup.project else None,
        owner=begin.owner,
        owner_alive=lambda owner: owner == begin.owner,
        memory_root=begin.memory_root,
        memory=FileMemory(setup.memory, embedder),
        approvals=LineApprovals(line, desk),
        workers={"forked": forked},
    )


def _tree(line: RuntimeLine, begin: Begin, journal: LineJournal, told: Told) -> Tree:
    async def above(node: Node, agent: str, text: str) -> None:
        await line.question(
            lambda number, _: Want(id=number, what="admit", run=node.run_id, agent=agent, text=text)
        )

    tree = Tree(
        told.own[-1].address.root_id,
        begin.session,
        LineStream(line, journal),
        begin.settings,
        LinePlaces(line),
        begin.models,
        begin.dialect,
        begin.worker_timeout_s,
        begin.channel,
        sandbox=begin.sandbox,
        project=begin.project,
        above=above,
    )
    tree.recall([*(entry for entry in told.own if entry.address.run_id == begin.run), *told.below])
    return tree


def _above(begin: Begin, address: Address, tree: Tree) -> Node | None:
    """Those above: they are elsewhere, and only their names and bounds count here. The runtime holds
    every call against their accounts as they then are."""
    node: Node | None = None
    for depth, above in enumerate(begin.above):
        place = Address(above.run, address.root_id, node.run_id if node else "", begin.session)
        bounds = above.bounds
        ledger = TreeLedger(
            node.ledger if node else None,
            max_tokens=bounds.max_tokens,
            max_usd=bounds.max_usd,
            max_calls=bounds.max_calls,
            spent=bounds.spent,
        )
        node = Node(above.run, above.agent, depth, RunLog(tree.stream, place, RunState()), ledger, node)
    if node is not None and begin.left_s is not None:
        node.deadline = asyncio.get_running_loop().time() + begin.left_s + TIME_MARGIN_S
    return node
