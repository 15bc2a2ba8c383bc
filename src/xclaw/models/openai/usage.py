"""Token counts as the wire reports them, and estimates where it does not."""

from typing import cast

from xclaw.contracts.models import ModelRequest
from xclaw.contracts.tokens import MESSAGE_OVERHEAD, estimate_tokens
from xclaw.contracts.usage import Usage

_MAX_TOKENS = 1_000_000_000


def usage_from_wire(report: object, known: Usage | None = None) -> Usage | None:
    """The counts in a `usage` object. One that reports nothing leaves what is `known`."""
    if not isinstance(report, dict):
        return known
    fields = cast("dict[str, object]", report)
    if isinstance(fields.get("usage"), dict):  # Groq wraps it
        return usage_from_wire(fields["usage"], known)
    input_tokens = _count(fields, "prompt_tokens", "input_tokens")
    output_tokens = _count(fields, "completion_tokens", "output_tokens")
    if not input_tokens and not output_tokens:
        return known
    cached = _detail(fields, ("prompt_tokens_details", "input_tokens_details"), "cached_tokens")
    cached = cached or _count(fields, "prompt_cache_hit_tokens", "cached_tokens")
    reasoning = _detail(fields, ("completion_tokens_details", "output_tokens_details"), "reasoning_tokens")
    return Usage(
        input_tokens,
        output_tokens,
        min(cached, input_tokens),
        min(reasoning or _count(fields, "reasoning_tokens"), output_tokens),
    )


def estimated_usage(request: ModelRequest, generated: str, reported: Usage | None) -> Usage:
    """`reported`, completed by estimates for what it leaves at 0 although it cannot be."""
    input_tokens = reported.input_tokens if reported else 0
    output_tokens = reported.output_tokens if reported else 0
    if reported and input_tokens and (output_tokens or not generated):
        return reported
    return Usage(
        input_tokens or estimated_input(request),
        output_tokens or (estimate_tokens(generated) if generated else 0),
        reported.cached_tokens if reported else 0,
        reported.reasoning_tokens if reported else 0,
        estimated=True,
    )


def estimated_input(request: ModelRequest) -> int:
    """Tokens of a request, about."""
    total = estimate_tokens(request.instructions) + MESSAGE_OVERHEAD
    for message in request.messages:
        total += MESSAGE_OVERHEAD
        if message.kind == "assistant":
            total += estimate_tokens(message.text)
            total += sum(estimate_tokens(call.name + call.arguments) for call in message.tool_calls)
        else:
            total += estimate_tokens(message.text if message.kind == "user" else message.content)
    return total + sum(estimate_tokens(f"{tool.description}{tool.parameters}") for tool in request.tools)


def _count(fields: dict[str, object], *names: str) -> int:
    for name in names:
        value = fields.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= _MAX_TOKENS:
            return int(value)
    return 0


def _detail(fields: dict[str, object], groups: tuple[str, str], name: str) -> int:
    for group in groups:
        details = fields.get(group)
        if isinstance(details, dict):
            return _count(cast("dict[str, object]", details), name)
    return 0
