"""Token counts that no provider reported, estimated and marked so."""

from xclaw.contracts.models import ModelRequest
from xclaw.contracts.tokens import MESSAGE_OVERHEAD, estimate_tokens, image_tokens
from xclaw.contracts.usage import Usage


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
            shown = [image for image in message.images if image.sha256 in request.images]
            total += sum(image_tokens(image.width, image.height) for image in shown)
    return total + sum(estimate_tokens(f"{tool.description}{tool.parameters}") for tool in request.tools)
