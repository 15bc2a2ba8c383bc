"""The front door of the runtime: start, watch, cancel and take up trees of runs."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from xclaw.contracts.agents import Agent, Limits
from xclaw.contracts.errors import SpawnRefused, UsageError
from xclaw.contracts.events import Address, MessageAdded, RunStarted
from xclaw.contracts.ids import new_run_id, task_id_from
from xclaw.contracts.journal import RunRow
from xclaw.contracts.memory import whose_session
from xclaw.contracts.messages import Caller, Message
from xclaw.contracts.notifications import Notification
from xclaw.contracts.projects import Project
from xclaw.contracts.results import Result
from xclaw.contracts.routing import Route
from xclaw.contracts.sandbox import BackendName
from xclaw.contracts.spawn import Child
from xclaw.loop.state import RunState, fold
from xclaw.runtime.approvals import Approvals
from xclaw.runtime.assembly import Lineage, begin
from xclaw.runtime.cancelling import cancel_with_all_below
from xclaw.runtime.children import refuse_isolation
from xclaw.runtime.driver import Driver
from xclaw.runtime.notifications import from_outside
from xclaw.runtime.orders import Brought, Order
from xclaw.runtime.recovery import Closing, close_interrupted, close_tree
from xclaw.runtime.sandboxing import backend_of, refuse_weaker
from xclaw.runtime.services import Services
from xclaw.runtime.sessions import Sessions
from xclaw.runtime.stream import Receive, RunLog, TreeStream
from xclaw.runtime.tree import NodeEnd, Tree

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One message for one agent. Fields left alone take the settings' values."""

    text: str
    session_id: str
    agent: str = "orchestrator"
    channel: str = "cli"
    models: tuple[str, ...] = ()
    """The fallback chain; empty: the agent's, else the settings'."""
    limits: Limits = Limits()
    dialect: str | None = None
    worker_timeout_s: float | None = None
    caller: Caller = "user"
    message_id: str = ""
    """Of the channel's message that this is, if it came by a channel."""
    route: Route | None = None
    """How it came to this agent."""
    brought: Brought = Brought()
    project: str | None = None
    """The user's directory to work on; empty: none, None: what the settings say."""

    @classmethod
    def from_message(cls, message: Message) -> "RunRequest":
        """What a channel received (SPEC A2); `dataclasses.replace` adds what its client chose beside it."""
        return cls(
            message.content,
            message.session_id,
            channel=message.channel,
            caller=message.caller,
            message_id=message.id,
        )


def _nobody(root_id: str) -> None:
    """Nobody wants to know that a root ended."""


class RunHandle:
    """A root run that goes on. Dropping the handle does not stop it."""

    def __init__(self, tree: Tree, child: Child) -> None:
        self._tree = tree
        self._child = child

    @property
    def run_id(self) -> str:
        return self._child.run_id

    @property
    def root_id(self) -> str:
        return self._tree.root_id

    @property
    def session_id(self) -> str:
        return self._tree.session_id

    def subscribe(self, receive: Receive) -> Callable[[], None]:
        """Every entry of the tree from now on: stored ones once durable, streamed text at once."""
        return self._tree.stream.subscribe(receive)

    async def result(self) -> Result:
        """The end of the run, durable. Cancelling the wait does not cancel the run."""
        return await self._child.result()

    def steer(self, text: str, message_id: str = "") -> None:
        """Have the root read `text` at its next turn. If it has none, nobody does: the message then
        stays as it was, pending."""
        root = self._tree.nodes.get(self.root_id)
        if root is not None and root.steer is not None:
            root.steer(MessageAdded(text, "user", message_id))

    def notify(self, told: Notification, channel: str, message_id: str = "") -> None:
        """Have the root read at its next turn, as data, what a channel says of a task elsewhere."""
        root = self._tree.nodes.get(self.root_id)
        if root is not None and root.steer is not None:
            root.steer(MessageAdded(from_outside(told, channel), "notification", message_id))

    async def cancel(self, reason: str) -> list[NodeEnd]:
        """End the tree; answers how each of its runs ended, children first. Repeatable."""
        self._tree.cancelled = self._tree.cancelled or reason
        await cancel_with_all_below(self._tree, self._child, reason)
        return self._tree.ends()


