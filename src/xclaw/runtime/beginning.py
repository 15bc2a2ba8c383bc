"""What a worker is told at its birth: the run's events so far, and everything it needs to go on from there."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace

from xclaw.contracts.errors import UsageError
from xclaw.contracts.events import Entry
from xclaw.contracts.workers import WorkerKind
from xclaw.runtime.assembly import Live
from xclaw.runtime.services import Services
from xclaw.runtime.tree import Node, Tree, by_run
from xclaw.runtime.wire import WIRE_VERSION, Begin, Past, WireAbove, WireChain, WireEntry, WireError


async def past(services: Services, tree: Tree, live: Live) -> tuple[list[Entry], dict[str, list[Entry]]]:
    """The conversation's entries, and those of the runs below, per run, parents first."""
    node = live.node
    await node.log.durable()
    if node.parent is None:
        own = await services.journal.read_session(tree.session_id)
    else:
        own = await services.journal.read_run(node.run_id)
    if node.log.recorded < 2:  # it has just begun
        return own, {}
    runs = by_run(await services.journal.read_tree(tree.root_id))
    below = {node.run_id}
    for run_id, entries in runs.items():
        if entries[0].address.parent_id in below:
            below.add(run_id)
    return own, {run_id: entries for run_id, entries in runs.items() if run_id in below - {node.run_id}}


def told(own: Iterable[Entry], below: dict[str, list[Entry]]) -> list[Past]:
    lines = [Past(entry=WireEntry.of(entry), own=True) for entry in own]
    return lines + [Past(entry=WireEntry.of(entry), own=False) for run in below.values() for entry in run]


def beginning(services: Services, tree: Tree, live: Live, kind: WorkerKind) -> Begin:
    """Everything but the past."""
    node, parts = live.node, live.parts
    started = parts.state.started_event
    assert started is not None
    agents = {parts.agent.name: parts.agent}
    for name in services.agents.names:
        agent = services.agents.get(name)
        if agent is not None:
            agents[agent.name] = agent
    now = asyncio.get_running_loop().time()
    return Begin(
        version=WIRE_VERSION,
        run=node.run_id,
        seq=node.log.recorded,
        resumed=node.log.recorded > 1,
        above=_above(node),
        session=tree.session_id,
        channel=tree.channel,
        models=tree.models,
        dialect=tree.dialect,
        worker_timeout_s=tree.worker_timeout_s,
        left_s=None if node.deadline is None else node.deadline - now,
        agents=tuple(agents.values()),
        chains=_chains(services, {started.models, tree.models, *(agent.models for agent in agents.values())}),
        settings=services.settings,
        permissions=services.approvals.desk.settings,
        base=services.approvals.desk.base,
        owner=services.owner,
        memory_root=services.memory_root,
        setup=dict(kind.setup),
        script=parts.agent.script,
        sandbox=tree.sandbox,
        project=tree.project,
    )


def _above(node: Node) -> tuple[WireAbove, ...]:
    """Without what the run itself has spent, which the worker counts again."""
    line: list[WireAbove] = []
    own = node.ledger.spent.negative
    above = node.parent
    while above is not None:
        bounds = above.ledger.bounds
        line.append(WireAbove(above.run_id, above.agent, replace(bounds, spent=bounds.spent + own)))
        above = above.parent
    return tuple(reversed(line))


def _chains(services: Services, chains: set[tuple[str, ...]]) -> tuple[WireChain, ...]:
    found: list[WireChain] = []
    for chain in sorted(chains):
        if not chain:
            continue
        try:
            model = services.models(chain)
        except UsageError as failure:
            found.append(WireChain(chain, error=WireError.of(failure)))
        else:
            found.append(WireChain(chain, model.name, model.profile))
    return tuple(found)
