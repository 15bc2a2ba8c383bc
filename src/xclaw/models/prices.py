"""What calls cost, from the user's prices and then from the public list that `genai-prices` carries."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from xclaw.contracts.usage import Usage
from xclaw.models.settings import Price

if TYPE_CHECKING:
    from decimal import Decimal

    from genai_prices.types import ModelPrice, TieredPrices

FREE_PROVIDERS = frozenset({"local", "script"})
_MILLION = 1_000_000

Pricing = Callable[[Usage], float | None]


class PriceBook:
    """Prices by `provider:model`. A price that is not known is None, never 0."""

    def __init__(self, overrides: Mapping[str, Price], list_names: Mapping[str, str]) -> None:
        """`list_names`: what the public list calls a provider; others are not in it."""
        self._overrides = overrides
        self._list_names = list_names
        self._pricings: dict[str, Pricing] = {}

    def cost_usd(self, model: str, usage: Usage) -> float | None:
        """US dollars of a call of `model`."""
        pricing = self._pricings.get(model)
        if pricing is None:
            pricing = self._pricings[model] = self._pricing(model)
        return pricing(usage)

    def _pricing(self, model: str) -> Pricing:
        provider, _, name = model.partition(":")
        override = self._overrides.get(model) or self._overrides.get(name)
        if override is not None:
            return lambda usage: _cost(usage, override)
        if provider in FREE_PROVIDERS:
            return lambda usage: 0.0
        list_name = self._list_names.get(provider)
        return _listed(list_name, name) if list_name else _unknown


def _unknown(_usage: Usage) -> float | None:
    return None


def _cost(usage: Usage, price: Price) -> float:
    cached_usd = price.input_usd if price.cached_usd is None else price.cached_usd
    fresh = usage.input_tokens - usage.cached_tokens
    total = (
        fresh * price.input_usd + usage.cached_tokens * cached_usd + usage.output_tokens * price.output_usd
    )
    return total / _MILLION


def _listed(provider: str, name: str) -> Pricing:
    # A third of a second, which only runs that call a priced provider should pay.
    import genai_prices  # noqa: PLC0415 - see above

    try:
        found = genai_prices.calc_price(genai_prices.Usage(input_tokens=1), name, provider_id=provider)
    except (LookupError, ValueError, TypeError):
        return _unknown
    model, listing, one_price = found.model, found.provider, _OnePrice()

    def pricing(usage: Usage) -> float | None:
        now = datetime.now(UTC)  # some providers are cheaper at night
        rates = one_price.rates(model.get_prices(now))
        if rates is not None:
            return _listed_cost(usage, rates)
        counts = genai_prices.Usage(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read_tokens=usage.cached_tokens,
        )
        try:
            return float(model.calc_price(counts, listing, genai_request_timestamp=now).total_price)
        except (LookupError, ValueError, TypeError):
            return None

    return pricing


_Rate = list[tuple[int, float]]
"""Dollars per million by the least number of input tokens, the highest first."""
_Rates = tuple[_Rate, _Rate, _Rate]
_UNUSUAL = ("requests_kcount", "output_reasoning_mtok", "input_mchars", "audio_hours", "input_audio_hours")
"""Prices that a plain count of tokens does not cover: the library's own, slower sum is asked."""


class _OnePrice:
    """The rates of the price that was last asked for: it hardly ever changes."""

    def __init__(self) -> None:
        self._price: ModelPrice | None = None
        self._rates: _Rates | None = None

    def rates(self, price: "ModelPrice") -> _Rates | None:
        if price is not self._price:
            self._price = price
            self._rates = _rates_of(vars(price))
        return self._rates


def _rates_of(prices: Mapping[str, object]) -> _Rates | None:
    if prices.get("input_mtok") is None or any(prices.get(key) is not None for key in _UNUSUAL):
        return None
    fresh, output = _rate(prices["input_mtok"]), _rate(prices.get("output_mtok"))
    cached = prices.get("cache_read_mtok")
    return fresh, fresh if cached is None else _rate(cached), output


def _rate(price: object) -> _Rate:
    tiers: _Rate = []
    base = price
    if hasattr(price, "tiers"):
        tiered = cast("TieredPrices", price)
        tiers = [(tier.start, float(tier.price)) for tier in reversed(tiered.tiers)]
        base = tiered.base
    return [*tiers, (-1, float(cast("Decimal", base or 0)))]


def _listed_cost(usage: Usage, rates: _Rates) -> float:
    counts = (usage.input_tokens - usage.cached_tokens, usage.cached_tokens, usage.output_tokens)
    total = 0.0
    for count, rate in zip(counts, rates, strict=True):
        total += count * next(usd for start, usd in rate if usage.input_tokens > start)
    return total / _MILLION
