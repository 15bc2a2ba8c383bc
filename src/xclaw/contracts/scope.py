"""What a run sees of itself, wherever it is: one context variable, carried into threads too."""

from contextvars import ContextVar
from dataclasses import dataclass

from xclaw.contracts.permissions import PermissionMode
from xclaw.contracts.users import OWNER


@dataclass(frozen=True, slots=True)
class Scope:
    """Set by the runtime around a run; frozen, so that nothing a run sets leaks up or sideways."""

    run_id: str
    root_id: str
    session_id: str
    agent: str
    depth: int
    permission_mode: PermissionMode
    """The strictest of the chain from the settings down to the run."""
    memory_dir: str
    user: str = OWNER
    """Whose conversation the tree belongs to."""
    conversation: str = ""
    """Its key; empty for a tree that belongs to none."""


current_scope: ContextVar[Scope | None] = ContextVar("xclaw_scope", default=None)
