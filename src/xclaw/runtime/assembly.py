"""From a RunStarted event to a live run: the same for a new run and for one that is taken up again."""

import asyncio
from dataclasses import dataclass, replace
from typing import Literal

from xclaw.contracts.agents import Agent, Limits
from xclaw.contracts.errors import UsageError
from xclaw.contracts.events import Address, ChildSpawned, RunStarted
from xclaw.contracts.messages import Caller
from xclaw.contracts.models import Model
from xclaw.contracts.tasks import Task
from xclaw.contracts.tools import ToolSet
from xclaw.contracts.workspaces import Workspace
from xclaw.loop.dialects import Dialect, JsonDialect, NativeDialect
from xclaw.loop.parts import Bounds, Parts, Schema
from xclaw.loop.prompts import system_prompt
from xclaw.loop.state import RunState
from xclaw.runtime.board import board_text
from xclaw.runtime.children import CallSpawn, Children, LaunchChild
from xclaw.runtime.ledger import TreeLedger
from xclaw.runtime.services import Services
from xclaw.runtime.stream import RunLog
from xclaw.runtime.tree import Node, Tree

FILE_TOOLS = ("view_file", "list_dir", "write_file", "deliver")
COORDINATION_TOOLS = ("delegate", "debate", "pipeline", "spawn", "wait")
NATIVE, JSON = NativeDialect(), JsonDialect()


@dataclass(slots=True)
class Live:
    """A run that is ready to be driven."""

    node: Node
    parts: Parts
    children: Children


@dataclass(frozen=True, slots=True)
class Order:
    """What a new run is asked to do."""

    agent: Agent
    address: Address
    text: str
    caller: Caller
    depth: int
    task_id: str
    limits: Limits
    models: tuple[str, ...]
    task: Task | None = None
    parent_call_id: str = ""


@dataclass(frozen=True, slots=True)
class Lineage:
    """Who is above a run, and how those below it are started."""

    parent: Node | None
    launch: LaunchChild


def started_event(services: Services, tree: Tree, order: Order, workspace: Workspace) -> RunStarted:
    """Resolve everything that a run needs to know of itself, so that a replay need not guess."""
    model = services.models(order.models)
    dialect = _dialect_name(services, tree, model)
    tools = _tool_names(services, order.agent, order.depth)
    if _is_coached(model, dialect):
        tools = services.coaching.tools(order.agent, tools)
        instructions = services.coaching.brief(order.agent, services.agents.roster())
    else:
        specs = tuple(tool.spec for tool in services.tools.select(tools).values())
        instructions = system_prompt(
            order.agent, dialect=dialect, specs=specs, caller=order.caller, task=order.task
        )
    return RunStarted(
        agent=order.agent.name,
        input=_input(order, workspace),
        caller=order.caller,
        depth=order.depth,
        instructions=instructions,
        tools=tools,
        models=order.models,
        dialect=dialect,
        limits=order.limits,
        parent_call_id=order.parent_call_id,
        task_id=order.task_id,
        task=order.task,
        channel=tree.channel,
        scripted=model.profile.scripted,
    )


def begin(services: Services, tree: Tree, order: Order, state: RunState, lineage: Lineage) -> Live:
    """A new run: its first event is recorded, nothing else has happened."""
    workspace = services.workspaces.open(order.agent.name, order.task_id, order.address.run_id)
    started = started_event(services, tree, order, workspace)
    log = RunLog(tree.stream, order.address, state)
    live = _assemble(services, tree, started, log, workspace, lineage)
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
    agent = services.agents.get(started.agent) or Agent(started.agent, "", "", source="journal")
    model = services.models(started.models)
    parent, launch = lineage.parent, lineage.launch
    workspace.grant(tuple(log.state.artifacts.values()))
    if started.task is not None:
        workspace.grant(started.task.inputs)
    tools = services.tools.select(started.tools)
    ledger = TreeLedger(
        parent.ledger if parent else None,
        max_tokens=started.limits.max_tokens,
        max_usd=started.limits.max_usd,
        max_calls=None if parent else services.settings.max_calls,
    )
    node = Node(log.address.run_id, started.agent, started.depth, log, ledger, parent, started.task_id)
    tree.nodes[node.run_id] = node
    children = Children(services, tree, node, workspace, launch)
    coached = _is_coached(model, started.dialect)
    parts = Parts(
        agent=agent,
        model=model,
        dialect=dialect_of(started.dialect),
        instructions=started.instructions,
        tools=tools,
        specs=tuple(tool.spec for tool in tools.values()),
        state=log.state,
        log=log,
        ledger=ledger,
        workspace=workspace,
        inbox=children,
        bounds=Bounds(
            _max_turns(services, agent, started.limits, coached=coached),
            None,
            services.settings.inline_limit_chars,
        ),
        spawn_for=lambda call_id: CallSpawn(children, call_id),
        board=lambda: _board(services, log.state, ledger, coached=coached),
        resolve_tool=lambda name: _meant(services, tools, name),
        run_id=node.run_id,
        session_id=log.address.session_id,
        shots=services.coaching.shots(agent) if coached else (),
        schema=_coached_schema(services) if coached else None,
        task=started.task,
    )
    return Live(node, parts, children)


