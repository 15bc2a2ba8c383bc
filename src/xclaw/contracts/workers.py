"""The worker contract: a process elsewhere that drives a run, and the line to it.

Nothing that comes over the line is believed: whoever reads it checks it. Lines are JSON objects, in
UTF-8, without their end of line.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class WorkerEnd:
    """What became of a worker."""

    code: int | None
    """As of a subprocess: negative for a signal; None when it is not known."""
    log: str
    """The last of what it wrote to its outputs."""


class WorkerLink(Protocol):
    """One worker that was started."""

    @property
    def pid(self) -> int:
        """Of its process, or of the one that keeps it; 0 on another machine."""
        ...

    def send(self, line: bytes) -> None:
        """Queue one line. Raises `ConnectionError` when the worker is gone or has stopped reading."""
        ...

    async def receive(self) -> bytes:
        """The next line; empty once there is no more, because it ended or hung up. Raises `ValueError`
        for a line that is longer than any may be. Cancelling it loses nothing."""
        ...

    async def end(self) -> WorkerEnd:
        """End it with everything that it started, at once, and wait until they are gone: seconds at most.
        Safe to repeat, also at once; cancelling the wait does not stop it."""
        ...


@dataclass(frozen=True, slots=True)
class WorkerKind:
    """How workers of one kind of isolation come to be."""

    start: Callable[[], Awaitable[WorkerLink]]
    """Raises `OSError` when none can be started."""
    tools: frozenset[str]
    """Names of the tools that there are in a worker."""
    setup: Mapping[str, object]
    """What its composition root is wired with: JSON values, and no secret."""
