"""Driving the runs of a tree: from ready to ended, whatever happens on the way."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import cast

from xclaw.contracts.agents import Isolation
from xclaw.contracts.errors import JournalError, ToolFailed, UsageError
from xclaw.contracts.events import ChildSpawned, NotificationQueued, RunEnded, RunResumed
from xclaw.contracts.results import Result
from xclaw.contracts.spawn import Birth, Child
from xclaw.loop.loop import run_loop
from xclaw.loop.parts import Ending
from xclaw.loop.state import RunState, fold
from xclaw.runtime.assembly import Lineage, Live, begin, set_deadline, take_up
from xclaw.runtime.gate import voided
from xclaw.runtime.hosting import Hosting
from xclaw.runtime.orders import child_order
from xclaw.runtime.projects import Handed, last_message
from xclaw.runtime.sandboxing import lost_sandbox
from xclaw.runtime.scopes import enter_scope
from xclaw.runtime.services import Services
from xclaw.runtime.shield import to_the_end
from xclaw.runtime.stream import RunLog
from xclaw.runtime.tree import Node, Tree, give_slot, take_slot

logger = logging.getLogger(__name__)


class EndedChild:
    """A `Child` whose end is known already."""

    def __init__(self, spawned: ChildSpawned, result: Result) -> None:
        self.run_id = spawned.child_run_id
        self.session_id = spawned.child_session_id
        self.task_id = spawned.task_id
        self._result = result

    async def result(self) -> Result:
        return self._result

    async def cancel(self, reason: str) -> Result:
        return self._result


class Driver:
    """Starts, takes up and ends the runs of one tree. Owns no state beside the tree's."""

    def __init__(self, services: Services, tree: Tree) -> None:
        self.services = services
        self.tree = tree

    def launch_child(self, parent: Node, spawned: ChildSpawned) -> Child:
        """The child that the event names: running, ended, interrupted, or not started yet."""
        node = self.tree.nodes.get(spawned.child_run_id)
        if node is not None and node.child is not None:
            return node.child
        entries = self.tree.past.get(spawned.child_run_id, [])
        state = fold(entries) if entries else None
        if state is not None and state.ended is not None:
            return EndedChild(spawned, state.ended.result)
        try:
            if state is not None:
                live = self.take_up(RunLog(self.tree.stream, entries[0].address, state, len(entries)), parent)
            else:
                live = self._new(parent, spawned)
        except UsageError as failure:
            return EndedChild(spawned, Result("error", reason=str(failure)))
        live.node.background = spawned.background
        return self.launch(live, spawned.task_id)

    def launch(self, live: Live, task_id: str) -> Child:
        node = live.node
        isolation = isolation_of(live)
        birth = Birth(node.run_id, node.log.address.session_id, task_id, node.agent)
        node.child = self.services.launchers[isolation].launch(birth, lambda: self.drive(live))
        return node.child

    def take_up(self, log: RunLog, parent: Node | None) -> Live:
        """A run that was interrupted, from its folded state."""
        live = self.recall(log, parent)
        log.record(RunResumed(self.services.owner))
        if isolation_of(live) not in self.services.workers:
            live.children.reattach()
        return live

    def recall(self, log: RunLog, parent: Node | None) -> Live:
        """A run as it stands in the journal. What it spent counts again in the ledger."""
        live = take_up(self.services, self.tree, log, Lineage(parent, self.launch_child))
        live.node.ledger.charge(log.state.spend + self.tree.spent_by_ended(log.state))
        return live

    def _new(self, parent: Node, spawned: ChildSpawned) -> Live:
        order = child_order(self.services, self.tree, parent, spawned)
        return begin(self.services, self.tree, order, RunState(), Lineage(parent, self.launch_child))

    async def drive(self, live: Live) -> Result:
        """Run to the end. Never raises: what goes wrong is the result. Cancelling it ends the run."""
        node = live.node
        clock = asyncio.get_running_loop().time
        began = clock()
        enter_scope(self.services, self.tree, node)
        isolation = isolation_of(live)
        if isolation in self.services.workers:
            hosting = Hosting(self.services, self.tree, live, self.services.workers[isolation])
            ending = await self.run(live, hosting.run)
        else:
            ending = await self.run(live, lambda: run_loop(live.parts))
        try:
            result = await to_the_end(self._end(live, ending, began))
        except JournalError as failure:
            reason = f"the journal failed: {failure}"
            took = clock() - began
            spent = node.ledger.spent
            result = Result("interrupted", ending.text, reason=reason, spend=spent, duration_s=took)
        node.result = result
        return result

    async def run(self, live: Live, loop: Callable[[], Awaitable[Ending]]) -> Ending:
        """Have `loop` go on with the run within its time, in a worker's place. Never raises: what goes
        wrong is the ending. Cancelling it ends the loop, which answers "cancelled"."""
        node, parts = live.node, live.parts
        started = parts.state.started_event
        timeout_s = started.limits.timeout_s if started else None
        try:
            await asyncio.sleep(0)  # a cancellation that is older than the run ends it here
            await take_slot(self.tree, node)
            if self.tree.cancelled:
                return Ending("cancelled", "", self.tree.cancelled)
            set_deadline(live, timeout_s)
            async with asyncio.timeout_at(node.deadline) as node.timer:
                if live.project is not None:
                    await live.project.prepare()
                return await loop()
        except TimeoutError:
            limit = f"{timeout_s:g} s" if timeout_s is not None else "its parent's time"
            return Ending("timeout", _so_far(live), f"stopped after {limit}")
        except asyncio.CancelledError as cancel:
            reason = self.tree.cancelled or (str(cancel.args[0]) if cancel.args else "cancelled")
            return Ending("cancelled", _so_far(live), reason)
        except Exception as failure:
            if (broken := _journal_failure(failure)) is not None:  # no fault of the run's
                return Ending("interrupted", _so_far(live), f"the journal failed: {broken}")
            if (lost := lost_sandbox(failure)) is not None:
                return Ending("error", _so_far(live), str(lost))
            if isinstance(failure, ToolFailed | UsageError):  # no tree of the project
                return Ending("error", _so_far(live), str(failure))
            logger.exception("run %s failed", node.run_id)
            return Ending("error", _so_far(live), f"internal error: {type(failure).__name__}: {failure}")
        finally:
            node.timer = None
            await to_the_end(live.sandbox.close())
            give_slot(self.tree, node)

    async def _end(self, live: Live, ending: Ending, began: float) -> Result:
        """Record the end, and the notification to the parent in the same transaction."""
        node, state = live.node, live.node.log.state
        await live.children.end_all(self.tree.cancelled or f"its parent ended: {ending.outcome}")
        pointers = dict(ending.pointers) or {p.path.rsplit("/", 1)[-1]: p for p in state.delivered}
        handed = await self._handed(live, ending)
        result = Result(
            ending.outcome,
            ending.text,
            ending.summary_data,
            {**pointers, **handed.pointers},
            "; ".join(part for part in (ending.reason, handed.trouble) if part),
            ending.structured,
            node.ledger.spent,
            asyncio.get_running_loop().time() - began,
            tuple(state.check_runs.runs),
            handed.branch,
        )
        artifacts = tuple(state.delivered if node.parent else self.tree.delivered())
        ended = RunEnded(result, ending.outcome, state.turn, artifacts)
        if node.parent is not None and node.background:
            node.log.record(*voided(state), ended, NotificationQueued(node.parent.run_id))
        else:
            node.log.record(*voided(state), ended)
        if node.parent is None:
            # A child need not wait: whatever its parent records after it cannot be durable before it.
            await node.log.durable()
        return result

    async def _handed(self, live: Live, ending: Ending) -> Handed:
        """What the run did to the user's project, in its branch. A tree that the next process goes on with is
        left as it is."""
        if live.project is None or self.tree.stream.frozen:
            return Handed()
        message = last_message(live.parts.state, ending.outcome, ending.reason)
        return await live.project.finish(message, is_root=live.node.parent is None)


def isolation_of(live: Live) -> Isolation:
    """The kind of sub-agent that a run is: what its task says, of a root what its agent says."""
    task = live.parts.task
    return (task.isolation if task is not None else live.parts.agent.isolation) or "local"


def _journal_failure(failure: Exception) -> JournalError | None:
    """What made it impossible to record, alone or among the failures of calls that ran at once."""
    if isinstance(failure, JournalError):
        return failure
    if isinstance(failure, ExceptionGroup):
        parts = cast("ExceptionGroup[Exception]", failure).exceptions
        return next((found for part in parts if (found := _journal_failure(part))), None)
    return None


def _so_far(live: Live) -> str:
    """What a stopped run had: the answer it was writing, else its findings."""
    return live.parts.unfinished or live.parts.state.findings()
