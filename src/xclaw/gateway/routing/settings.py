"""What the router is told from outside."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class RouterSettings:
    """How a request finds its agent."""

    order: tuple[Literal["rules", "model"], ...] = ("rules",)
    """Who is asked, one after the other, until one names an agent; then the orchestrator answers."""
    model: str = ""
    """`provider:model` of the router model; needed when `order` names it."""
    timeout_s: float | None = None
    """How long the model may take; None: 5 seconds, 60 for one that needs worked examples."""
    rules_files: tuple[str, ...] = ()
    """TOML files with rules that come before the built-in ones; a later file comes first."""
