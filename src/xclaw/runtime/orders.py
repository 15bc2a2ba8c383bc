"""What a run is asked to do, and everything it needs to know of itself, fixed in its first event."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from xclaw.contracts.agents import Agent, Limits
from xclaw.contracts.coordination import PHASE_TOOLS, is_coordinator
from xclaw.contracts.errors import UsageError
from xclaw.contracts.events import Address, ChildSpawned, RunStarted
from xclaw.contracts.messages import Caller, Said
from xclaw.contracts.models import Model, ToolSpec
from xclaw.contracts.permissions import Permissions
from xclaw.contracts.routing import Route
from xclaw.contracts.tasks import Task
from xclaw.contracts.teams import Strategy
from xclaw.contracts.tool_names import (
    COMMIT_TOOL,
    COORDINATION_TOOLS,
    MEMORY_TOOLS,
    MERGE_TOOL,
    SCRATCHPAD_TOOLS,
    WORKER_TOOLS,
)
from xclaw.contracts.workspaces import Workspace
from xclaw.loop.check_runs import COMMAND_TOOL
from xclaw.loop.prompts import system_prompt
from xclaw.runtime.approvals import known_permissions
from xclaw.runtime.background import brief, fork
from xclaw.runtime.permissions import forbids, names_tool, narrowed
from xclaw.runtime.project_texts import section
from xclaw.runtime.projects import seen_at
from xclaw.runtime.sandboxing import UNCONTAINED
from xclaw.runtime.services import Services
from xclaw.runtime.tree import Node, Tree

WORKER_PAD_TOOLS = ("scratchpad_read", "scratchpad_write")
"""Enough to read what one is pointed to and to leave something; each tool costs tokens in every request."""
OUTWARD_TOOLS = ("shell", "web_fetch")
"""Of a worker once a rule of the user's names them."""
MEMBER_TOOLS: Mapping[Strategy, tuple[str, ...]] = {
    "parallel": ("send_message", "wait_for_mail", "team_tasks"),
    "sequential": ("send_message", "team_tasks"),
    "round-robin": ("send_message", "team_tasks"),
}
"""Of a member of a team. Where one works at a time, waiting for another would be waiting for ever."""


@dataclass(frozen=True, slots=True)
class Brought:
    """What a client that keeps the conversation itself sends along with a message."""

    history: tuple[Said, ...] = ()
    """What was said before. Each tool call in it has its result."""
    note: str = ""
    """The client's own system prompt; stands after the agent's."""
    tools: tuple[ToolSpec, ...] = ()
    """Tools that the client runs: a turn that asks for them only ends the run."""
    output_schema: dict[str, object] | None = None
    """What the final text has to be."""


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
    message_id: str = ""
    route: Route | None = None
    brought: Brought = Brought()
    above: Permissions | None = None
    """What its parent may do; None for a root, which the settings alone bound."""


def child_order(services: Services, tree: Tree, parent: Node, spawned: ChildSpawned) -> Order:
    """What a new child is asked to do, within what its parent may."""
    task, started = spawned.task, parent.log.state.started_event
    agent = services.agents.get(task.agent)
    if agent is None:
        raise UsageError(f"the agent {task.agent!r} does not exist any more")
    address = Address(spawned.child_run_id, tree.root_id, parent.run_id, spawned.child_session_id)
    models = agent.models or tree.models
    limits = _child_limits(services, tree, agent, task, models)
    background = brief(parent.log.state) if task.context == "brief" else ""
    return Order(
        agent,
        address,
        f"{background}\n\n{task.text}" if background else task.text,
        "agent",
        parent.depth + 1,
        spawned.task_id,
        limits,
        models,
        task,
        spawned.call_id,
        brought=Brought(fork(parent.log.state)) if task.context == "fork" else Brought(),
        above=known_permissions(started, services.approvals.desk.base) if started else None,
    )


def started_event(services: Services, tree: Tree, order: Order, workspace: Workspace) -> RunStarted:
    """Resolve everything that a run needs to know of itself, so that a replay need not guess."""
    model = services.models(order.models)
    dialect = _dialect_name(services, tree, model)
    brought = order.brought
    tools = _tool_names(services, tree, order)
    if order.agent.tools is None:
        tools = _where_it_runs(services, order, tools)
    tools, instructions = _told(services, tree, order, (model, dialect), tools)
    if brought.note:
        instructions = f"{instructions}\n\n## What the user's client adds\n{brought.note}"
    started = RunStarted(
        agent=order.agent.name,
        input=order.text,
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
        message_id=order.message_id,
        scripted=model.profile.scripted,
        route=order.route,
        history=brought.history,
        client_tools=brought.tools,
        output_schema=brought.output_schema,
        permissions=narrowed(order.above or Permissions((services.approvals.desk.base,)), order.agent),
        script=order.agent.script,
        tree_models=tree.models if order.above is None and order.task is None else (),
        sandbox=tree.sandbox or "",
        project=tree.project,
        worktree=tree.project is not None and order.agent.worktree and not _only_checks(order.task),
    )
    return _with_headers(services, order, started, workspace)


