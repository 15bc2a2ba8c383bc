"""Conversations that outlive a process: whose they are, and what was said into them.

A *conversation* is what a client calls its session: one name of one user. Its journal sessions are
the orchestrator's, whose id is the conversation's key, and one `team:{role}:{key}` for each resident
expert that was ever asked.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

from xclaw.contracts.events import Entry
from xclaw.contracts.messages import Message

Manner = Literal["queue", "steer", "interrupt"]
"""What a message does to a run that goes on: wait for it, be read at its next turn, or end it."""


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One journal session at a glance."""

    session_id: str
    """The journal's."""
    conversation: str
    """The key of the conversation that it belongs to."""
    user: str
    name: str
    """What the client calls the conversation."""
    role: str = ""
    """The resident expert's name; empty for the orchestrator's own."""
    title: str = ""
    channel: str = ""
    created_at: float = 0.0
    used_at: float = 0.0
    """Unix times, seconds."""


@dataclass(frozen=True, slots=True)
class Inbound:
    """A message that was accepted: durable before anybody is told so.

    `message.session_id` is the conversation's key. It is *pending* until an event of a run names it
    (`RunStarted.message_id` or `MessageAdded.message_id`), which sets `run_id` in the same
    transaction, or until it is dropped.
    """

    message: Message
    user: str
    client_id: str = ""
    """The client's own id of it: the same one sent again is the same message. Empty: none."""
    manner: Manner = "queue"
    wishes: str = "{}"
    """What the client chose beside the text, as JSON."""
    run_id: str = ""
    """The root run that took it."""
    dropped: str = ""
    """Why it will never be taken."""


class SessionStore(Protocol):
    """Sessions and accepted messages, in the journal's file. Writes are durable when they return.

    Raises `JournalError`. Cancelling a wait lets the write finish.
    """

    async def accept(self, inbound: Inbound) -> Inbound:
        """Store it. Of a `client_id` that this user sent to this conversation before: the earlier one,
        unchanged."""
        ...

    async def inbound(self, message_id: str) -> Inbound | None: ...

    async def pending(self, conversation: str | None = None) -> list[Inbound]:
        """Neither taken nor dropped, in the order they were accepted."""
        ...

    async def drop(self, message_id: str, reason: str) -> bool:
        """Give up a pending message; false when it was taken or dropped already."""
        ...

    async def dropped(self, conversation: str, after_id: int) -> list[Inbound]:
        """Those that were given up when the journal's newest id was `after_id` or higher, in the order they
        were accepted."""
        ...

    async def open_session(self, row: SessionRow) -> SessionRow:
        """The session of that id: made if it is new, else its `used_at` set; its other fields stay."""
        ...

    async def session(self, session_id: str) -> SessionRow | None: ...

    async def sessions(
        self,
        *,
        user: str | None = None,
        conversation: str | None = None,
        without_channel: str = "",
        limit: int = 100,
    ) -> list[SessionRow]:
        """The latest used first; those of one channel left out, if it is named."""
        ...

    async def rename(self, session_id: str, title: str) -> bool: ...

    async def delete(self, session_ids: tuple[str, ...]) -> int:
        """Forget sessions for good: rows, accepted messages, trees whose root is in one of them, every
        event. Answers how many runs that were. Raises `UsageError` while one of those runs is open."""
        ...

    async def read_conversation(self, conversation: str, after_id: int, limit: int) -> list[Entry]:
        """Entries of every tree whose root is in a session of the conversation, with an id over
        `after_id`, in commit order, the first `limit` of them."""
        ...

    async def last_id(self) -> int:
        """The id of the newest entry of the journal; 0 when it is empty."""
        ...
