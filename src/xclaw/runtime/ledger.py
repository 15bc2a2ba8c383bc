"""The account of a tree: reserve before a call, settle after it, refuse before spending.

`spent` is the run's and its descendants'. Single-threaded: every call is on the event loop, and
nothing here awaits, so check and reservation cannot be torn apart.
"""

from dataclasses import dataclass

from xclaw.contracts.errors import LimitReached
from xclaw.contracts.ledger import Reservation
from xclaw.contracts.models import ModelProfile
from xclaw.contracts.usage import Spend

MIN_OUTPUT_TOKENS = 16
"""A call that could answer less than this is refused."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """One account at a glance. None: no bound of its own."""

    max_tokens: int | None
    max_usd: float | None
    max_calls: int | None
    spent: Spend


class TreeLedger:
    """One run's account. The root's bounds are the tree's; a child may have tighter ones of its own."""

    def __init__(
        self,
        parent: "TreeLedger | None" = None,
        *,
        max_tokens: int | None = None,
        max_usd: float | None = None,
        max_calls: int | None = None,
        spent: Spend | None = None,
    ) -> None:
        self._parent = parent
        self._max_tokens = max_tokens
        self._max_usd = max_usd
        self._max_calls = max_calls
        self._held_calls = 0
        self._spent = spent or Spend()
        self._held_tokens = 0
        self._held_usd = 0.0
        self._bounded: bool = (
            max_tokens is not None or max_usd is not None or (parent is not None and parent._bounded)
        )

    @property
    def spent(self) -> Spend:
        return self._spent

    def reserve(self, input_tokens: int, profile: ModelProfile) -> Reservation:
        self._check_calls()
        if not self._bounded:
            reservation = Reservation(0, None, None)
            self._hold(reservation, 1)
            return reservation
        output = profile.max_output_tokens
        account: TreeLedger | None = self
        while account is not None:
            output = min(output, account._output_allowed(input_tokens, profile))
            account = account._parent
        usd = profile.cost_usd(input_tokens, output)
        reservation = Reservation(input_tokens + output, usd, output)
        self._hold(reservation, 1)
        return reservation

    def settle(self, reservation: Reservation, spend: Spend) -> None:
        self._hold(reservation, -1)
        self.charge(spend)

    def charge(self, spend: Spend) -> None:
        account: TreeLedger | None = self
        while account is not None:
            account._spent += spend
            account = account._parent

    def left(self) -> str:
        parts: list[str] = []
        if self._max_tokens is not None:
            parts.append(f"{max(0, self._tokens_left())} tokens")
        if self._max_usd is not None:
            parts.append(f"${max(0.0, self._usd_left(self._max_usd)):.4f}")
        own = " and ".join(parts)
        return own or (self._parent.left() if self._parent else "")

    @property
    def bounds(self) -> Bounds:
        """What this account alone may spend, as another process keeps it; with what it has spent."""
        return Bounds(self._max_tokens, self._max_usd, self._max_calls, self._spent)

    def _hold(self, reservation: Reservation, sign: int) -> None:
        account: TreeLedger | None = self
        while account is not None:
            account._held_calls += sign
            account._held_tokens += sign * reservation.tokens
            account._held_usd += sign * (reservation.usd or 0.0)
            account = account._parent

    def _check_calls(self) -> None:
        account: TreeLedger | None = self
        while account is not None:
            limit = account._max_calls
            if limit is not None and account._spent.calls + account._held_calls >= limit:
                raise LimitReached("calls", f"the limit of {limit} model calls is used up")
            account = account._parent

    def _tokens_left(self) -> int:
        used = self._spent.usage.total_tokens + self._held_tokens
        return (self._max_tokens or 0) - used

    def _usd_left(self, limit: float) -> float:
        return limit - self._spent.known_usd - self._held_usd

    def _output_allowed(self, input_tokens: int, profile: ModelProfile) -> int:
        """How many output tokens this account still pays for, beside the input."""
        allowed = profile.max_output_tokens
        if self._max_tokens is not None:
            left = self._tokens_left() - input_tokens
            if left < MIN_OUTPUT_TOKENS:
                raise LimitReached("tokens", f"the budget of {self._max_tokens} tokens is used up")
            allowed = min(allowed, _share(left))
        if self._max_usd is not None:
            allowed = min(allowed, self._output_for_money(self._max_usd, input_tokens, profile))
        return allowed

    def _output_for_money(self, limit: float, input_tokens: int, profile: ModelProfile) -> int:
        input_price, output_price = profile.input_usd_per_million, profile.output_usd_per_million
        if input_price is None or output_price is None:
            raise LimitReached(
                "usd",
                f"a budget of ${limit} cannot be kept: the model's price is unknown. "
                "Set it under [models.prices] in xclaw.toml, or use a token budget",
            )
        left = self._usd_left(limit) - input_tokens * input_price / 1e6
        if left < MIN_OUTPUT_TOKENS * output_price / 1e6:
            raise LimitReached("usd", f"the budget of ${limit} is used up")
        if output_price == 0:
            return profile.max_output_tokens
        return _share(int(left * 1e6 / output_price))


def _share(left: int) -> int:
    """Leave something for siblings, but not so little that a small rest is cut up."""
    return min(left, max(1_024, left // 4))
