"""How large a message is in a request: one estimate for trigger, cut point and limits."""

from xclaw.contracts.messages import AssistantMessage, ChatMessage, ImageRef, ToolMessage, UserMessage
from xclaw.contracts.tokens import MESSAGE_OVERHEAD, estimate_tokens, image_tokens
from xclaw.loop.arguments import safe_arguments

LONG_CHARS = 4_000


def message_tokens(message: ChatMessage) -> int:
    """Estimated tokens that a message takes in a request."""
    match message:
        case UserMessage():
            return MESSAGE_OVERHEAD + estimate_tokens(message.text) + _shown_tokens(message.images)
        case ToolMessage():
            return MESSAGE_OVERHEAD + estimate_tokens(message.content) + _shown_tokens(message.images)
        case AssistantMessage():
            calls = sum(_sent_tokens(c.arguments) + MESSAGE_OVERHEAD for c in message.tool_calls)
            return MESSAGE_OVERHEAD + estimate_tokens(message.text) + calls


def _shown_tokens(images: tuple[ImageRef, ...]) -> int:
    return sum(image_tokens(image.width, image.height) for image in images)


def _sent_tokens(arguments: str) -> int:
    """Of a call's arguments. What is long and no JSON is sent back as `{}`, so it takes no room."""
    if len(arguments) > LONG_CHARS and safe_arguments(arguments) == "{}":
        return 1
    return estimate_tokens(arguments)
