"""An agent is data (SPEC C1)."""

from dataclasses import dataclass
from typing import Literal

from xclaw.contracts.permissions import PermissionMode, Rules

Isolation = Literal["local", "forked", "remote", "teammate"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run may use. None: no limit of its own, the tree's still holds."""

    max_turns: int | None = None
    timeout_s: float | None = None
    max_tokens: int | None = None
    """Input and output tokens of the run and everything below it."""
    max_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Agent:
    """A definition. Holds no state: any number of runs of it go on at once."""

    name: str
    """Unique in a registry after `agent_key` folding; may be any script, spaces included."""
    description: str
    instructions: str
    """The system prompt's role part, without tool or result rules, which the loop adds."""
    models: tuple[str, ...] = ()
    """The fallback chain as `provider:model` strings; empty: the runtime's own chain."""
    tools: tuple[str, ...] | None = None
    """Names of the tools it may use; None: the default set of its kind."""
    limits: Limits = Limits()
    isolation: Isolation = "local"
    worktree: bool = False
    """Where there is a user's project, it works in a private tree of it, and its changes come back as a branch."""
    permission_mode: PermissionMode = "bubble"
    rules: Rules = Rules()
    """They narrow what the settings and its parents let it do, and never widen it."""
    memory: bool = False
    orchestrator: bool = False
    """May hand work out: gets delegate, debate, pipeline, spawn and wait."""
    script: tuple[str, ...] = ()
    """The user's own program, with its arguments, that runs in place of a conversation with a model; only
    with the isolation "forked"."""
    source: str = "built-in"
    """Where the definition came from: a file path, "built-in" or "python"."""
