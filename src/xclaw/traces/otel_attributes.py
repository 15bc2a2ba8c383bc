"""Values of exported spans: bounded, since names may come from a model and numbers from a provider."""

from xclaw.contracts.events import AttemptFailed
from xclaw.contracts.usage import Usage
from xclaw.traces import otel_names as names
from xclaw.traces.otel_content import shortened

Attribute = str | int | float | bool | tuple[str, ...]
MAX_NAME = 200
"""Characters of names and ids."""
MAX_INTEGER = 2**63 - 1


def used(usage: Usage, cost_usd: float | None) -> dict[str, Attribute]:
    found: dict[str, Attribute] = {
        names.INPUT_TOKENS: bounded(usage.input_tokens),
        names.OUTPUT_TOKENS: bounded(usage.output_tokens),
    }
    if usage.cached_tokens:
        found[names.CACHED_TOKENS] = bounded(usage.cached_tokens)
    if usage.reasoning_tokens:
        found[names.REASONING_TOKENS] = bounded(usage.reasoning_tokens)
    if usage.estimated:
        found[names.ESTIMATED] = True
    if cost_usd is not None:
        found[names.COST_USD] = cost_usd
    return found


def attempt_error(event: AttemptFailed) -> str:
    """Of few values, as `error.type` has to be."""
    if event.status is not None:
        return str(event.status)
    return event.error if event.error == "cancelled" else names.OTHER_ERROR


def provider_and_model(model: str) -> tuple[str, str]:
    """Provider, as the conventions call it, and model of `provider:model`."""
    provider, _, name = model.partition(":")
    return names.PROVIDERS.get(provider, short(provider)), short(name or provider)


def titled(operation: str, what: str) -> str:
    return f"{operation} {short(what)}" if what else operation


def short(text: str) -> str:
    return shortened(text, MAX_NAME)


def bounded(number: int) -> int:
    return max(0, min(number, MAX_INTEGER))
