"""Teams: several agents at one goal, who can write to one another (SPEC G5)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

Strategy = Literal["parallel", "sequential", "round-robin"]
"""All at once; one after the other, each seeing what came before; in turns on a shared thread."""

Waited = Literal["mail", "time", "nobody", "ended"]
"""How a wait for mail came to its end: there is some; the time is over; nobody is left who could write;
the one it waited for has ended."""

Claim = Literal["open", "claimed", "done"]


@dataclass(frozen=True, slots=True)
class Seat:
    """The place of one member, part of its task."""

    team: str
    member: str
    """Unique in the team: two of one agent have different names."""
    members: tuple[str, ...]
    """Everybody's, in order, its own among them."""
    strategy: Strategy


@dataclass(frozen=True, slots=True)
class TeamTask:
    """One entry of a team's board."""

    id: str
    text: str
    state: Claim
    by: str = ""
    """Who has claimed or completed it."""
    after: tuple[str, ...] = ()
    """Ids of what has to be done before it."""
    note: str = ""
    """What came of it."""


class Membership(Protocol):
    """A member's side of its team. Bound to one tool call, whose replay after a crash changes nothing again.

    Changes of the board are one step each: of two members who claim a task, one gets it. All of them raise
    `ToolFailed` for what is not possible.
    """

    @property
    def seat(self) -> Seat: ...

    async def wait_for_mail(self, timeout_s: float | None, sender: str = "") -> Waited:
        """Until there is mail, from whomever; it is read at the next turn. `sender` is whose it waits for.

        Raises `Deadlock` when everybody waits, which ends the run.
        """
        ...

    def tasks(self) -> tuple[TeamTask, ...]: ...

    def add(self, text: str, after: tuple[str, ...] = ()) -> TeamTask: ...

    def claim(self, task_id: str) -> TeamTask: ...

    def complete(self, task_id: str, note: str = "") -> TeamTask: ...

    def release(self, task_id: str) -> TeamTask: ...


class TeamLead(Protocol):
    """The side of the call that made the team."""

    def assembled(self) -> None:
        """Everybody who can be is there: from now on a parallel team is done when all have answered."""
        ...

    async def turn(self, run_id: str, number: int, text: str = "") -> str:
        """Have a member of a round-robin team take its turn, and what it answers; empty when it has ended.

        `number` counts from 1, which is its task; `text` is what it is told at the later ones. Told once,
        also when the call is replayed. Cancelling the wait leaves the member as it is.
        """
        ...

    def dismiss(self) -> None:
        """Let the members of a round-robin team end with what they have."""
        ...

    def answer(self, run_id: str, passing: str) -> str:
        """The last answer of a member that was not just `passing`; empty if there is none."""
        ...

    def traffic(self) -> Mapping[tuple[str, str], int]:
        """How many messages went from whom to whom."""
        ...

    def tasks(self) -> tuple[TeamTask, ...]:
        """The team's board as it is."""
        ...
