"""The Spawn contract: one way to start a sub-agent, whatever kind it is."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Protocol

from xclaw.contracts.results import Result
from xclaw.contracts.tasks import Context, Task
from xclaw.contracts.teams import Membership, TeamLead


class Child(Protocol):
    """A started sub-agent."""

    @property
    def run_id(self) -> str: ...

    @property
    def session_id(self) -> str: ...

    @property
    def task_id(self) -> str: ...

    async def result(self) -> Result:
        """Its end, durable. Never raises for a failed child: the outcome says so. Any number may wait.

        Cancelling the wait does not cancel the child.
        """
        ...

    async def cancel(self, reason: str) -> Result:
        """End it and everything below it; answers how it ended. Safe to repeat."""
        ...


@dataclass(frozen=True, slots=True)
class AgentState:
    """One child, as its parent may see it."""

    agent_id: str
    agent: str
    task: str
    """The task's first line, at most 120 characters."""
    status: str
    """"running", or the outcome it ended with."""
    tokens: int
    """What it and everything below it has used."""


class Spawn(Protocol):
    """Starts children of one run. Bound to that run and to the tool call that asks.

    `start` journals ChildSpawned before the child's first event, and re-attaches: the same
    (run, call, key) after a crash answers the child that exists, started once, its result taken once.
    """

    def agents(self) -> Mapping[str, str]:
        """Agents that may be started: name to description."""
        ...

    def resolve(self, name: str) -> str | None:
        """The agent a model meant: case, quotes, spaces, list brackets, "@" and full-width folded."""
        ...

    def model_of(self, agent: str) -> str:
        """The first model of the agent's chain."""
        ...

    async def start(self, task: Task, *, background: bool = False) -> Child:
        """Raises `SpawnRefused`. A background child's result comes as a notification too."""
        ...

    async def run(self, task: Task) -> Result:
        """Start, wait, acknowledge. Cancelling it cancels the child. Raises `SpawnRefused`."""
        ...

    def listing(self) -> list[AgentState]:
        """Every child that this run ever started, in order."""
        ...

    async def send(self, to: str, text: str) -> str:
        """Have a running background child read `text` at its next turn; answers its id. `to` is an id,
        its beginning, or the name of an agent of which one child runs. Also "lead", whoever started this
        run; and in a team the name of a member, or "all": these read it as data, and are answered by name.

        Journaled before it is on its way: a crash loses no mail and delivers none twice. Raises
        `SpawnRefused` when nobody or several are meant.
        """
        ...

    async def stop(self, to: str, reason: str) -> tuple[str, Result]:
        """End a running background child, named as in `send`, and take its result. Raises `SpawnRefused`."""
        ...

    def membership(self) -> Membership:
        """Of this run in its team. Raises `SpawnRefused` when it is in none."""
        ...

    def team(self) -> TeamLead:
        """Of the members that this call has started."""
        ...

    def context_tokens(self, context: Context) -> int:
        """About how many tokens a child would be given with this context, beside its task."""
        ...

    def children(self) -> Mapping[str, Child]:
        """Background children of this run that have not been acknowledged, by run id."""
        ...

    async def wait(self, run_ids: tuple[str, ...] = (), timeout_s: float | None = None) -> dict[str, Result]:
        """Wait until all named background children (or all of them) ended; acknowledge and answer those
        that have. Ids of no child are ignored. The same call after a crash answers again what it took."""
        ...


@dataclass(frozen=True, slots=True)
class Birth:
    """The names of a child that is about to start."""

    run_id: str
    session_id: str
    task_id: str
    agent: str


Drive = Callable[[], Coroutine[None, None, Result]]
"""Runs an agent in this process to its end. Cancelling it ends the run, which then answers "cancelled"."""


class Launcher(Protocol):
    """One kind of sub-agent: how a child that the runtime has admitted is executed."""

    def launch(self, birth: Birth, drive: Drive) -> Child:
        """Start it and answer at once. A crash of the child is a Result, never an exception."""
        ...
