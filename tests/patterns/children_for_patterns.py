"""A `Spawn` whose children are functions, and a context over a real workspace."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from xclaw.contracts.artifacts import Pointer
from xclaw.contracts.errors import SpawnRefused
from xclaw.contracts.events import Event, Warned
from xclaw.contracts.results import Result
from xclaw.contracts.spawn import AgentState, Child
from xclaw.contracts.tasks import Context, Task
from xclaw.contracts.teams import Membership, TeamLead
from xclaw.contracts.tools import ToolContext
from xclaw.workspaces.local import LocalWorkspaces
from xclaw.workspaces.settings import WorkspaceSettings

Worker = Callable[[Task], Result | str | Exception | asyncio.Event]
"""What an agent does with a task: a text is its success, an exception is raised by the spawn, and an
event is waited for before it answers "late"."""


@dataclass(eq=False)
class FunctionChild:
    run_id: str
    task: Task
    running: "asyncio.Task[Result]"
    session_id: str = "s"
    task_id: str = "a1b2c3"

    async def result(self) -> Result:
        await asyncio.wait([self.running])
        return self.running.result()

    async def cancel(self, reason: str) -> Result:
        self.running.cancel()
        await asyncio.wait([self.running])
        return Result("cancelled", reason=reason)


class FunctionSpawn:
    """Runs each task through its agent's function; remembers every task, and what was cancelled."""

    def __init__(self, workers: Mapping[str, Worker], models: Mapping[str, str] | None = None) -> None:
        self._workers = workers
        self._models = models or {}
        self._background: dict[str, FunctionChild] = {}
        self.tasks: list[Task] = []
        self.cancelled: list[str] = []
        self.mail: list[tuple[str, str]] = []
        self.started = asyncio.Event()

    def agents(self) -> Mapping[str, str]:
        return dict.fromkeys(self._workers, "")

    def resolve(self, name: str) -> str | None:
        folded = name.strip().casefold()
        return folded if folded in self._workers else None

    def model_of(self, agent: str) -> str:
        return self._models.get(agent, f"test:{agent}")

    async def start(self, task: Task, *, background: bool = False) -> Child:
        if task.text == "refuse":
            raise SpawnRefused("no more of this")
        self.tasks.append(task)
        running = asyncio.get_running_loop().create_task(self._answer(task))
        child = FunctionChild(f"c{len(self.tasks)}", task, running)
        if background:
            self._background[child.run_id] = child
        return child

    async def run(self, task: Task) -> Result:
        if task.text == "refuse":
            raise SpawnRefused("no more of this")
        self.tasks.append(task)
        try:
            return await self._answer(task)
        except asyncio.CancelledError:
            self.cancelled.append(task.key)
            raise

    def listing(self) -> list[AgentState]:
        return [
            AgentState(run_id, child.task.agent, child.task.text, "running", 0)
            for run_id, child in self._background.items()
        ]

    async def send(self, to: str, text: str) -> str:
        if to not in self._background:
            raise SpawnRefused(f"{to} is no running agent of yours")
        self.mail.append((to, text))
        return to

    async def stop(self, to: str, reason: str) -> tuple[str, Result]:
        if to not in self._background:
            raise SpawnRefused(f"{to} is no running agent of yours")
        return to, await self._background.pop(to).cancel(reason)

    def membership(self) -> Membership:
        raise SpawnRefused("you are in no team")

    def team(self) -> TeamLead:
        raise SpawnRefused("this call has started no team")

    def context_tokens(self, context: Context) -> int:
        return {"none": 0, "files": 0, "brief": 100, "fork": 1_000}[context]

    def children(self) -> Mapping[str, Child]:
        return dict(self._background)

    async def wait(self, run_ids: tuple[str, ...] = (), timeout_s: float | None = None) -> dict[str, Result]:
        wanted = [run_id for run_id in (run_ids or self._background) if run_id in self._background]
        if not wanted:
            return {}
        await asyncio.wait([self._background[run_id].running for run_id in wanted], timeout=timeout_s)
        done = [run_id for run_id in wanted if self._background[run_id].running.done()]
        return {run_id: self._background.pop(run_id).running.result() for run_id in done}

    async def _answer(self, task: Task) -> Result:
        answer = self._workers[task.agent](task)
        match answer:
            case str():
                return Result("success", answer, structured=False)
            case Exception():
                raise answer
            case asyncio.Event():
                self.started.set()
                await answer.wait()
                return Result("success", "late", structured=False)
            case Result():
                return answer


@dataclass
class Stage:
    """One parent run that calls a pattern tool."""

    root: Path
    spawn: FunctionSpawn
    request: str = "Build the whole thing and have it checked."
    events: list[Event] = field(default_factory=list[Event])

    def __post_init__(self) -> None:
        self.workspaces = LocalWorkspaces(WorkspaceSettings(str(self.root), durable=False))
        self.workspace = self.workspaces.open("orchestrator", "0d0d0d", "r0")

    def context(self) -> ToolContext:
        return ToolContext(
            run_id="r0",
            session_id="cli",
            agent="orchestrator",
            call_id="call1",
            request=self.request,
            workspace=self.workspace,
            spawn=self.spawn,
            record=self.events.append,
        )

    def find(self, path: str) -> Pointer | None:
        return self.workspaces.find(path)

    def delivered_by_a_child(self, name: str, content: str = "text", *, granted: bool = True) -> Pointer:
        pointer = self.workspaces.open("coder", "a1b2c3", "c9").deliver(name, content.encode())
        if granted:
            self.workspace.grant((pointer,))
        return pointer

    @property
    def warnings(self) -> list[str]:
        return [event.code for event in self.events if isinstance(event, Warned)]
