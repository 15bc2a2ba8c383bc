"""From a RunStarted event to a live run: the same for a new run and for one that is taken up again."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from xclaw.contracts.agents import Agent, Limits
from xclaw.contracts.events import RunStarted
from xclaw.contracts.models import ToolSpec
from xclaw.contracts.tasks import Task
from xclaw.contracts.tools import ToolSet
from xclaw.contracts.workspaces import Workspace
from xclaw.loop.client_tools import client_tools
from xclaw.loop.dialects import Dialect, JsonDialect, NativeDialect
from xclaw.loop.parts import Bounds, Gate, Parts
from xclaw.loop.state import RunState
from xclaw.runtime.board import board_text
from xclaw.runtime.call_spawn import CallSpawn
from xclaw.runtime.checks import CheckGate
from xclaw.runtime.children import Children, LaunchChild
from xclaw.runtime.clocks import deadline_of
from xclaw.runtime.coached import coached_note, coached_schema
from xclaw.runtime.gate import CallGate
from xclaw.runtime.ledger import TreeLedger
from xclaw.runtime.mail import as_message
from xclaw.runtime.orders import Order, is_coached, started_event
from xclaw.runtime.projects import RunProject, project_of
from xclaw.runtime.sandboxing import RunSandbox
from xclaw.runtime.services import Services
from xclaw.runtime.stream import RunLog
from xclaw.runtime.tree import Node, Tree

NATIVE, JSON = NativeDialect(), JsonDialect()


@dataclass(slots=True)
class Live:
    """A run that is ready to be driven."""

    node: Node
    parts: Parts
    children: Children
    sandbox: RunSandbox
    project: RunProject | None = None


@dataclass(frozen=True, slots=True)
class Lineage:
    """Who is above a run, and how those below it are started."""

    parent: Node | None
    launch: LaunchChild


def begin(services: Services, tree: Tree, order: Order, state: RunState, lineage: Lineage) -> Live:
    """A new run: its first event is recorded, nothing else has happened."""
    workspace = services.workspaces.open(order.agent.name, order.task_id, order.address.run_id)
    started = started_event(services, tree, order, workspace)
    log = RunLog(tree.stream, order.address, state)
    live = _assemble(services, tree, started, log, workspace, lineage)
    if order.route is not None:
        live.node.ledger.charge(order.route.spend)
    log.record(started)
    return live


def take_up(services: Services, tree: Tree, log: RunLog, lineage: Lineage) -> Live:
    """A run that was interrupted, from its folded state."""
    started = log.state.started_event
    assert started is not None
    workspace = services.workspaces.open(started.agent, started.task_id, log.address.run_id)
    return _assemble(services, tree, started, log, workspace, lineage)


def _assemble(
    services: Services,
    tree: Tree,
    started: RunStarted,
    log: RunLog,
    workspace: Workspace,
    lineage: Lineage,
) -> Live:
    agent = _agent(services, started)
    model = services.models(started.models)
    workspace.grant((*(started.task.inputs if started.task else ()), *log.state.artifacts.values()))
    tools, specs = _tools(services, started)
    ledger = account(services, started.limits, lineage.parent)
    node = Node(
        log.address.run_id, started.agent, started.depth, log, ledger, lineage.parent, started.task_id
    )
    tree.nodes[node.run_id] = node
    bounds = _bounds(services, agent, started.limits, coached=(coached := is_coached(model, started.dialect)))
    children = Children(services, tree, node, workspace, lineage.launch)
    project = project_of(services.projects, started, log, workspace)
    mounts = project.mounts if project is not None else ()
    sandbox = RunSandbox(services.sandboxes, workspace, started.task_id, mounts)
    _reachable(children, started, bounds.max_turns)
    parts = Parts(
        agent=agent,
        model=model,
        dialect=dialect_of(started.dialect),
        instructions=started.instructions,
        tools=tools,
        specs=specs,
        state=log.state,
        log=log,
        ledger=ledger,
        workspace=workspace,
        inbox=children,
        gate=_gate(services, tree, node, workspace, started.task),
        bounds=bounds,
        spawn_for=lambda call_id: CallSpawn(children, call_id),
        board=_board(services, agent, log.state, ledger, coached=coached),
        resolve_tool=lambda name: _meant(services, tools, name),
        run_id=node.run_id,
        session_id=log.address.session_id,
        shots=services.coaching.shots(agent) if coached else (),
        schema=coached_schema(services, agent, log.state, specs) if coached else None,
        task=started.task,
        output_schema=started.output_schema,
        sandbox=sandbox.open,
        project=project,
    )
    return Live(node, parts, children, sandbox, project)


def _tools(services: Services, started: RunStarted) -> tuple[ToolSet, tuple[ToolSpec, ...]]:
    tools = {**services.tools.select(started.tools), **client_tools(started.client_tools)}
    return tools, tuple(tool.spec for tool in tools.values())


def _board(
    services: Services, agent: Agent, state: RunState, ledger: TreeLedger, *, coached: bool
) -> Callable[[], str]:
    if coached:
        return lambda: coached_note(services, agent, state)
    return lambda: board_text(state, ledger.left())


def _agent(services: Services, started: RunStarted) -> Agent:
    agent = services.agents.get(started.agent) or Agent(started.agent, "", "", source="journal")
    if started.script:  # which may have been given for this run alone
        return replace(agent, script=started.script, isolation="forked")
    return agent


def _reachable(children: Children, started: RunStarted, max_turns: int) -> None:
    """From now on others can write to the run; what they wrote before it was there waits for it."""
    tree, node = children.tree, children.node
    node.steer = children.steer
    children.max_turns = max_turns
    if started.task is not None and started.task.seat is not None:
        children.sit(started.task.seat, started.parent_call_id)
    for mail in tree.mail.collect(node.run_id):
        children.steer(as_message(mail))


def _gate(services: Services, tree: Tree, node: Node, workspace: Workspace, task: Task | None) -> Gate:
    gate = CallGate(services.approvals, tree, node, workspace)
    return CheckGate(gate, node.log.state) if task is not None and task.checks else gate


def account(services: Services, limits: Limits, parent: Node | None) -> TreeLedger:
    """A run's own account, below its parent's."""
    return TreeLedger(
        parent.ledger if parent else None,
        max_tokens=limits.max_tokens,
        max_usd=limits.max_usd,
        max_calls=None if parent else services.settings.max_calls,
    )


def set_deadline(live: Live, timeout_s: float | None) -> None:
    """The clock starts now, and never runs past the parent's."""
    node, parts = live.node, live.parts
    inherited = deadline_of(node.parent) if node.parent else None
    own = asyncio.get_running_loop().time() + timeout_s if timeout_s is not None else inherited
    node.deadline = own if inherited is None or own is None else min(own, inherited)

    def moved(deadline: float | None) -> None:
        parts.bounds = replace(parts.bounds, deadline=deadline)

    node.moved = moved
    moved(node.deadline)


def dialect_of(name: Literal["native", "json"]) -> Dialect:
    return NATIVE if name == "native" else JSON


def _meant(services: Services, tools: ToolSet, name: str) -> str:
    if name in tools:
        return name
    tool = services.tools.resolve(name)
    return tool.spec.name if tool and tool.spec.name in tools else name


def _bounds(services: Services, agent: Agent, limits: Limits, *, coached: bool) -> Bounds:
    """Without a deadline: the clock starts later."""
    max_turns = _max_turns(services, agent, limits, coached=coached)
    return Bounds(max_turns, None, services.settings.inline_limit_chars)


def _max_turns(services: Services, agent: Agent, limits: Limits, *, coached: bool) -> int:
    if limits.max_turns is not None:
        return limits.max_turns
    if coached:
        return services.coaching.max_turns
    settings = services.settings
    return settings.orchestrator_turns if agent.orchestrator else settings.worker_turns
