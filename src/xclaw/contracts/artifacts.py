"""Delivered files and the pointers that travel in their place."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pointer:
    """One version of one delivered file. Pointers travel between agents, contents do not."""

    path: str
    """Absolute path of the delivered file."""
    sha256: str
    size: int
    """Bytes."""
    agent: str
    """The agent that delivered it."""
    run_id: str = ""
    version: int = 1
    """1 for the first delivery under a name; a later one never overwrites an earlier one."""
