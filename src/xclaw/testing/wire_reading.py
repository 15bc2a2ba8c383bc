"""Reading a chat-completions request: roles and texts, whatever shape the content has."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast


@dataclass(frozen=True, slots=True)
class WireMessage:
    role: str
    text: str


def wire_messages(messages: object) -> list[WireMessage]:
    """The messages of a request; what is no message is left out."""
    if not isinstance(messages, list):
        return []
    found: list[WireMessage] = []
    for message in cast("list[object]", messages):
        if isinstance(message, dict):
            fields = cast("dict[str, object]", message)
            found.append(WireMessage(str(fields.get("role", "")), _text_of(fields.get("content"))))
    return found


def last_user_text(messages: Sequence[WireMessage]) -> str:
    """The text of the last user message; empty when there is none."""
    return next((message.text for message in reversed(messages) if message.role == "user"), "")


def asks_usage(body: Mapping[str, object]) -> bool:
    """Whether the request wants usage at the end of its stream."""
    options = body.get("stream_options")
    return isinstance(options, dict) and cast("dict[str, object]", options).get("include_usage") is True


def _text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = [
        cast("dict[str, object]", part) for part in cast("list[object]", content) if isinstance(part, dict)
    ]
    return "".join(str(part.get("text", "")) for part in parts)
