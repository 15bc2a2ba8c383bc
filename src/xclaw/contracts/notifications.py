"""A task notification: how what became of a task is told to an orchestrator (SPEC H3)."""

from dataclasses import dataclass
from typing import Literal

TASK_NOTIFICATION = "task-notification"
"""The element, and the type of a channel's message that holds one."""

NotifiedStatus = Literal["running", "success", "error", "unknown"]
"""Of a notification from outside whose word for it nobody knows: "unknown", the word is in `outcome`."""


@dataclass(frozen=True, slots=True)
class NotifiedUsage:
    """What the task used, as far as it is told."""

    tokens: int | None = None
    cost_usd: float | None = None
    duration_s: float | None = None


@dataclass(frozen=True, slots=True)
class Notification:
    """Data for whoever reads it: a task's state changes by events alone, never by one of these."""

    task_id: str
    agent_id: str = ""
    agent_name: str = ""
    status: NotifiedStatus = "success"
    outcome: str = ""
    summary: str = ""
    details: str = ""
    artifacts: tuple[str, ...] = ()
    """Paths of what was delivered."""
    reason: str = ""
    """Why the outcome is what it is."""
    usage: NotifiedUsage = NotifiedUsage()
    extra: tuple[tuple[str, str], ...] = ()
    """What else it said, by the name that it had: kept aside, used by nobody."""
