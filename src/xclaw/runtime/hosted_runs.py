"""What the runtime keeps of the runs that a worker drives: state, account and calls still to be recorded.

The worker's own account bounds what it does; this one is the truth. What a model call cost is charged
here, when it is known, and has to come back in the worker's next events: an account that does not agree
with the journal is a worker that lies, or one that has died, for which the runtime records it.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from xclaw.contracts.events import AttemptFailed, ChildEnded, MessageAdded, RunEnded
from xclaw.contracts.results import Outcome, Result
from xclaw.contracts.usage import Spend, Usage, spend_of_call
from xclaw.contracts.workspaces import Workspace
from xclaw.runtime.gate import voided
from xclaw.runtime.notifications import notification
from xclaw.runtime.tree import Node

UNBORN = Result("cancelled", reason="the worker ended before it had started this")
CANCEL_WAIT_S = 5.0
LEFT_OPEN = Result("interrupted", reason="it is left to whoever takes the tree up")
DIED = "the worker ended before it could record this call"


class Misbehaved(Exception):
    """A worker said what no worker of ours says. The text says what; nothing of it is believed."""


@dataclass(frozen=True, slots=True)
class Owed:
    """A model call that has to be recorded: its answer or a failed attempt, both charged; or one that was
    cut off, of which the worker says how much of it it had."""

    kind: Literal["answered", "failed", "cut"]
    model: str
    usage: Usage
    cost_usd: float | None

    @property
    def spend(self) -> Spend:
        return spend_of_call(self.usage, self.cost_usd)


@dataclass(slots=True, eq=False)
class HostedRun:
    """One run of a worker."""

    node: Node
    workspace: Workspace
    owed: list[Owed] = field(default_factory=list[Owed])
    asking: bool = False
    """A model call of it goes on."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def take_answer(self, usage: Usage, cost_usd: float | None, model: str | None) -> None:
        """An answer that the worker recorded. Raises `Misbehaved` for one that it did not get."""
        for owed in self.owed:
            known = model is None or owed.model == model
            if owed.kind == "answered" and known and (owed.usage, owed.cost_usd) == (usage, cost_usd):
                self.owed.remove(owed)
                return
        raise Misbehaved("it recorded a model's answer that it had not been given")

    def take_failure(self, usage: Usage, cost_usd: float | None) -> None:
        """A failed or cut off attempt that the worker recorded. Raises `Misbehaved` for one that was not."""
        for owed in self.owed:
            if owed.kind == "failed" and (owed.usage, owed.cost_usd) == (usage, cost_usd):
                self.owed.remove(owed)
                return
        for owed in self.owed:
            if (
                owed.kind != "failed"
                and usage.estimated
                and 4 * usage.input_tokens >= owed.usage.input_tokens
            ):
                self.owed.remove(owed)
                if owed.kind == "answered":  # the answer crossed with the cancellation
                    self.node.ledger.charge(owed.spend.negative)
                self.node.ledger.charge(spend_of_call(usage, cost_usd))
                return
        raise Misbehaved("it recorded a failed model call that it had not made")

    def settle(self) -> None:
        """Record what the worker did not come to record. Raises `JournalError`."""
        state = self.node.log.state
        for owed in self.owed:
            if owed.kind == "cut":
                self.node.ledger.charge(owed.spend)
            self.node.log.record(
                AttemptFailed(state.turn, owed.model, DIED, None, owed.usage, owed.cost_usd, "", None)
            )
        self.owed = []

    def take_results(self, runs: dict[str, "HostedRun"]) -> None:
        """Hand it the results of its children that it has not taken: nothing is lost with a worker."""
        state = self.node.log.state
        for run_id, spawned in list(state.children.items()):
            child = runs.get(run_id)
            result = child.node.result if child is not None else UNBORN
            if result is not None and run_id not in state.child_results:
                told = MessageAdded(notification(spawned, result), "notification")
                self.node.log.record(ChildEnded(run_id, result), told)

    def close(self, outcome: Outcome, reason: str) -> None:
        """End a run below the worker's own that the worker left open. Raises `JournalError`."""
        state = self.node.log.state
        result = Result(outcome, state.findings(), reason=reason, spend=self.node.ledger.spent)
        self.node.log.record(*voided(state), RunEnded(result, outcome, state.turn, tuple(state.delivered)))
        self.has_ended(result)

    def has_ended(self, result: Result) -> None:
        self.node.result = result
        self.ended.set()


class HostedChild:
    """The `Child` of a run that a worker started by itself, for whoever wants to end it from here.

    `stop` has the worker end it; if the worker does not, its own end does.
    """

    def __init__(self, run: HostedRun, stop: Callable[[str, str], None]) -> None:
        self._run = run
        self._stop = stop

    @property
    def run_id(self) -> str:
        return self._run.node.run_id

    @property
    def session_id(self) -> str:
        return self._run.node.log.address.session_id

    @property
    def task_id(self) -> str:
        return self._run.node.task_id

    async def result(self) -> Result:
        await self._run.ended.wait()
        return self._run.node.result or LEFT_OPEN

    async def cancel(self, reason: str) -> Result:
        """Waits at most `CANCEL_WAIT_S` for its end; a run that does not end is said to be late."""
        if not self._run.ended.is_set():
            self._stop(self.run_id, reason)
        try:
            async with asyncio.timeout(CANCEL_WAIT_S):
                return await self.result()
        except TimeoutError:
            return Result("cancelled", reason=f"late: it has not ended {CANCEL_WAIT_S} s after: {reason}")
