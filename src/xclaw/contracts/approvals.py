"""Approvals are rows (SPEC J2): asked in a run's stream, answered from anywhere, once."""

from dataclasses import dataclass
from typing import Literal, Protocol

from xclaw.contracts.events import ApprovalAnswered

Decision = Literal["once", "session", "always", "deny", "edit"]
"""What a person can answer. "session": this agent may do the like in this conversation. "always": in all
of the user's. "edit": run it once, with other arguments."""

ApprovalStatus = Literal["pending", "answered", "void"]
"""Void: the run ended before it was answered."""


@dataclass(frozen=True, slots=True)
class Approval:
    """One question: may this call run?"""

    approval_id: str
    """Cannot be guessed."""
    call_id: str
    run_id: str
    root_id: str
    session_id: str
    """The asker's."""
    root_session_id: str
    """The journal session of the tree's root: whose conversation it is."""
    path: tuple[str, ...]
    """Names of the agents from the root to the asker."""
    tool: str
    arguments: str
    """JSON text of an object."""
    why: str
    rule: str
    """What "session" and "always" would allow from then on; empty: they are not on offer."""
    asked_at: float
    """Unix time, seconds."""
    owner: str
    """The process that drives the run, or did: a dead one means that the run is parked."""
    status: ApprovalStatus = "pending"

    @property
    def agent(self) -> str:
        """Who asks."""
        return self.path[-1]


@dataclass(frozen=True, slots=True)
class Answer:
    """What somebody decided."""

    decision: Decision
    reason: str = ""
    """For the agent, of a denial."""
    arguments: dict[str, object] | None = None
    """Of "edit": what to run instead."""
    rule: str = ""
    """Of "session" and "always": what to allow, if not what the approval offers. It must cover the call."""


class ApprovalStore(Protocol):
    """Questions and answers in the journal's file. Writes are durable when they return.

    Raises `JournalError`. Cancelling a wait lets the write finish.
    """

    async def approval(self, approval_id: str) -> Approval | None: ...

    async def pending(self) -> list[Approval]:
        """Of every open run, the oldest first."""
        ...

    async def settle(self, answered: ApprovalAnswered) -> Approval:
        """Store the answer. Raises `UsageError` for an approval that is unknown, answered or void: of
        several answers at once exactly one is taken."""
        ...

    async def answered(self, approval_id: str) -> ApprovalAnswered | None:
        """The answer that was taken."""
        ...

    async def session_rules(self, root_session_id: str, agent: str) -> tuple[str, ...]:
        """What answers allowed `agent` in the conversation of a root's session."""
        ...

    async def user_of(self, session_id: str) -> str:
        """Whose session it is."""
        ...
