"""What outlives a conversation, and what one shares: memory, and the scratchpad, as other rooms see them.

Both belong to a user, and users never see one another's. Whose a call is, is resolved by the runtime,
never by anything that a model says.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

from xclaw.contracts.users import OWNER

MemoryScope = Literal["own", "team"]
"""Of one agent, or of all agents of a user."""


@dataclass(frozen=True, slots=True)
class Whose:
    """Who works where: what memory and the scratchpad are kept apart by."""

    user: str = OWNER
    conversation: str = ""
    """The key of the conversation whose tree the run is in; a scratchpad is shared within it."""


def whose_session(root_session: str) -> Whose:
    """Whose a tree is, by its root's session: `name` of the owner, `user:{user}:{name}` of another user,
    with `team:{role}:` before it for a resident expert. Neither names nor users hold a ":".
    """
    *before, name = root_session.split(":")
    if len(before) >= 2 and before[-2] == "user":
        user = before[-1]
        return Whose(user, f"user:{user}:{name}")
    return Whose(OWNER, name)


@dataclass(frozen=True, slots=True)
class Recalled:
    """A memory that fits a question, with where it stands."""

    id: str
    text: str
    author: str
    """Empty when a person wrote it into the file."""
    at: float
    """When it was written, Unix time in seconds; of one written by hand, when its file was."""
    file: str
    """Relative to the user's memory directory."""
    relevance: float
    """0 to 1: how much of the question it answers. Results are ordered by this and by how new they are."""


class Memory(Protocol):
    """Long-term notes. Methods wait for the disk in a thread; a cancelled one ends there all the same.

    Raises `UsageError` for a text or an id that cannot be, and when the files cannot be used.
    """

    def agent_directory(self, agent: str, user: str = OWNER) -> str:
        """Where an agent's own files are; it may not be there yet."""
        ...

    async def remember(
        self, text: str, *, agent: str, scope: MemoryScope = "own", user: str = OWNER, key: str = ""
    ) -> str:
        """Keep a note; answers its id. Durable when it returns. The same `key` again is the same note."""
        ...

    async def recall(self, query: str, k: int, *, agent: str, user: str = OWNER) -> list[Recalled]:
        """The `k` notes of the agent and of the team that fit best; those that do not fit are left out."""
        ...

    async def forget(self, note_id: str, *, agent: str, user: str = OWNER) -> Recalled:
        """Remove a note of the agent or of the team for good; answers what it was."""
        ...

    async def recalled_block(self, query: str, *, agent: str, user: str = OWNER) -> str:
        """What to show a model beside `query`: the notes that fit, fenced as data; empty when none does.
        Never raises for memory that cannot be used: that is logged."""
        ...

    async def log_turn(
        self, said: str, answer: str, *, agent: str, session_id: str, user: str = OWNER
    ) -> None:
        """Add what was said and answered to the agent's transcript."""
        ...


@dataclass(frozen=True, slots=True)
class PadEntry:
    """One version of one entry of a scratchpad."""

    name: str
    version: int
    """Counts from 1; each write and each append makes one, and all are kept."""
    text: str
    """The whole text at this version."""
    author: str
    at: float
    """Unix time, seconds."""


class Scratchpad(Protocol):
    """Named texts that one conversation's agents share outside their context windows.

    Writers of any number of processes lose nothing. Raises `UsageError`: the text says what to do.
    A cancelled call is finished in its thread all the same.
    """

    async def write(
        self, whose: Whose, name: str, text: str, *, author: str, expected: int | None = None, key: str = ""
    ) -> PadEntry:
        """A new version with this text. `expected`: the version that it replaces (0: none); refused when
        that is not the newest. The same `key` again is the same version."""
        ...

    async def append(self, whose: Whose, name: str, text: str, *, author: str, key: str = "") -> PadEntry:
        """A new version with `text` added on a line of its own; made if there is no such entry."""
        ...

    async def read(self, whose: Whose, name: str, version: int | None = None) -> PadEntry: ...

    async def entries(self, whose: Whose) -> list[PadEntry]:
        """The newest version of each, by name."""
        ...

    async def search(self, whose: Whose, words: str, limit: int = 10) -> list[PadEntry]:
        """Entries whose newest version holds some of the words, the best first."""
        ...
