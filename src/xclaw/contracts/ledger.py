"""The Ledger contract: what a tree may spend, asked before spending."""

from dataclasses import dataclass
from typing import Protocol

from xclaw.contracts.models import ModelProfile
from xclaw.contracts.usage import Spend


@dataclass(frozen=True, slots=True)
class Reservation:
    """Held until it is settled. `max_output_tokens` bounds the call when a budget is set, else None."""

    tokens: int
    usd: float | None
    max_output_tokens: int | None


class Ledger(Protocol):
    """One account of a run, below its parent's: every bound up to the root is checked.

    What a child does not use was never taken from its parent, so nothing has to be returned.
    """

    def reserve(self, input_tokens: int, profile: ModelProfile) -> Reservation:
        """Raises `LimitReached` before anything is spent."""
        ...

    def settle(self, reservation: Reservation, spend: Spend) -> None:
        """Replace the reservation by what the call cost. Exactly once for each reservation."""
        ...

    def charge(self, spend: Spend) -> None:
        """Add what was not reserved: a failed attempt, or events folded after a restart."""
        ...

    @property
    def spent(self) -> Spend:
        """Of this account and everything below it."""
        ...

    def left(self) -> str:
        """What is left, as text for a model; empty without a budget."""
        ...
