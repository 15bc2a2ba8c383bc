"""One request as the wire wants it, and what an endpoint turned out not to take."""

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, cast

import msgspec

from xclaw.contracts.messages import AssistantMessage, ChatMessage, ImageRef, ToolCall
from xclaw.contracts.models import ModelRequest, ToolSpec
from xclaw.models.openai.surrogates import sendable
from xclaw.models.pictures import pictures_of, shown_after_tools, unseen_note

MAX_NAME = 64
MAX_CALL_ID = 64
NO_PICTURES: Mapping[str, bytes] = MappingProxyType({})
_CACHED_TOOL_SETS = 64
_BAD_NAME = re.compile(r"[^A-Za-z0-9_-]")
_encode = msgspec.json.Encoder().encode
_object_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])

OutputLimitField = Literal["max_tokens", "max_completion_tokens"]


@dataclass(slots=True)
class WireHabits:
    """What one endpoint takes. Begins as its provider is known to be; `learn` notes what it refuses."""

    output_limit: OutputLimitField = "max_tokens"
    call_id_length: int = MAX_CALL_ID
    """Longer ids are replaced by a digest of this length."""
    usage_option: bool = True
    response_format: bool = True
    temperature: bool = True
    send_reasoning: bool = False
    """Return what the model reasoned with its earlier answers."""
    output_limit_settled: bool = False
    reasoning_settled: bool = False

    def learn(self, sent: frozenset[str], complaint: str) -> bool:
        """Note what a 400 complains about. True when the same request, built anew, will differ."""
        complaint = complaint.lower()
        if self._learn_output_limit(sent, complaint) or self._learn_reasoning(complaint):
            return True
        if "temperature" in sent and "temperature" in complaint:
            self.temperature = False
        elif "response_format" in sent and re.search("response_?format|json_?schema|structured", complaint):
            self.response_format = False
        elif "stream_options" in sent and re.search(
            "stream_options|include_usage|(extra|unknown|unrecogni[sz]ed|unsupported|unexpected|additional)"
            ".{0,30}(field|param|argument|input|propert|key|request)",
            complaint,
        ):
            self.usage_option = False
        else:
            return False
        return True

    def _learn_output_limit(self, sent: frozenset[str], complaint: str) -> bool:
        if self.output_limit_settled or self.output_limit not in sent or self.output_limit not in complaint:
            return False
        if not re.search("unsupported|not supported|unrecogni|unknown|unexpected|extra|instead", complaint):
            return False  # a value it does not like
        other = self.output_limit == "max_tokens"
        self.output_limit = "max_completion_tokens" if other else "max_tokens"
        self.output_limit_settled = True
        return True

    def _learn_reasoning(self, complaint: str) -> bool:
        if self.reasoning_settled or "reasoning_content" not in complaint:
            return False
        self.send_reasoning = not self.send_reasoning
        self.reasoning_settled = True
        return True


class RequestEncoder:
    """Builds bodies for one model. Encodes each set of tools once."""

    __slots__ = ("_model", "_sees", "_tool_sets")

    def __init__(self, model: str, *, sees: bool = False) -> None:
        """`sees`: it can be shown pictures."""
        self._model = model
        self._sees = sees
        self._tool_sets: dict[tuple[int, ...], tuple[tuple[ToolSpec, ...], msgspec.Raw]] = {}
        """By the identities of the specifications, which all runs of an agent share."""

    def body(self, request: ModelRequest, habits: WireHabits) -> tuple[bytes, frozenset[str]]:
        """The encoded body and the names of its optional fields."""
        pictures = request.images if self._sees else NO_PICTURES
        fields: dict[str, object] = {
            "model": self._model,
            "messages": wire_messages(request.instructions, request.messages, habits, pictures),
            "stream": True,
        }
        if habits.usage_option:
            fields["stream_options"] = {"include_usage": True}
        if request.tools:
            fields["tools"] = self._tools(request.tools)
        if request.output_schema is not None and habits.response_format:
            fields["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": request.output_schema},
            }
        if request.max_output_tokens is not None:
            fields[habits.output_limit] = request.max_output_tokens
        if request.temperature is not None and habits.temperature:
            fields["temperature"] = request.temperature
        sent = frozenset(fields) | ({"pictures"} if pictures else set[str]())
        return _encoded(fields), sent

    def _tools(self, tools: tuple[ToolSpec, ...]) -> msgspec.Raw:
        key = tuple(map(id, tools))
        known = self._tool_sets.get(key)
        if known is not None:
            return known[1]
        if len(self._tool_sets) >= _CACHED_TOOL_SETS:
            self._tool_sets.clear()
        raw = msgspec.Raw(_encoded([_wire_tool(tool) for tool in tools]))
        self._tool_sets[key] = (tools, raw)  # holding the tools keeps their ids from being reused
        return raw


