"""Token counts as the wire reports them."""

from typing import cast

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
