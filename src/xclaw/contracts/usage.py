"""What was consumed. One definition of the sum, so that trace, ledger and reports agree."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of model calls. `estimated` is true when a provider did not report some of them."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """Part of `input_tokens` that the provider read from its cache."""
    reasoning_tokens: int = 0
    """Part of `output_tokens` that was reasoning."""
    estimated: bool = False

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.estimated or other.estimated,
        )


@dataclass(frozen=True, slots=True)
class Spend:
    """Usage, money and calls of any set of model calls."""

    usage: Usage = Usage()
    known_usd: float = 0.0
    """Money of the calls whose price is known."""
    unpriced_calls: int = 0
    """Calls that used tokens at an unknown price."""
    calls: int = 0

    @property
    def cost_usd(self) -> float | None:
        """The whole cost in US dollars, or None when part of it is unknown. Never a guessed 0."""
        return None if self.unpriced_calls else self.known_usd

    @property
    def negative(self) -> "Spend":
        """What takes it back when it is added."""
        usage = self.usage
        minus = Usage(
            -usage.input_tokens, -usage.output_tokens, -usage.cached_tokens, -usage.reasoning_tokens
        )
        return Spend(minus, -self.known_usd, -self.unpriced_calls, -self.calls)

    def __add__(self, other: "Spend") -> "Spend":
        return Spend(
            self.usage + other.usage,
            self.known_usd + other.known_usd,
            self.unpriced_calls + other.unpriced_calls,
            self.calls + other.calls,
        )


def spend_of_call(usage: Usage, cost_usd: float | None) -> Spend:
    """The spend of one model call; an unknown price counts as unpriced only if tokens were used."""
    unpriced = int(cost_usd is None and usage.total_tokens > 0)
    return Spend(usage, cost_usd or 0.0, unpriced, 1)
