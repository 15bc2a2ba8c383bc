"""Who a message goes to, and why: decided once, kept in the first event of the run."""

from dataclasses import dataclass
from typing import Literal

from xclaw.contracts.usage import Spend

RoutedBy = Literal["mention", "rule", "model", "client", "default"]
"""What decided: the user's `@name`, a rule, a router model, the client's own choice, or nothing of these."""


@dataclass(frozen=True, slots=True)
class Route:
    """One decision of a router."""

    agent: str
    by: RoutedBy
    reason: str
    """One line for a person."""
    rule: str = ""
    """The rule's name, where one decided."""
    spend: Spend = Spend()
    """Of asking a router model; it counts to the run's tree."""
    reply: str = ""
    """What a router model answered, at most 500 characters."""
