"""Ending what a crash left open, when the user goes on or gives it up instead of resuming."""

from collections.abc import Sequence
from dataclasses import dataclass

from xclaw.contracts.errors import SessionBusy, UsageError
from xclaw.contracts.events import ChildEnded, Entry, MessageAdded, RunEnded
from xclaw.contracts.journal import RunRow
from xclaw.contracts.results import Outcome, Result
from xclaw.loop.state import RunState, fold
from xclaw.runtime.gate import voided
from xclaw.runtime.notifications import notification
from xclaw.runtime.projects import Handed, last_message, project_of
from xclaw.runtime.services import Services
from xclaw.runtime.stream import RunLog, TreeStream
from xclaw.runtime.tree import NodeEnd, by_run


@dataclass(frozen=True, slots=True)
class Closing:
    """How open runs are ended."""

    outcome: Outcome
    reason: str


WENT_ON = Closing("interrupted", "interrupted by a crash; the conversation went on without it")


async def close_interrupted(services: Services, session: Sequence[Entry], state: RunState) -> None:
    """End the open root that `state` (the folded session) stands in, and every open run below it.

    Raises `SessionBusy` when the process that drives the run lives.
    """
    row = await services.journal.run_row(session[-1].address.root_id)
    if row is None or row.outcome is not None:
        return
    if services.owner_alive(row.owner):
        raise SessionBusy(
            f"session {row.session_id!r} is busy: another xclaw process works on run {row.run_id}"
        )
    await close_tree(services, row, state, WENT_ON)


async def close_tree(services: Services, row: RunRow, state: RunState, closing: Closing) -> list[NodeEnd]:
    """End every open run of a dead process's tree; `state` is the root's.

    Results of children that had ended are handed to the conversation, so none is lost; nothing is
    called again. Answers how each run stands, children first.
    """
    if not await services.journal.claim(row.root_id, row.owner, services.owner):
        raise UsageError(f"run {row.root_id} was taken up by another process just now")
    stream = TreeStream(services.journal, services.watchers)
    runs = by_run(await services.journal.read_tree(row.root_id))
    own = runs.pop(row.root_id)
    folded = {run_id: fold(entries) for run_id, entries in runs.items()}
    for run_id, child in folded.items():
        if child.ended is None:
            await _record_end(
                services, RunLog(stream, runs[run_id][0].address, child, len(runs[run_id])), closing
            )
    log = RunLog(stream, own[0].address, state, len(own))
    for run_id, spawned in list(state.children.items()):
        ended = folded[run_id].ended if run_id in folded else None
        if run_id not in state.child_results and ended is not None:
            told = MessageAdded(notification(spawned, ended.result), "notification")
            log.record(ChildEnded(run_id, ended.result), told)
    await _record_end(services, log, closing)
    return [_node_end(run_id, child) for run_id, child in [*reversed(folded.items()), (row.root_id, state)]]


async def _record_end(services: Services, log: RunLog, closing: Closing) -> None:
    """What lies in the run's tree of a project is committed first, so that none of it is lost."""
    state = log.state
    handed = await _handed(services, log, closing)
    reason = "; ".join(part for part in (closing.reason, handed.trouble) if part)
    result = Result(
        closing.outcome,
        state.findings(),
        pointers=handed.pointers,
        reason=reason,
        spend=state.spend,
        branch=handed.branch,
    )
    log.record(*voided(state), RunEnded(result, closing.outcome, state.turn, tuple(state.delivered)))
    await log.durable()


async def _handed(services: Services, log: RunLog, closing: Closing) -> Handed:
    started = log.state.started_event
    if started is None or started.project is None:
        return Handed()
    workspace = services.workspaces.open(started.agent, started.task_id, log.address.run_id)
    project = project_of(services.projects, started, log, workspace)
    if project is None:
        return Handed()
    message = last_message(log.state, closing.outcome, closing.reason)
    return await project.finish(message, is_root=not log.address.parent_id)


def _node_end(run_id: str, state: RunState) -> NodeEnd:
    agent = state.started_event.agent if state.started_event else ""
    return NodeEnd(run_id, agent, state.ended.outcome if state.ended else "interrupted")
