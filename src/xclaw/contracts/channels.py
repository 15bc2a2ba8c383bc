"""The Channel contract: where users come from, and what reaches them (SPEC A4, A6).

A channel hands messages to the door and reads what happens from it at its own pace. It never holds
a run up: what it does not read in time is coalesced, or read again from the journal.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from xclaw.contracts.agents import Limits
from xclaw.contracts.events import Entry, RunEnded
from xclaw.contracts.messages import Message
from xclaw.contracts.sessions import Manner
from xclaw.contracts.users import OWNER


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a client chose beside the text. Fields left alone take the router's or the settings' values."""

    agent: str = ""
    """Ask this one, without the router."""
    models: tuple[str, ...] = ()
    limits: Limits = Limits()
    manner: Manner = "queue"
    client_id: str = ""
    """The client's own id: a message that is sent again under it is not a second one."""


NO_WISHES = Wishes()


@dataclass(frozen=True, slots=True)
class Accepted:
    """A message is durable and will be answered, whatever happens to this process."""

    message_id: str
    session_id: str
    """The client's own."""
    after: int
    """The journal's newest id when it was accepted: watching from here misses nothing of the answer."""
    waiting: int = 0
    """How many messages of the session come before it."""
    duplicate: bool = False
    """It had been accepted before, under the same `client_id`."""


@dataclass(frozen=True, slots=True)
class Delta:
    """Streamed text of a run. Not in the journal; the whole text will be.

    `after` is the id of the run's last stored entry, `offset` the characters that were streamed since
    it: a client that has shown some of it already knows how much.
    """

    request: str
    session_id: str
    run_id: str
    agent: str
    after: int
    offset: int
    text: str


@dataclass(frozen=True, slots=True)
class Happened:
    """A stored event, in its place. `entry.id` is what a client resumes from."""

    request: str
    session_id: str
    entry: Entry


@dataclass(frozen=True, slots=True)
class Reply:
    """A request has its answer: the end of its root run, successful or not."""

    request: str
    session_id: str
    entry: Entry
    ended: RunEnded


@dataclass(frozen=True, slots=True)
class Failed:
    """A request that will have no run, or a watch that cannot go on."""

    request: str
    session_id: str
    code: str
    text: str


Outgoing = Delta | Happened | Reply | Failed
"""What reaches a channel. `request` is the message's id, `session_id` the client's own."""


class Door(Protocol):
    """The gateway, as a channel sees it."""

    async def dispatch(self, message: Message, wishes: Wishes = NO_WISHES, *, user: str = OWNER) -> Accepted:
        """Accept a message. An empty `message.id` or `session_id` is given one.

        Raises `UsageError` for one that can never be answered (no text, unknown agent, a session name
        that is none) and when the gateway is closing; nothing is stored then.
        """
        ...

    def watch(
        self, session_id: str, after: int | None = None, *, user: str = OWNER
    ) -> AbstractAsyncContextManager[AsyncIterator[Outgoing]]:
        """Everything of a session after the entry `after` (None: from now on), each once, in order.

        Begins with the text that runs are in the middle of. Leaving the block ends the watch only.
        """
        ...

    async def cancel(self, session_id: str, reason: str, *, user: str = OWNER) -> int:
        """End what runs in the session and drop what waits; answers how many runs ended."""
        ...


class Channel(Protocol):
    """A place where users come from."""

    @property
    def name(self) -> str:
        """Set as `Message.channel`."""
        ...

    async def serve(self, door: Door) -> None:
        """Run until cancelled. Whatever it raises ends this channel only, and is logged."""
        ...
