"""The two ways to ask for tools: the provider's own tool calls, and JSON actions as the only output.

A dialect turns the neutral conversation into what a request says, and a reply into calls or an answer.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from xclaw.contracts.messages import AssistantMessage, ChatMessage, ToolMessage, UserMessage
from xclaw.contracts.models import ModelProfile, ToolSpec
from xclaw.loop.actions import (
    Actions,
    Answer,
    Malformed,
    action_schema,
    parse_reply,
    render_calls,
    render_output,
)


@dataclass(frozen=True, slots=True)
class Asked:
    """The model asked for tools: (name, arguments JSON text) in order."""

    calls: tuple[tuple[str, str], ...]
    text: str = ""


Reading = Asked | Answer | Malformed


class Dialect(Protocol):
    """Stateless; shared by all runs that use it."""

    @property
    def holds_json(self) -> bool:
        """Streamed text that starts like JSON is held back until it is known to be an answer."""
        ...

    def messages(self, view: list[ChatMessage]) -> Sequence[ChatMessage]: ...

    def tools(self, specs: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]: ...

    def output_schema(
        self, specs: tuple[ToolSpec, ...], final: dict[str, object] | None, profile: ModelProfile
    ) -> dict[str, object] | None:
        """A JSON Schema for the reply, where the model honours one; `final` is the result form."""
        ...

    def read(self, message: AssistantMessage, tools: Collection[str]) -> Reading: ...


class NativeDialect:
    """The provider's tool calls. A model that writes a known action as its whole reply is understood too."""

    @property
    def holds_json(self) -> bool:
        return False

    def messages(self, view: list[ChatMessage]) -> Sequence[ChatMessage]:
        return view

    def tools(self, specs: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
        return specs

    def output_schema(
        self, specs: tuple[ToolSpec, ...], final: dict[str, object] | None, profile: ModelProfile
    ) -> dict[str, object] | None:
        if final is None:
            return None
        fits = profile.structured_output == "with_tools" or not specs
        return final if fits and profile.structured_output != "none" else None

    def read(self, message: AssistantMessage, tools: Collection[str]) -> Reading:
        if message.tool_calls:
            return Asked(tuple((c.name, c.arguments) for c in message.tool_calls), message.text)
        text = message.text.strip()
        if not tools or not text.startswith(("{", "[", "```", "~~~")):
            return Answer(message.text)
        reading = parse_reply(message.text, tools)
        match reading:
            case Actions():
                known = all(name in tools for name, _ in reading.calls)
                return Asked(reading.calls) if known else Answer(message.text)
            case Malformed() if text.startswith("{"):
                return reading
            case _:
                return Answer(message.text)


class JsonDialect:
    """JSON actions (seed 000, section 3): the action is the only output, the result a "tool output:"."""

    @property
    def holds_json(self) -> bool:
        return True

    def messages(self, view: list[ChatMessage]) -> Sequence[ChatMessage]:
        return [_as_text(message) for message in view]

    def tools(self, specs: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
        return ()

    def output_schema(
        self, specs: tuple[ToolSpec, ...], final: dict[str, object] | None, profile: ModelProfile
    ) -> dict[str, object] | None:
        if profile.structured_output == "none":
            return None
        return action_schema(specs, final)

    def read(self, message: AssistantMessage, tools: Collection[str]) -> Reading:
        if message.tool_calls:
            return Asked(tuple((c.name, c.arguments) for c in message.tool_calls), message.text)
        reading = parse_reply(message.text, tools)
        return Asked(reading.calls) if isinstance(reading, Actions) else reading


def _as_text(message: ChatMessage) -> ChatMessage:
    match message:
        case AssistantMessage(tool_calls=calls) if calls:
            return AssistantMessage(render_calls(calls))
        case ToolMessage():
            return UserMessage(render_output(message.name, message.content), "runtime", message.images)
        case _:
            return message