def wire_messages(
    instructions: str,
    messages: Sequence[ChatMessage],
    habits: WireHabits,
    pictures: Mapping[str, bytes] = NO_PICTURES,
) -> list[dict[str, object]]:
    """The conversation as the wire has it, the system message first. `pictures`: by sha256.

    A tool message holds text alone, so its pictures come in a user message behind the last one of the turn.
    """
    wire: list[dict[str, object]] = []
    if instructions:
        wire.append({"role": "system", "content": sendable(instructions)})
    shown: list[ImageRef] = []
    for message in messages:
        if message.kind == "tool":
            call_id = _call_id(message.call_id, habits.call_id_length)
            text = sendable(message.content + unseen_note(message.images, pictures))
            wire.append({"role": "tool", "tool_call_id": call_id, "content": text})
            shown += [image for image in message.images if image.sha256 in pictures]
            continue
        wire += _after_tools(shown, pictures)
        shown = []
        if message.kind == "user":
            text = sendable(message.text + unseen_note(message.images, pictures))
            parts = _picture_parts(message.images, pictures)
            content = [{"type": "text", "text": text}, *parts] if parts else text
            wire.append({"role": "user", "content": content})
        else:
            wire.append(_wire_answer(message, habits))
    return [*wire, *_after_tools(shown, pictures)]


def _wire_answer(message: AssistantMessage, habits: WireHabits) -> dict[str, object]:
    entry: dict[str, object] = {"role": "assistant", "content": sendable(message.text)}
    if message.tool_calls:
        entry["content"] = entry["content"] or None
        entry["tool_calls"] = [_wire_call(call, habits) for call in message.tool_calls]
    if habits.send_reasoning:
        entry["reasoning_content"] = sendable(message.reasoning)
    return entry


def _after_tools(images: Sequence[ImageRef], pictures: Mapping[str, bytes]) -> list[dict[str, object]]:
    if not images:
        return []
    said = {"type": "text", "text": sendable(shown_after_tools(images))}
    return [{"role": "user", "content": [said, *_picture_parts(images, pictures)]}]


def _picture_parts(images: Sequence[ImageRef], pictures: Mapping[str, bytes]) -> list[dict[str, object]]:
    return [
        {"type": "image_url", "image_url": {"url": f"data:{one.media_type};base64,{_base64(one.content)}"}}
        for one in pictures_of(images, pictures)
    ]


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def wire_name(name: str) -> str:
    """A name that the wire takes: a model may have invented it, and some invent prose."""
    return _BAD_NAME.sub("_", name)[:MAX_NAME] or "unknown"


def _wire_tool(tool: ToolSpec) -> dict[str, object]:
    function = {
        "name": wire_name(tool.name),
        "description": sendable(tool.description),
        "parameters": tool.parameters,
    }
    return {"type": "function", "function": function}


def _wire_call(call: ToolCall, habits: WireHabits) -> dict[str, object]:
    return {
        "id": _call_id(call.id, habits.call_id_length),
        "type": "function",
        "function": {"name": wire_name(call.name), "arguments": sent_arguments(call.arguments)},
    }


def _call_id(call_id: str, length: int) -> str:
    if 0 < len(call_id) <= length and call_id.isascii() and (length == MAX_CALL_ID or call_id.isalnum()):
        return call_id
    return hashlib.sha256(call_id.encode("utf-8", "replace")).hexdigest()[:length]


def sent_arguments(arguments: str) -> str:
    """A call's arguments as JSON of an object. Malformed ones would make servers refuse the whole conversation, now and for ever."""
    try:
        _object_decoder.decode(arguments)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return "{}"
    return sendable(arguments)


def _encoded(fields: object) -> bytes:
    try:
        return _encode(fields)
    except UnicodeEncodeError:  # a tool's schema with half a character in it
        return _encode(_scrubbed(fields))


def _scrubbed(value: object) -> object:
    if isinstance(value, str):
        return sendable(value)
    if isinstance(value, dict):
        items = cast("dict[object, object]", value).items()
        return {_scrubbed(key): _scrubbed(item) for key, item in items}
    if isinstance(value, list | tuple):
        return [_scrubbed(item) for item in cast("Sequence[object]", value)]
    return value
