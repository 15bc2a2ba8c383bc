"""How large a message is in a request: one estimate for trigger, cut point and limits."""

from xclaw.contracts.messages import AssistantMessage, ChatMessage, ToolMessage, UserMessage
from xclaw.contracts.tokens import MESSAGE_OVERHEAD, estimate_tokens
from xclaw.loop.arguments import safe_arguments

LONG_CHARS = 4_000


def message_tokens(message: ChatMessage) -> int:
    """Estimated tokens that a message takes in a request."""
    match message:
        case UserMessage():
            return MESSAGE_OVERHEAD + estimate_tokens(message.text)
        case ToolMessage():
            return MESSAGE_OVERHEAD + estimate_tokens(message.content)
        case AssistantMessage():
            calls = sum(_sent_tokens(c.arguments) + MESSAGE_OVERHEAD for c in message.tool_calls)
            return MESSAGE_OVERHEAD + estimate_tokens(message.text) + calls


def _sent_tokens(arguments: str) -> int:
    """Of a call's arguments. What is long and no JSON is sent back as `{}`, so it takes no room."""
    if len(arguments) > LONG_CHARS and safe_arguments(arguments) == "{}":
        return 1
    return estimate_tokens(arguments)