def child_order(services: Services, tree: Tree, parent: Node, spawned: ChildSpawned) -> Order:
    """What a new child is asked to do, within what its parent may."""
    task = spawned.task
    agent = services.agents.get(task.agent)
    if agent is None:
        raise UsageError(f"the agent {task.agent!r} does not exist any more")
    address = Address(spawned.child_run_id, tree.root_id, parent.run_id, spawned.child_session_id)
    models = agent.models or tree.models
    limits = _child_limits(services, tree, agent, task, models)
    return Order(
        agent,
        address,
        task.text,
        "agent",
        parent.depth + 1,
        spawned.task_id,
        limits,
        models,
        task,
        spawned.call_id,
    )


def set_deadline(live: Live, timeout_s: float | None) -> None:
    """The clock starts now, and never runs past the parent's."""
    node, parts = live.node, live.parts
    inherited = node.parent.deadline if node.parent else None
    own = asyncio.get_running_loop().time() + timeout_s if timeout_s is not None else inherited
    node.deadline = own if inherited is None or own is None else min(own, inherited)
    parts.bounds = replace(parts.bounds, deadline=node.deadline)


def dialect_of(name: Literal["native", "json"]) -> Dialect:
    return NATIVE if name == "native" else JSON


def _child_limits(
    services: Services, tree: Tree, agent: Agent, task: Task, models: tuple[str, ...]
) -> Limits:
    timeout = (
        task.limits.timeout_s
        or agent.limits.timeout_s
        or tree.worker_timeout_s
        or services.settings.worker_timeout_s
        or services.models(models).profile.worker_timeout_s
    )
    return Limits(
        task.limits.max_turns or agent.limits.max_turns,
        timeout,
        task.limits.max_tokens or agent.limits.max_tokens,
        task.limits.max_usd or agent.limits.max_usd,
    )


def _meant(services: Services, tools: ToolSet, name: str) -> str:
    if name in tools:
        return name
    tool = services.tools.resolve(name)
    return tool.spec.name if tool and tool.spec.name in tools else name


def _is_coached(model: Model, dialect: str) -> bool:
    """A small model gets a brief, examples and a tight schema; all of them speak the JSON dialect."""
    return model.profile.few_shots and dialect == "json"


def _coached_schema(services: Services) -> Schema:
    agents = list(services.agents.roster())
    return lambda specs, final, delivered: services.coaching.schema(specs, final, agents, delivered)


def _board(services: Services, state: RunState, ledger: TreeLedger, *, coached: bool) -> str:
    if not coached:
        return board_text(state, ledger.left())
    done = [state.children[run_id].task.agent for run_id in state.child_results if run_id in state.children]
    return services.coaching.note(done) if done else ""


def _max_turns(services: Services, agent: Agent, limits: Limits, *, coached: bool) -> int:
    if limits.max_turns is not None:
        return limits.max_turns
    if coached:
        return services.coaching.max_turns
    settings = services.settings
    return settings.orchestrator_turns if agent.orchestrator else settings.worker_turns


def _dialect_name(services: Services, tree: Tree, model: Model) -> Literal["native", "json"]:
    chosen = tree.dialect or services.settings.dialect
    if chosen is not None:
        return "json" if chosen == "json" else "native"
    return "native" if model.profile.native_tools else "json"


def _tool_names(services: Services, agent: Agent, depth: int) -> tuple[str, ...]:
    names = agent.tools
    if names is None:
        names = (*COORDINATION_TOOLS, *FILE_TOOLS) if agent.orchestrator else FILE_TOOLS
        if services.settings.allow_shell and not agent.orchestrator:
            names = (*names, "shell")
    if not services.settings.allow_shell:
        names = tuple(name for name in names if name != "shell")
    if depth >= services.settings.max_depth:
        names = tuple(name for name in names if name not in COORDINATION_TOOLS)
    return tuple(services.tools.select(names))


def _input(order: Order, workspace: Workspace) -> str:
    """The user's message as it is; a task with the headers of SPEC D1."""
    if order.task is None or not order.task.structured:
        return order.text
    headers = [
        f"[Task workspace: {workspace.private_dir}]",
        f"[Shared delivery dir: {workspace.delivery_dir}]",
    ]
    if order.task.inputs:
        paths = ", ".join(pointer.path for pointer in order.task.inputs)
        headers.append(f"[Input artifacts: {paths}]")
    return "\n\n".join([*headers, order.text])