class Runs:
    """All trees of this process. One at a time per session, any number of sessions at once."""

    def __init__(
        self,
        services: Services,
        sessions: Sessions,
        models: tuple[str, ...],
        on_ended: Callable[[str], None] = _nobody,
    ) -> None:
        """`on_ended` is told each root whose end is durable; it must neither block nor raise."""
        self._services = services
        self._on_ended = on_ended
        self._sessions = sessions
        self._models = models
        self._slots = asyncio.Semaphore(services.settings.max_concurrent)
        self._live: dict[str, tuple[Tree, RunHandle]] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def approvals(self) -> Approvals:
        """What waits for a person, in this process and all others of this home; and the answers."""
        return self._services.approvals

    def subscribe(self, receive: Receive) -> Callable[[], None]:
        """Every entry of every tree of this process from now on, as `RunHandle.subscribe`."""
        watchers = self._services.watchers
        watchers.append(receive)
        return lambda: watchers.remove(receive)

    async def start(self, request: RunRequest) -> RunHandle:
        """Start a run; waits while the session has another.

        Raises `UsageError`, `NoModel`, `SandboxUnavailable`; `SessionBusy` while another process works in the session.
        """
        agent, models = self.check(request)
        backend = await backend_of(self._services.sandboxes)
        await self._enter(request.session_id)
        try:
            state = await self._conversation(request.session_id)
            tree = self._tree(request, new_run_id(), request.models or self._models, backend)
            tree.project = await self._project(request)
            return self._begin(request, tree, (agent, models), state, await self._recalled(request, agent))
        except BaseException:
            self._sessions.leave(request.session_id)
            raise

    def check(self, request: RunRequest) -> tuple[Agent, tuple[str, ...]]:
        """The agent and the models of a request. Raises `UsageError` or `NoModel` as `start` would."""
        agent = self._agent(request)
        models = request.models or agent.models or self._models
        self._services.models(models)
        return agent, models

    async def resume(self, root_id: str) -> RunHandle:
        """Take up a tree whose process died. Raises `UsageError` if there is nothing to take up."""
        row = await self._services.journal.run_row(root_id)
        if row is None:
            raise UsageError(f"there is no run {root_id!r}; `xclaw tasks` lists them")
        if row.root_id != root_id:
            return await self.resume(row.root_id)
        if row.outcome is not None:
            raise UsageError(f"run {root_id} has ended ({row.outcome}); there is nothing to resume")
        if self._services.owner_alive(row.owner):
            raise UsageError(f"run {root_id} is being driven by a living process ({row.owner})")
        backend = await backend_of(self._services.sandboxes)
        first = (await self._services.journal.read_run(root_id))[0].event
        assert isinstance(first, RunStarted)
        refuse_weaker(first, backend)
        await self._enter(row.session_id)
        try:
            return await self._take_up(row, backend)
        except BaseException:
            self._sessions.leave(row.session_id)
            raise

    async def interrupted(self) -> list[RunRow]:
        """Roots that are open and whose process is dead, newest first."""
        rows = await self._services.journal.runs(roots_only=True, open_only=True, limit=10_000)
        return [row for row in rows if not self._services.owner_alive(row.owner)]

    async def cancel(self, run_id: str, reason: str) -> list[NodeEnd]:
        """End a run of this process and everything below it; empty if it is not here."""
        for tree, handle in list(self._live.values()):
            if run_id == tree.root_id:
                return await handle.cancel(reason)
            node = tree.nodes.get(run_id)
            if node is not None and node.child is not None:
                await cancel_with_all_below(tree, node.child, reason)
                return tree.ends(run_id)
        return []

    async def abandon(self, root_id: str, reason: str) -> list[NodeEnd]:
        """End a tree whose process is dead, without doing any more of it."""
        row = await self._services.journal.run_row(root_id)
        if row is None or row.outcome is not None:
            return []
        state = fold(await self._services.journal.read_session(row.session_id))
        ends = await close_tree(self._services, row, state, Closing("cancelled", reason))
        self._on_ended(row.root_id)
        return ends

    async def suspend(self) -> int:
        """Stop driving every tree and leave it open, for the next process to take up where its last
        durable event left it. Answers how many there were. Child processes and HTTP requests end."""
        self._closed = True
        trees = list(self._live.values())
        for tree, handle in trees:
            tree.stream.flush()
            tree.stream.frozen = True
            await handle.cancel("left to the next process")
        if self._ending:
            await asyncio.wait(self._ending)
        return len(trees)

    async def close(self, reason: str = "xclaw is shutting down") -> None:
        """End every tree, then wait until their ends are durable."""
        self._closed = True
        for _, handle in list(self._live.values()):
            await handle.cancel(reason)
        if self._ending:
            await asyncio.wait(self._ending)

    async def _enter(self, session_id: str) -> None:
        """Wait for the session. What was still waiting when the end came is refused."""
        await self._sessions.enter(session_id)
        if self._closed:
            self._sessions.leave(session_id)
            raise UsageError("xclaw is shutting down")

    def _agent(self, request: RunRequest) -> Agent:
        agent = self._services.agents.get(request.agent)
        if agent is None:
            known = ", ".join(["orchestrator", *self._services.agents.roster()])
            raise UsageError(f"unknown agent {request.agent!r}. Known: {known}")
        try:
            refuse_isolation(self._services, agent, None)
        except SpawnRefused as refusal:
            raise UsageError(str(refusal)) from None
        return agent

    async def _project(self, request: RunRequest) -> Project | None:
        """The user's directory as it is now. Raises `UsageError` for one that cannot be worked on."""
        directory = self._services.project_directory if request.project is None else request.project
        projects = self._services.projects
        if not directory or projects is None:
            return None
        return await asyncio.to_thread(projects.open, directory)

    async def _conversation(self, session_id: str) -> RunState:
        """What was said in the session, with what a crash left open closed."""
        entries = await self._services.journal.read_session(session_id)
        state = fold(entries)
        if state.started_event is not None and state.ended is None:
            await close_interrupted(self._services, entries, state)
            self._on_ended(entries[-1].address.root_id)
        return state

    async def _recalled(self, request: RunRequest, agent: Agent) -> str:
        """The memories that fit the message (SPEC I1), as a block of data; empty without any."""
        memory = self._services.memory
        if memory is None or not (agent.orchestrator or agent.memory):
            return ""
        user = whose_session(request.session_id).user
        return await memory.recalled_block(request.text, agent=agent.name, user=user)

    def _begin(
        self,
        request: RunRequest,
        tree: Tree,
        chosen: tuple[Agent, tuple[str, ...]],
        state: RunState,
        recalled: str,
    ) -> RunHandle:
        (agent, models), run_id = chosen, tree.root_id
        address = Address(run_id, run_id, "", request.session_id)
        settings = self._services.settings
        limits = Limits(
            request.limits.max_turns or agent.limits.max_turns,
            request.limits.timeout_s or agent.limits.timeout_s or settings.timeout_s,
            request.limits.max_tokens or agent.limits.max_tokens or settings.budget_tokens,
            request.limits.max_usd or agent.limits.max_usd or settings.budget_usd,
        )
        order = Order(
            agent,
            address,
            request.text,
            request.caller,
            0,
            task_id_from(run_id),
            limits,
            models,
            message_id=request.message_id,
            route=request.route,
            brought=request.brought,
        )
        driver = Driver(self._services, tree)
        live = begin(self._services, tree, order, state, Lineage(None, driver.launch_child))
        if recalled:
            live.node.log.record(MessageAdded(recalled, "runtime"))
        return self._register(tree, driver.launch(live, order.task_id))

    def _tree(
        self, request: RunRequest, root_id: str, models: tuple[str, ...], backend: BackendName | None
    ) -> Tree:
        return Tree(
            root_id,
            request.session_id,
            TreeStream(self._services.journal, self._services.watchers),
            self._services.settings,
            self._slots,
            models,
            request.dialect,
            request.worker_timeout_s,
            request.channel,
            sandbox=backend,
        )

    async def _take_up(self, row: RunRow, backend: BackendName | None) -> RunHandle:
        journal = self._services.journal
        if not await journal.claim(row.root_id, row.owner, self._services.owner):
            raise UsageError(f"run {row.root_id} was taken up by another process just now")
        state = fold(await journal.read_session(row.session_id))
        entries = await journal.read_tree(row.root_id)
        started = state.started_event
        own = [entry for entry in entries if entry.address.run_id == row.root_id]
        assert isinstance(started, RunStarted)
        request = RunRequest("", row.session_id, channel=started.channel, dialect=started.dialect)
        tree = self._tree(request, row.root_id, started.tree_models or started.models, backend)
        tree.project = started.project
        tree.recall(entries)
        driver = Driver(self._services, tree)
        live = driver.take_up(RunLog(tree.stream, own[0].address, state, len(own)), None)
        return self._register(tree, driver.launch(live, started.task_id))

    def _register(self, tree: Tree, child: Child) -> RunHandle:
        handle = RunHandle(tree, child)
        self._live[tree.root_id] = (tree, handle)
        task = asyncio.get_running_loop().create_task(self._forget(tree, child))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return handle

    async def _log_turn(self, tree: Tree, result: Result) -> None:
        """Add the exchange to the agent's transcript (SPEC I2). One that cannot be written stops nobody."""
        memory, root = self._services.memory, tree.nodes.get(tree.root_id)
        started = root.log.state.started_event if root else None
        if memory is None or started is None:
            return
        user = whose_session(tree.session_id).user
        try:
            await memory.log_turn(
                started.input,
                result.text or result.reason,
                agent=started.agent,
                session_id=tree.session_id,
                user=user,
            )
        except UsageError as error:
            logger.warning("the transcript of %s is not written: %s", started.agent, error)

    async def _forget(self, tree: Tree, child: Child) -> None:
        result = await child.result()
        if not tree.stream.frozen:
            self._on_ended(tree.root_id)
        self._live.pop(tree.root_id, None)
        self._sessions.leave(tree.session_id)
        if not tree.stream.frozen:
            await self._log_turn(tree, result)
