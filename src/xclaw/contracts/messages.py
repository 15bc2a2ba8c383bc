"""What is said: the conversation of one agent, and the message that enters through the gateway.

The conversation is neutral: it knows neither a provider's wire nor a tool-call dialect. Both are
applied when a request is built, so a history outlives a change of model.
"""

from dataclasses import dataclass
from typing import Literal

Origin = Literal["user", "agent", "runtime", "notification", "summary"]
"""Who wrote the text of a `UserMessage`. Only "user" and "agent" (a parent's task) give instructions;
the others are data that the runtime put there."""

Caller = Literal["user", "agent"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call as the model wrote it. `arguments` is JSON text, possibly malformed.

    `id` is the runtime's: unique in its run, at most 64 characters. What a provider called it is
    not kept, since providers reuse ids.
    """

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ImageRef:
    """A picture in a file of the run. Its bytes are read when a request is built, and are never stored."""

    path: str
    """As the workspace of the run names it."""
    sha256: str
    media_type: str
    width: int
    """Pixels."""
    height: int
    size: int
    """Bytes."""


@dataclass(frozen=True, slots=True)
class UserMessage:
    text: str
    origin: Origin = "user"
    images: tuple[ImageRef, ...] = ()
    kind: Literal["user"] = "user"


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""
    kind: Literal["assistant"] = "assistant"


@dataclass(frozen=True, slots=True)
class ToolMessage:
    """The answer to one tool call. Always data, never parsed as an action."""

    call_id: str
    name: str
    content: str
    ok: bool = True
    images: tuple[ImageRef, ...] = ()
    kind: Literal["tool"] = "tool"


ChatMessage = UserMessage | AssistantMessage | ToolMessage
"""One item of a conversation. The system prompt is not in it: `ModelRequest.instructions` has it."""


@dataclass(frozen=True, slots=True)
class Said:
    """A `ChatMessage` in one shape, as an event keeps a conversation that a client brought along."""

    role: Literal["user", "assistant", "tool"]
    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    name: str = ""
    origin: Origin = "user"

    @classmethod
    def of(cls, message: ChatMessage) -> "Said":
        match message:
            case UserMessage():
                return cls("user", message.text, origin=message.origin)
            case AssistantMessage():
                return cls("assistant", message.text, message.tool_calls)
            case ToolMessage():
                return cls("tool", message.content, call_id=message.call_id, name=message.name)

    def as_message(self) -> ChatMessage:
        match self.role:
            case "user":
                return UserMessage(self.text, self.origin)
            case "assistant":
                return AssistantMessage(self.text, self.tool_calls)
            case "tool":
                return ToolMessage(self.call_id, self.name, self.text)


@dataclass(frozen=True, slots=True)
class Message:
    """What enters through a channel (SPEC A2)."""

    id: str
    session_id: str
    channel: str
    content: str
    timestamp: float
    type: str = "message"
    caller: Caller = "user"
    parent_session_id: str | None = None
