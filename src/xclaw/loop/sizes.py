"""How large a message is in a request: one estimate for trigger, cut point and limits."""

from xclaw.contracts.messages import AssistantMessage, ChatMessage, ToolMessage, UserMessage
from xclaw.contracts.tokens import MESSAGE_OVERHEAD, estimate_tokens


def message_tokens(message: ChatMessage) -> int:
    """Estimated tokens that a message takes in a request."""
    match message:
        case UserMessage():
            return MESSAGE_OVERHEAD + estimate_tokens(message.text)
        case ToolMessage():
            return MESSAGE_OVERHEAD + estimate_tokens(message.content)
        case AssistantMessage():
            calls = sum(estimate_tokens(c.arguments) + MESSAGE_OVERHEAD for c in message.tool_calls)
            return MESSAGE_OVERHEAD + estimate_tokens(message.text) + calls