def _told(
    services: Services,
    tree: Tree,
    order: Order,
    speech: tuple[Model, Literal["native", "json"]],
    tools: tuple[str, ...],
) -> tuple[tuple[str, ...], str]:
    """The tools that its model can have, and the system prompt without what is the client's."""
    model, dialect = speech
    if is_coached(model, dialect):
        tools = services.coaching.tools(order.agent, tools, order.text)
        return tools, services.coaching.brief(order.agent, services.agents.roster())
    specs = tuple(tool.spec for tool in services.tools.select(tools).values()) + order.brought.tools
    instructions = system_prompt(
        order.agent,
        dialect=dialect,
        specs=specs,
        caller=order.caller,
        task=order.task,
        for_program=order.brought.output_schema is not None,
        sandboxed=tree.sandbox is not None,
    )
    return tools, f"{instructions}\n\n{section(tools)}" if tree.project is not None else instructions


def _with_headers(services: Services, order: Order, started: RunStarted, workspace: Workspace) -> RunStarted:
    """What depends on places: in front of a task. A person's message stays as it is."""
    if services.projects is None or started.project is None:
        return replace(started, input=_input(order, started, workspace, ""))
    seen = seen_at(services.projects, started, workspace, sandboxed=started.sandbox != "")
    header = f"[Project: {seen}]"
    if order.task is None:
        return replace(started, instructions=f"{started.instructions}\n\n{header}")
    return replace(started, input=_input(order, started, workspace, header))


def is_coached(model: Model, dialect: str) -> bool:
    """A small model gets a brief, examples and a tight schema; all of them speak the JSON dialect."""
    return model.profile.few_shots and dialect == "json"


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


def _dialect_name(services: Services, tree: Tree, model: Model) -> Literal["native", "json"]:
    chosen = tree.dialect or services.settings.dialect
    if chosen is not None:
        return "json" if chosen == "json" else "native"
    return "native" if model.profile.native_tools else "json"


def _tool_names(services: Services, tree: Tree, order: Order) -> tuple[str, ...]:
    agent, seat = order.agent, order.task.seat if order.task else None
    names = agent.tools
    if names is None:
        names = (*COORDINATION_TOOLS, *WORKER_TOOLS) if agent.orchestrator else WORKER_TOOLS
        if not agent.orchestrator:
            names = (*names, *_outward(services, tree))
        names = (*names, *(SCRATCHPAD_TOOLS if agent.orchestrator else WORKER_PAD_TOOLS))
    names = _with_memory(names, agent)
    if order.depth >= services.settings.max_depth:
        names = tuple(name for name in names if name not in (*COORDINATION_TOOLS, *PHASE_TOOLS))
    names = (*names, *_of_project(tree, order))
    if seat is not None:
        names = (*names, *(name for name in MEMBER_TOOLS[seat.strategy] if name not in names))
    return tuple(services.tools.select(names))


def _of_project(tree: Tree, order: Order) -> list[str]:
    """Whoever has a tree of the user's project commits; whoever hands work out merges."""
    if tree.project is None or _only_checks(order.task):
        return []
    own = [COMMIT_TOOL] if order.agent.worktree else []
    phases = order.agent.tools is not None and is_coordinator(order.agent.tools)
    return [*own, MERGE_TOOL] if order.agent.orchestrator and not phases else own


def _only_checks(task: Task | None) -> bool:
    return task is not None and bool(task.checks)


def _outward(services: Services, tree: Tree) -> list[str]:
    """Of a worker that names no tools: those that rules of the user's name. A shell that is kept in is nobody
    else's business, unless a rule forbids it."""
    rules = services.approvals.desk.base.rules
    contained = (tree.sandbox or "") not in UNCONTAINED and not forbids(rules, COMMAND_TOOL)
    return [name for name in OUTWARD_TOOLS if names_tool(rules, name) or (contained and name == COMMAND_TOOL)]


def _where_it_runs(services: Services, order: Order, names: tuple[str, ...]) -> tuple[str, ...]:
    """Of the tools that it has without naming any, those that there are in its process."""
    isolation = (order.task.isolation if order.task else None) or order.agent.isolation
    worker = services.workers.get(isolation)
    return names if worker is None else tuple(name for name in names if name in worker.tools)


def _with_memory(names: tuple[str, ...], agent: Agent) -> tuple[str, ...]:
    """The orchestrator has a memory, a worker only if its definition says `memory: true` (SPEC I1)."""
    if agent.memory or (agent.orchestrator and agent.tools is None):
        return (*names, *(name for name in MEMORY_TOOLS if name not in names))
    if agent.orchestrator:
        return names
    return tuple(name for name in names if name not in MEMORY_TOOLS)


def _input(order: Order, started: RunStarted, workspace: Workspace, header: str) -> str:
    """The user's message as it is; a task with the headers of SPEC D1. In a sandbox there is no delivery
    directory: artifacts are named only."""
    headers = [header] if header else []
    if order.task is None or not (order.task.structured or order.task.seat):
        return "\n\n".join([*headers, order.text])
    headers.insert(0, f"[Task workspace: {workspace.shown_dir}]")
    if not started.sandbox:
        headers.insert(1, f"[Shared delivery dir: {workspace.delivery_dir}]")
    if order.task.inputs:
        workspace.grant(order.task.inputs)
        paths = ", ".join(map(workspace.shown, order.task.inputs))
        headers.append(f"[Input artifacts: {paths}]")
    return "\n\n".join([*headers, order.text])
