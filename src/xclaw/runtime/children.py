"""The children of one run: admitted, named, started once, their results taken once."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Literal

from xclaw.contracts.agents import Agent
from xclaw.contracts.artifacts import Pointer
from xclaw.contracts.errors import JournalError, SpawnRefused
from xclaw.contracts.events import ChildEnded, ChildSpawned, Event, MessageAdded, Warned
from xclaw.contracts.ids import child_run_id, debate_session, delegate_session, pipeline_session
from xclaw.contracts.results import Result
from xclaw.contracts.spawn import Child
from xclaw.contracts.tasks import Task
from xclaw.contracts.workspaces import Workspace
from xclaw.runtime.notifications import notification
from xclaw.runtime.services import Services
from xclaw.runtime.tree import Node, Tree, without_slot

LaunchChild = Callable[[Node, ChildSpawned], Child]
"""Starts, resumes or finds the child of `node` that the event names."""


class Children:
    """All children of one run, whatever call started them. Also the run's inbox."""

    def __init__(
        self, services: Services, tree: Tree, node: Node, workspace: Workspace, launch: LaunchChild
    ) -> None:
        self.services = services
        self.tree = tree
        self.node = node
        self.workspace = workspace
        self._launch = launch
        self._background: dict[str, tuple[Child, asyncio.Task[Result]]] = {}
        self._steering: list[MessageAdded] = []
        self._steered = asyncio.Event()

    def start(self, call_id: str, task: Task, *, background: bool) -> Child:
        """The child of (call, key): the one that exists, else a new one if the tree admits it."""
        spawned = self._spawned(call_id, task.key)
        if spawned is None:
            spawned = self._admit(call_id, task, background)
        child = self._launch(self.node, spawned)
        if background:
            self._watch(child)
        return child

    def reattach(self) -> None:
        """After a restart: take up every background child whose result was not taken."""
        state = self.node.log.state
        for run_id, spawned in state.children.items():
            if spawned.background and run_id not in state.child_results:
                self._watch(self._launch(self.node, spawned))

    def acknowledge(self, child: Child, result: Result, call_id: str = "", *told: Event) -> None:
        """Take a result: journaled, and its artifacts become readable for this run. Once per child.

        `told` is what the run is told of it, in the same transaction.
        """
        state = self.node.log.state
        if child.run_id in state.child_results:
            return
        spawned = state.children[child.run_id]
        self.node.log.record(ChildEnded(child.run_id, result, call_id), *told)
        self.workspace.grant(tuple(result.pointers.values()))
        self.tree.attempts.note(
            spawned.task.agent, spawned.task.text, result.outcome, succeeded=result.succeeded
        )
        self._background.pop(child.run_id, None)

    @property
    def background(self) -> Mapping[str, tuple[Child, asyncio.Task[Result]]]:
        return self._background

    def steer(self, text: str, message_id: str) -> None:
        """Have the run read what the user says meanwhile, at its next turn; journaled when it does."""
        self._steering.append(MessageAdded(text, "user", message_id))
        self._steered.set()

    def take(self) -> bool:
        """Hand to the run what has arrived: what the user says, and background children that have ended."""
        steering, self._steering = self._steering, []
        self._steered.clear()
        for said in steering:
            self.node.log.record(said)
        ended = [(child, task.result()) for child, task in self._background.values() if task.done()]
        for child, result in ended:
            self.notify(child, result)
        return bool(ended or steering)

    def notify(self, child: Child, result: Result, call_id: str = "") -> None:
        """Take a result and tell the conversation of it, whenever that goes on."""
        spawned = self.node.log.state.children[child.run_id]
        told = MessageAdded(notification(spawned, result), "notification")
        self.acknowledge(child, result, call_id, told)

    async def wait(self) -> bool:
        if not self._background:
            return False
        steered = asyncio.get_running_loop().create_task(self._steered.wait())
        ends = [task for _, task in self._background.values()]
        try:
            await self.wait_idle([*ends, steered], None, asyncio.FIRST_COMPLETED)
        finally:
            steered.cancel()
        return True

    async def wait_idle(
        self,
        tasks: Sequence[asyncio.Task[Result] | asyncio.Task[Literal[True]]],
        timeout_s: float | None,
        when: str,
    ) -> None:
        """Wait for children without holding a worker's place."""
        async with without_slot(self.tree, self.node):
            await asyncio.wait(tasks, timeout=timeout_s, return_when=when)

    async def end_all(self, reason: str) -> None:
        """End the background children, all at once, when the run itself ends early.

        What they had is told in the conversation: the next message of the session finds it there.
        """
        loop = asyncio.get_running_loop()
        ending = [(child, loop.create_task(child.cancel(reason))) for child, _ in self._background.values()]
        if ending:
            await asyncio.wait([task for _, task in ending])
        for child, task in ending:
            self.notify(child, task.result())

    def _watch(self, child: Child) -> None:
        task = asyncio.get_running_loop().create_task(child.result())
        self._background[child.run_id] = (child, task)

    def _spawned(self, call_id: str, key: str) -> ChildSpawned | None:
        for spawned in self.node.log.state.children.values():
            if spawned.call_id == call_id and spawned.task.key == key:
                return spawned
        return None

    def _admit(self, call_id: str, task: Task, background: bool) -> ChildSpawned:
        state = self.node.log.state
        agent = self.services.agents.resolve(task.agent)
        if agent is None:
            known = ", ".join(self.services.agents.roster())
            raise SpawnRefused(f"unknown agent {task.agent[:80]!r}. Available: {known}")
        refuse_isolation(self.services.agents.get(agent))
        self.tree.admit(self.node, len(state.children))
        if self.tree.attempts.is_open(agent, task.text):
            raise SpawnRefused(
                f"{agent} has failed three times at this task; that road is closed. "
                "Change the task, choose another agent, or tell the user."
            )
        self._check_inputs(task.inputs)
        run_id = child_run_id(self.node.run_id, call_id, task.key)
        task_id = self.tree.new_task_id(run_id)
        spawned = ChildSpawned(
            call_id,
            run_id,
            _session_of(self.node.log.address.session_id, agent, task, task_id),
            task_id,
            replace(task, agent=agent),
            background,
        )
        self.node.log.record(spawned)
        if self.tree.slots.locked():
            self.node.log.record(Warned("queued", f"{agent} waits for a free place"))
        return spawned

    def _check_inputs(self, inputs: tuple[Pointer, ...]) -> None:
        """A run hands on only what it may read itself."""
        for pointer in inputs:
            if pointer.path not in self.node.log.state.artifacts:
                raise SpawnRefused(f"{pointer.path} is not an artifact of this session")


