"""The `Spawn` port of one tool call: what the call starts, asks, tells and ends among the run's children."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from xclaw.contracts.errors import JournalError, SpawnRefused
from xclaw.contracts.results import Result
from xclaw.contracts.spawn import AgentState, Child
from xclaw.contracts.tasks import Context, Task
from xclaw.runtime.background import context_tokens
from xclaw.runtime.cancelling import cancel_with_all_below
from xclaw.runtime.children import Children
from xclaw.runtime.mail import MAIL_CHARACTERS
from xclaw.runtime.post import Letter, deliver, receivers
from xclaw.runtime.team_ports import LeadPort, MemberPort
from xclaw.runtime.tree import Tree

TASK_CHARACTERS = 120


class CallSpawn:
    """Bound to one call of one run. Implements `contracts.spawn.Spawn`."""

    def __init__(self, children: Children, call_id: str) -> None:
        self._children = children
        self._call_id = call_id

    def agents(self) -> Mapping[str, str]:
        return self._children.services.agents.roster()

    def resolve(self, name: str) -> str | None:
        return self._children.services.agents.resolve(name)

    def model_of(self, agent: str) -> str:
        definition = self._children.services.agents.get(agent)
        chain = (definition.models if definition else ()) or self._children.tree.models
        return chain[0] if chain else ""

    async def start(self, task: Task, *, background: bool = False) -> Child:
        await self._children.ask_above(self._call_id, task)
        return self._children.start(self._call_id, task, background=background)

    async def run(self, task: Task) -> Result:
        children = self._children
        await children.ask_above(self._call_id, task)
        child = children.start(self._call_id, task, background=False)
        waiter = asyncio.get_running_loop().create_task(child.result())
        try:
            await children.wait_idle([waiter], None, asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            reason = children.tree.cancelled or "its parent was stopped"
            result = await _cancel_shielded(children.tree, child, reason)
            with suppress(JournalError):
                children.notify(child, result, self._call_id)
            raise
        result = waiter.result()
        children.acknowledge(child, result, self._call_id)
        return result

    def children(self) -> Mapping[str, Child]:
        return {run_id: child for run_id, (child, _) in self._children.background.items()}

    async def wait(self, run_ids: tuple[str, ...] = (), timeout_s: float | None = None) -> dict[str, Result]:
        children, state = self._children, self._children.node.log.state
        # What this very call took before a crash is its answer still.
        results = {
            run_id: state.child_results[run_id]
            for run_id, call_id in state.taken_by.items()
            if call_id == self._call_id
        }
        background = children.background
        watched = [background[run_id] for run_id in (run_ids or tuple(background)) if run_id in background]
        if watched:
            await children.wait_idle([task for _, task in watched], timeout_s, asyncio.ALL_COMPLETED)
        for child, task in watched:
            if task.done():
                results[child.run_id] = task.result()
                children.acknowledge(child, task.result(), self._call_id)
        return results

    def listing(self) -> list[AgentState]:
        children = self._children
        states: list[AgentState] = []
        for run_id, spawned in children.node.log.state.children.items():
            result = children.node.log.state.child_results.get(run_id)
            node = children.tree.nodes.get(run_id)
            ended = result or (node.result if node else None)
            used = ended.spend if ended else (node.ledger.spent if node else None)
            states.append(
                AgentState(
                    run_id,
                    spawned.task.agent,
                    spawned.task.text.strip().split("\n", 1)[0][:TASK_CHARACTERS],
                    ended.outcome if ended else "running",
                    used.usage.total_tokens if used else 0,
                )
            )
        return states

    async def send(self, to: str, text: str) -> str:
        children = self._children
        if len(text) > MAIL_CHARACTERS:
            raise SpawnRefused(f"a message has at most {MAIL_CHARACTERS} characters; put more into a file")
        mail_id = f"mail_{self._call_id}"
        sent = children.node.log.state.exchange.sent.get(f"{mail_id}_0")
        if sent is not None:  # this very call, before a crash
            return sent.to or sent.to_run_id
        letters = receivers(children, to)
        if letters is None:
            child = self._running(to)
            letters = [Letter(child.run_id, child.run_id, "agent")]
        for number, letter in enumerate(letters):
            deliver(children, letter, f"{mail_id}_{number}", text)
        return ", ".join(letter.name for letter in letters)

    def membership(self) -> MemberPort:
        return MemberPort(self._children, self._call_id)

    def team(self) -> LeadPort:
        return LeadPort(self._children, self._call_id)

    async def stop(self, to: str, reason: str) -> tuple[str, Result]:
        children = self._children
        for run_id, call_id in children.node.log.state.taken_by.items():
            if call_id == self._call_id:  # this very call, before a crash
                return run_id, children.node.log.state.child_results[run_id]
        child = self._running(to)
        result = await cancel_with_all_below(children.tree, child, reason)
        children.acknowledge(child, result, self._call_id)
        return child.run_id, result

    def context_tokens(self, context: Context) -> int:
        return context_tokens(self._children.node.log.state, context)

    def _running(self, to: str) -> Child:
        """The one running background child that `to` means."""
        running = {
            run_id: child for run_id, (child, task) in self._children.background.items() if not task.done()
        }
        spawned = self._children.node.log.state.children
        name = self.resolve(to)
        found = [
            run_id
            for run_id in running
            if run_id == to or (to and run_id.startswith(to)) or (name and spawned[run_id].task.agent == name)
        ]
        if len(found) == 1:
            return running[found[0]]
        ids = ", ".join(f"{run_id} ({spawned[run_id].task.agent})" for run_id in running) or "none"
        what = (
            "is no running agent of yours" if not found else "means several of your agents; use an agent_id"
        )
        raise SpawnRefused(f"{to[:80]!r} {what}. Running: {ids}")


async def _cancel_shielded(tree: Tree, child: Child, reason: str) -> Result:
    """End a child although the caller is being cancelled itself, and perhaps again meanwhile."""
    ending = asyncio.ensure_future(cancel_with_all_below(tree, child, reason))
    while not ending.done():
        with suppress(asyncio.CancelledError):
            await asyncio.shield(ending)
    return ending.result()
