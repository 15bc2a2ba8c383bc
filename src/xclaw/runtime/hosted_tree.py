"""The runs of one worker, as the runtime keeps them: events come in, are checked, journaled and shown."""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress

from xclaw.contracts.agents import Limits
from xclaw.contracts.errors import JournalError
from xclaw.contracts.events import ChildEnded, ChildSpawned, Entry, Event, MailSent, RunEnded
from xclaw.contracts.journal import Committed
from xclaw.loop.state import RunState, fold
from xclaw.runtime.assembly import Live, account
from xclaw.runtime.hosted_checks import Checks
from xclaw.runtime.hosted_runs import HostedChild, HostedRun, Misbehaved
from xclaw.runtime.mail import as_message
from xclaw.runtime.services import Services
from xclaw.runtime.stream import RunLog
from xclaw.runtime.tree import Node, Tree

logger = logging.getLogger(__name__)

StopRun = Callable[[str, str], None]


class HostedTree:
    """A run that a worker drives and everything that it starts there."""

    def __init__(self, services: Services, tree: Tree, live: Live, checks: Checks, stop: StopRun) -> None:
        """`stop` has the worker end one of its runs."""
        self._services = services
        self._tree = tree
        self._checks = checks
        self._stop = stop
        self._top = HostedRun(live.node, live.parts.workspace)
        self.runs: dict[str, HostedRun] = {live.node.run_id: self._top}

    def living(self, run_id: str) -> HostedRun:
        """A run for which the worker may speak. Raises `Misbehaved` for any other."""
        run = self.runs.get(run_id)
        if run is None or run.ended.is_set():
            raise Misbehaved(f"it spoke for a run that is not its own ({run_id[:40]!r})")
        return run

    def adopt(self, entries: Sequence[Entry], committed: Committed) -> HostedRun:
        """Journal what the worker recorded in one of its runs. Raises `Misbehaved`, `ValueError`,
        `JournalError`."""
        if not entries or any(entry.address != entries[0].address for entry in entries):
            raise Misbehaved("it recorded nothing, or events of several runs as one")
        address = entries[0].address
        run = self.runs.get(address.run_id) or self._begun(entries[0])
        if run.ended.is_set() or address != run.node.log.address:
            raise Misbehaved("it recorded something of a run that has ended, or is not its own")

        def check(event: Event) -> None:
            if run.node.log.recorded:
                self._checks.check(run, event, self.runs)
            self._note(run, event)

        run.node.log.adopt(entries, committed, check)
        return run

    def recall(self, own: Sequence[Entry], runs: dict[str, list[Entry]]) -> None:
        """What a crash left: the run's own entries, and those of the runs below, parents first."""
        for entry in [*own, *(entry for entries in runs.values() for entry in entries)]:
            if isinstance(entry.event, MailSent):  # it may not have been read yet
                self._checks.messages[entry.event.mail_id] = as_message(entry.event)
        for entries in runs.values():
            parent = self.runs.get(entries[0].address.parent_id)
            state = fold(entries)
            started = state.started_event
            if parent is None or started is None:
                continue
            run = self._add(entries, state, started.limits, parent.node)
            if state.ended is not None:
                run.has_ended(state.ended.result)
            else:
                run.node.ledger.charge(state.spend + self._tree.spent_by_ended(state))

    def close(self) -> None:
        """Nothing of the worker's goes on: leave no run below the top open, no call unrecorded, no result
        untaken. A journal that fails leaves them to whoever takes the tree up."""
        with suppress(JournalError):
            for run in sorted(self.runs.values(), key=lambda run: -run.node.depth):
                if run.ended.is_set():
                    continue
                run.settle()
                run.take_results(self.runs)
                if run is not self._top:
                    run.close("cancelled", self._tree.cancelled or "its parent ended")
        for run in self.runs.values():
            run.ended.set()
            self._tree.announced.difference_update(run.node.log.state.children)

    def _begun(self, entry: Entry) -> HostedRun:
        """A run that the worker has started below another of its own."""
        address = entry.address
        parent = self.runs.get(address.parent_id)
        spawned = parent.node.log.state.children.get(address.run_id) if parent else None
        if parent is None or spawned is None:
            raise Misbehaved(f"it recorded something of a run that is not its own ({address.run_id[:40]!r})")
        workspace = self._services.workspaces.open(spawned.task.agent, spawned.task_id, address.run_id)
        started = self._checks.start(entry, parent, spawned, workspace)
        return self._add([entry], RunState(), started.limits, parent.node)

    def _add(self, entries: Sequence[Entry], state: RunState, limits: Limits, parent: Node) -> HostedRun:
        address = entries[0].address
        spawned = parent.log.state.children[address.run_id]
        agent, task_id = spawned.task.agent, spawned.task_id
        log = RunLog(self._tree.stream, address, state, len(entries) if state.started_event else 0)
        ledger = account(self._services, limits, parent)
        node = Node(address.run_id, agent, parent.depth + 1, log, ledger, parent, task_id)
        self._tree.nodes[node.run_id] = node
        self._tree.announced.discard(node.run_id)
        workspace = self._services.workspaces.open(agent, task_id, address.run_id)
        run = self.runs[node.run_id] = HostedRun(node, workspace)
        node.child = HostedChild(run, self._stop)
        return run

    def _note(self, run: HostedRun, event: Event) -> None:
        """What follows from an event outside the run's own stream."""
        match event:
            case RunEnded():
                run.has_ended(event.result)
            case ChildSpawned(child_run_id=child_run_id):
                self._tree.announced.add(child_run_id)
            case ChildEnded(child_run_id, result):
                self._tree.announced.discard(child_run_id)
                task = run.node.log.state.children[child_run_id].task
                self._tree.attempts.note(task.agent, task.text, result.outcome, succeeded=result.succeeded)
            case MailSent() if run is self._top and event.to_run_id not in run.node.log.state.children:
                parent = run.node.parent
                if parent is not None and parent.steer is not None:
                    parent.steer(as_message(event))
            case _:
                pass
