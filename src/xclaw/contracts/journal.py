"""The Journal contract: all events, in order, durable before anything depends on them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from xclaw.contracts.events import Entry
from xclaw.contracts.results import Outcome


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run at a glance: a projection that is committed with the events it is read from."""

    run_id: str
    root_id: str
    parent_id: str
    session_id: str
    agent: str
    title: str
    """The first line of its input, at most 120 characters."""
    owner: str
    """The process that drives it."""
    started_at: float
    ended_at: float | None
    outcome: Outcome | None
    """None while it runs, or was interrupted."""
    message_id: str = ""
    """Of the channel's message that it answers."""


Committed = Callable[[Sequence[Entry], BaseException | None], None]
"""Told on the event loop once a batch is durable, entries in order with their `id` set; or that it failed."""


class Journal(Protocol):
    """Append-only. Commit order is append order, over all runs of the process.

    `append` never blocks and never fails: the outcome comes to `committed`, once, and a failed
    batch fails every later one of the same run. `Fenced` when a `seq` of a run exists already.
    Readers see committed entries only. Nothing here is cancelled halfway: a batch is in or out.
    """

    def append(self, entries: Sequence[Entry], committed: Committed) -> None: ...

    async def read_run(self, run_id: str) -> list[Entry]: ...

    async def read_tree(self, root_id: str, after_id: int = 0) -> list[Entry]:
        """Every entry of the tree with `id` over `after_id`, in commit order."""
        ...

    async def read_session(self, session_id: str) -> list[Entry]:
        """Every entry of the runs whose session is exactly `session_id`, in commit order."""
        ...

    async def run_row(self, run_id: str) -> RunRow | None: ...

    async def runs(
        self,
        *,
        session_id: str | None = None,
        root_id: str | None = None,
        roots_only: bool = False,
        open_only: bool = False,
        limit: int = 100,
    ) -> list[RunRow]:
        """Newest first."""
        ...

    async def claim(self, root_id: str, from_owner: str, to_owner: str) -> bool:
        """Make `to_owner` the owner of every open run of a tree, if `from_owner` still is. Atomic."""
        ...

    async def close(self) -> None:
        """Commit what is queued, then end the writer thread."""
        ...
