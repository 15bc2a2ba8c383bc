"""What the runtime can be told."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class RuntimeSettings:
    """The bounds of every tree of runs, where a request does not set its own."""

    max_depth: int = 3
    """Levels below a root."""
    max_children: int = 16
    """Children one run may start."""
    coordinator_children: int = 80
    """The same of a coordinator, whose phases take more."""
    max_concurrent: int = 8
    """Workers of one process that run at once; further ones wait."""
    max_runs: int = 200
    """Runs in one tree."""
    max_calls: int = 1_000
    """Model calls in one tree, failed attempts included."""
    orchestrator_turns: int = 30
    worker_turns: int = 10
    worker_timeout_s: float | None = None
    """None: what the profile of the worker's model says."""
    timeout_s: float | None = None
    """For a root; None: no limit."""
    budget_usd: float | None = None
    budget_tokens: int | None = None
    inline_limit_chars: int = 8_000
    """A tool output longer than this is spilled to a file."""
    dialect: Literal["native", "json"] | None = None
    """None: what the model's profile says."""
    allow_shell: bool = False
