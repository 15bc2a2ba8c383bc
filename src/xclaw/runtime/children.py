"""The children of one run: admitted, named, started once, their results taken once."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from xclaw.contracts.agents import Agent, Isolation
from xclaw.contracts.artifacts import Pointer
from xclaw.contracts.errors import SpawnRefused
from xclaw.contracts.events import ChildEnded, ChildSpawned, Event, MessageAdded, Warned
from xclaw.contracts.ids import (
    child_run_id,
    debate_session,
    delegate_session,
    pipeline_session,
    teammate_session,
)
from xclaw.contracts.results import Result
from xclaw.contracts.spawn import Child
from xclaw.contracts.tasks import Task
from xclaw.contracts.teams import Seat
from xclaw.contracts.workspaces import Workspace
from xclaw.runtime.cancelling import cancel_with_all_below
from xclaw.runtime.clocks import stopped_clock
from xclaw.runtime.mail import Mailbox
from xclaw.runtime.notifications import notification
from xclaw.runtime.services import Services
from xclaw.runtime.team import Place, Team
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
        self._mailbox = Mailbox()
        self.team: Team | None = None
        self.place: Place | None = None
        """Of a member in its team."""
        self.max_turns = 0

    def start(self, call_id: str, task: Task, *, background: bool) -> Child:
        """The child of (call, key): the one that exists, else a new one if the tree admits it."""
        spawned = self._spawned(call_id, task.key)
        if spawned is None:
            spawned = self._admit(call_id, task, background)
        child = self._launch(self.node, spawned)
        if background:
            self._watch(child)
        return child

    async def ask_above(self, call_id: str, task: Task) -> None:
        """In a worker process: have the runtime admit a new child, since others start some too. Raises
        `SpawnRefused`."""
        if self.tree.above is not None and self._spawned(call_id, task.key) is None:
            await self.tree.above(self.node, task.agent, task.text)

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
        if spawned.task.seat is not None:
            self.tree.team(self.node, spawned.call_id, spawned.task.seat.strategy).check()

    @property
    def background(self) -> Mapping[str, tuple[Child, asyncio.Task[Result]]]:
        return self._background

    def steer(self, message: MessageAdded) -> None:
        """Have the run read what is said to it meanwhile, at its next turn; journaled when it does."""
        self._mailbox.put(message)

    def unread(self) -> list[MessageAdded]:
        """What was said to the run and not handed to it, for whoever drives it elsewhere."""
        return self._mailbox.empty()

    def take(self) -> bool:
        """Hand to the run what has arrived: what was said to it, and background children that have ended."""
        steering = self._mailbox.take()
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

    def sit(self, seat: Seat, team_call_id: str) -> None:
        """Take a place in the team of this run's lead."""
        lead = self.node.parent
        assert lead is not None
        in_turns = seat.strategy == "round-robin"
        self.place = Place(seat, lambda: self._mailbox.has_mail(from_above=in_turns), self._mailbox.changed)
        self.team = self.tree.team(lead, team_call_id, seat.strategy)
        self.team.join(self.place)

    async def wait(self) -> bool:
        if self._has_turns and self._mailbox.has_mail():
            return True
        if not self._background:
            return self._has_turns and await self._wait_for_team()
        steered = asyncio.get_running_loop().create_task(self._mailbox.changed.wait())
        ends = [task for _, task in self._background.values()]
        try:
            await self.wait_idle([*ends, steered], None, asyncio.FIRST_COMPLETED)
        finally:
            steered.cancel()
        return True

    @property
    def _has_turns(self) -> bool:
        """Whether the run may go on: who has none left ends with what it answered."""
        state = self.node.log.state
        return state.turn - min(state.waits, self.max_turns) < self.max_turns

    async def _wait_for_team(self) -> bool:
        """Keep a member that has answered, without a worker's place and its time going on."""
        if self.team is None or self.place is None or self.place.seat.strategy == "sequential":
            return False
        with stopped_clock(self.node):
            async with without_slot(self.tree, self.node):
                return await self.team.answered(self.place)

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
        ending = [
            (child, loop.create_task(cancel_with_all_below(self.tree, child, reason)))
            for child, _ in self._background.values()
        ]
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
        isolation = refuse_isolation(self.services, self.services.agents.get(agent), task.isolation)
        if task.seat is not None and isolation not in ("local", "teammate"):
            raise SpawnRefused(
                f"{agent} asks for `isolation: {isolation}`; a team's members share one process"
            )
        self.tree.admit(self.node, _counted(state.children.values(), task))
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
            session_of(self.node.log.address.session_id, agent, task, task_id),
            task_id,
            replace(task, agent=agent, isolation=isolation, onto=task.onto or self._onto()),
            background,
        )
        self.node.log.record(spawned)
        if self.tree.slots.locked():
            self.node.log.record(Warned("queued", f"{agent} waits for a free place"))
        return spawned

    def _onto(self) -> str:
        """Where in the user's project a new child begins: at the last merge, else where this run did."""
        state = self.node.log.state
        started = state.started_event
        return state.merged or (started.task.onto if started and started.task else "")

    def _check_inputs(self, inputs: tuple[Pointer, ...]) -> None:
        """A run hands on only what it may read itself."""
        for pointer in inputs:
            if pointer.path not in self.node.log.state.artifacts:
                raise SpawnRefused(f"{pointer.path} is not an artifact of this session")


def _counted(children: Iterable[ChildSpawned], task: Task) -> int:
    """How many children count towards the width: a workflow's are bounded by its own quote."""
    if task.mode == "workflow":
        return 0
    return sum(spawned.task.mode != "workflow" for spawned in children)


def refuse_isolation(services: Services, agent: Agent | None, wanted: Isolation | None) -> Isolation:
    """The kind of sub-agent that it will be. Raises `SpawnRefused`.

    Running an agent with less isolation than it asks for would be worse than not running it.
    """
    own = agent.isolation if agent is not None else "local"
    isolation = wanted if wanted is not None and own == "local" else own
    if isolation in services.launchers:
        return isolation
    kinds = ", ".join(services.launchers)
    asker = f"{agent.name} asks for" if agent is not None and wanted is None else "the call asks for"
    raise SpawnRefused(f"{asker} `isolation: {isolation}`; there is {kinds}")


def session_of(parent_session: str, agent: str, task: Task, task_id: str) -> str:
    match task.mode:
        case "debate":
            return debate_session(parent_session, agent, task_id)
        case "pipeline":
            return pipeline_session(parent_session, task.step, task_id)
        case "team":
            return teammate_session(parent_session, task.seat.team if task.seat else "", agent, task_id)
        case "delegate" | "spawn" | "workflow":
            return delegate_session(parent_session, agent, task_id)
