"""What the models room must be told: the chain, endpoints with their keys, prices, time-outs."""

from collections.abc import Mapping
from dataclasses import dataclass, field


def _no_headers() -> dict[str, str]:
    return {}


def _no_providers() -> "dict[str, ProviderSettings]":
    return {}


def _no_prices() -> "dict[str, Price]":
    return {}


def _no_profiles() -> dict[str, Mapping[str, object]]:
    return {}


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """One endpoint. Neither the key nor the headers show in its repr: they may be secrets."""

    base_url: str | None = None
    """Up to and including "/v1"; None: the provider's own."""
    api_key: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=_no_headers, repr=False)
    """Sent with every request, after (and so instead of) the adapter's own."""
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    max_concurrent: int | None = None


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens."""

    input_usd: float
    output_usd: float
    cached_usd: float | None = None
    """Of input tokens read from the provider's cache; None: as `input_usd`."""


@dataclass(frozen=True, slots=True)
class BreakerSettings:
    """When a model that keeps failing is left alone, and for how long."""

    failures: int = 5
    """Outages in a row that open the breaker."""
    open_s: float = 20.0
    """The first pause; doubles with each failed probe."""
    max_open_s: float = 300.0


@dataclass(frozen=True, slots=True)
class ModelsSettings:
    """Mappings are keyed by provider name (`providers`) or `provider:model` (`prices`, `profiles`)."""

    chain: tuple[str, ...] = ()
    """The fallback chain of agents that name none, as `provider:model` strings."""
    providers: Mapping[str, ProviderSettings] = field(default_factory=_no_providers)
    prices: Mapping[str, Price] = field(default_factory=_no_prices)
    profiles: Mapping[str, Mapping[str, object]] = field(default_factory=_no_profiles)
    """Fields of `ModelProfile` that replace the built-in ones."""
    retries: int = 2
    """Further tries of the same model after an outage or a broken stream."""
    backoff_s: float = 0.5
    """The first wait when the provider names none; doubles with each retry."""
    max_retry_wait_s: float = 60.0
    """No wait is longer, whatever a provider asks for."""
    connect_timeout_s: float = 10.0
    first_byte_timeout_s: float = 120.0
    idle_timeout_s: float = 60.0
    """How long a stream may be silent."""
    call_timeout_s: float = 1800.0
    """How long one call may take as a whole, keep-alive comments or not."""
    breaker: BreakerSettings = BreakerSettings()