class CallSpawn:
    """The `Spawn` port of one tool call."""

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
        return self._children.start(self._call_id, task, background=background)

    async def run(self, task: Task) -> Result:
        children = self._children
        child = children.start(self._call_id, task, background=False)
        waiter = asyncio.get_running_loop().create_task(child.result())
        try:
            await children.wait_idle([waiter], None, asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            result = await _cancel_shielded(child, children.tree.cancelled or "its parent was stopped")
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


async def _cancel_shielded(child: Child, reason: str) -> Result:
    """End a child although the caller is being cancelled itself, and perhaps again meanwhile."""
    ending = asyncio.ensure_future(child.cancel(reason))
    while not ending.done():
        with suppress(asyncio.CancelledError):
            await asyncio.shield(ending)
    return ending.result()


def refuse_isolation(agent: Agent | None) -> None:
    """Running an agent with less isolation than it asks for would be worse than not running it."""
    if agent is not None and agent.isolation != "local":
        raise SpawnRefused(
            f"{agent.name} asks for `isolation: {agent.isolation}` ({agent.source}); this version has "
            "`local` only"
        )


def _session_of(parent_session: str, agent: str, task: Task, task_id: str) -> str:
    match task.mode:
        case "debate":
            return debate_session(parent_session, agent, task_id)
        case "pipeline":
            return pipeline_session(parent_session, task.step, task_id)
        case "delegate" | "spawn":
            return delegate_session(parent_session, agent, task_id)
