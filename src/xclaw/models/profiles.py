"""What each model can do: built-in knowledge, then the user's corrections."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import get_args

from xclaw.contracts.errors import UsageError
from xclaw.contracts.models import ModelProfile, StructuredOutput
from xclaw.contracts.usage import Usage
from xclaw.models.prices import PriceBook
from xclaw.models.providers import CONTEXT_TOKENS, SEEING

_THOUSAND = 1_000
_INTEGERS = frozenset({"context_tokens", "max_output_tokens"})
_BOOLEANS = frozenset({"native_tools", "few_shots", "images"})
_NUMBERS = frozenset({"worker_timeout_s"})
_SETTABLE = sorted({"structured_output"} | _INTEGERS | _BOOLEANS | _NUMBERS)


def profile_of(model: str, start: ModelProfile, prices: PriceBook) -> ModelProfile:
    """The built-in profile of `provider:model` with its prices."""
    window = next((tokens for prefix, tokens in CONTEXT_TOKENS if model.startswith(prefix)), None)
    input_usd = prices.cost_usd(model, Usage(input_tokens=_THOUSAND))
    output_usd = prices.cost_usd(model, Usage(output_tokens=_THOUSAND))
    return replace(
        start,
        context_tokens=window or start.context_tokens,
        images=start.images or model.startswith(SEEING),
        input_usd_per_million=None if input_usd is None else input_usd * _THOUSAND,
        output_usd_per_million=None if output_usd is None else output_usd * _THOUSAND,
    )


def corrected(model: str, profile: ModelProfile, corrections: Mapping[str, object]) -> ModelProfile:
    """`profile` with the user's fields. Raises `UsageError` for a field or value that does not exist."""
    known = {item.name for item in fields(ModelProfile)}
    for name, value in corrections.items():
        if name not in known or name not in _SETTABLE:
            raise UsageError(f"profile of {model!r}: no field {name!r}; there are {', '.join(_SETTABLE)}")
        if not _fits(name, value):
            raise UsageError(f"profile of {model!r}: {name} = {value!r} is not a value it can have")
    return replace(profile, **corrections) if corrections else profile


def _fits(name: str, value: object) -> bool:
    if name in _BOOLEANS:
        return isinstance(value, bool)
    if isinstance(value, bool):
        return False
    if name in _INTEGERS:
        return isinstance(value, int) and value > 0
    if name in _NUMBERS:
        return isinstance(value, int | float) and value > 0
    return value in get_args(StructuredOutput)
