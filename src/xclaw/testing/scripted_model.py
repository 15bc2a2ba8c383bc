"""Models without a network: replies from a script, or from a function of the request.

Both hold no state. A `ScriptedModel` finds its place by counting the assistant messages after the
last instruction of the conversation, so a resumed run goes on where it was. A compaction in the
middle of a request removes messages from that count and so repeats replies.
"""

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import assert_never

import msgspec

from xclaw.contracts.errors import ModelError, ModelInterrupted, ModelRejected, ModelUnavailable, UsageError
from xclaw.contracts.messages import AssistantMessage, ChatMessage, ToolCall, ToolMessage, UserMessage
from xclaw.contracts.models import ModelProfile, ModelReply, ModelRequest, ReplySink
from xclaw.contracts.tokens import MESSAGE_OVERHEAD, estimate_tokens
from xclaw.contracts.usage import Usage
from xclaw.testing.placeholders import Conversation, Unfilled
from xclaw.testing.script_files import (
    Failure,
    ScriptedCall,
    ScriptedReply,
    ScriptEntry,
    load_script,
)

STREAMED_PIECES = 4
"""Into how many deltas a text is cut at most."""

ReplySpec = str | Mapping[str, object] | ScriptedReply
"""A text, a reply as a script file writes it, or one that has been read."""
Script = Mapping[str, Sequence[ReplySpec]]
"""Replies by agent; the agent "" stands for any."""
ReplyFunction = Callable[[ModelRequest], ReplySpec | Awaitable[ReplySpec]]

_SCRIPTED = ModelProfile(scripted=True, input_usd_per_million=0.0, output_usd_per_million=0.0)


class ScriptedModel:
    """A `Model` that answers by agent and by how far the conversation is.

    Raises what a reply's `fail` says, and `ModelRejected` when the script has no reply left.
    """

    def __init__(
        self,
        script: Script | Sequence[ScriptEntry],
        *,
        name: str = "script:python",
        profile: ModelProfile = _SCRIPTED,
    ) -> None:
        """Raises `UsageError` for a reply that is none."""
        entries = _entries_of(script, name) if isinstance(script, Mapping) else script
        self._entries = [(entry, re.compile(entry.when)) for entry in entries]
        self._name = name
        self._profile = profile

    @classmethod
    def from_file(cls, path: Path, *, profile: ModelProfile = _SCRIPTED) -> "ScriptedModel":
        """The model `script:PATH`. Raises `UsageError` naming the file, the entry and the reason."""
        return cls(load_script(path), name=f"script:{path}", profile=profile)

    @property
    def name(self) -> str:
        return self._name

    @property
    def profile(self) -> ModelProfile:
        return self._profile

    async def reply(self, request: ModelRequest, sink: ReplySink) -> ModelReply:
        return await _perform(self._find(request), request, sink, self._name)

    def _find(self, request: ModelRequest) -> ScriptedReply:
        instruction, index = _place(request)
        for entry, when in self._entries:
            if entry.agent in ("", request.agent) and when.search(instruction):
                if index < len(entry.replies):
                    return entry.replies[index]
                raise ModelRejected(
                    f"{self._name}: the script of agent {request.agent!r} has {len(entry.replies)} "
                    f"replies for this request, number {index + 1} was asked for"
                )
        raise ModelRejected(
            f"{self._name}: no entry answers agent {request.agent!r} (reply number {index + 1}) "
            f"on {instruction[:80]!r}"
        )


class FunctionModel:
    """A `Model` that answers with whatever `function` makes of the request.

    The function may be async; what it raises comes out of `reply`, and cancelling `reply` cancels it.
    """

    def __init__(
        self,
        function: ReplyFunction,
        *,
        name: str = "script:function",
        profile: ModelProfile = _SCRIPTED,
    ) -> None:
        self._function = function
        self._name = name
        self._profile = profile

    @property
    def name(self) -> str:
        return self._name

    @property
    def profile(self) -> ModelProfile:
        return self._profile

    async def reply(self, request: ModelRequest, sink: ReplySink) -> ModelReply:
        answer = self._function(request)
        if inspect.isawaitable(answer):
            answer = await answer
        return await _perform(_reply_from(answer, self._name), request, sink, self._name)


def _entries_of(script: Script, name: str) -> list[ScriptEntry]:
    return [
        ScriptEntry(
            agent=agent,
            replies=tuple(
                _reply_from(spec, f"{name}, agent {agent!r}, reply {number}")
                for number, spec in enumerate(specs, 1)
            ),
        )
        for agent, specs in script.items()
    ]


def _reply_from(spec: ReplySpec, where: str) -> ScriptedReply:
    if isinstance(spec, ScriptedReply):
        return spec
    if isinstance(spec, str):
        return ScriptedReply(text=spec)
    try:
        return msgspec.convert(spec, ScriptedReply)
    except msgspec.ValidationError as error:
        raise UsageError(f"{where}: {error}") from None


def _place(request: ModelRequest) -> tuple[str, int]:
    """The instruction that is being worked on, and how many replies it has had."""
    index = 0
    for message in reversed(request.messages):
        match message:
            case AssistantMessage():
                index += 1
            case UserMessage(origin="user" | "agent"):
                return message.text, index
            case _:
                pass
    return "", index


async def _perform(scripted: ScriptedReply, request: ModelRequest, sink: ReplySink, name: str) -> ModelReply:
    """Stream a reply and answer it, or fail as it says."""
    started = asyncio.get_running_loop().time()
    conversation = Conversation(
        [_text_of(m) for m in request.messages if not isinstance(m, AssistantMessage)]
    )
    try:
        if scripted.fail is not None:
            partial = conversation.fill(scripted.after)
            await _stream(partial, sink)
            raise _failure(scripted.fail, partial, request, name)
        message = _message(scripted, conversation, native=bool(request.tools))
    except Unfilled as error:
        raise ModelRejected(f"{name}, agent {request.agent!r}: {error}") from None
    await _stream(message.text, sink)
    return ModelReply(
        message=message,
        usage=_usage(request, message),
        model=name,
        finish="tool_calls" if message.tool_calls else "stop",
        cost_usd=0.0,
        first_token_s=asyncio.get_running_loop().time() - started,
    )


def _message(scripted: ScriptedReply, conversation: Conversation, *, native: bool) -> AssistantMessage:
    text = _json_or_text(scripted.text, conversation)
    if native:
        calls = tuple(
            ToolCall(f"call_{number}", call.name, _json_or_text(call.arguments, conversation))
            for number, call in enumerate(scripted.calls)
        )
        return AssistantMessage(text, calls)
    actions = [_action(call, conversation) for call in scripted.calls]
    return AssistantMessage("\n".join([text, *actions] if text else actions))


def _action(call: ScriptedCall, conversation: Conversation) -> str:
    """A call in the JSON dialect; arguments that are a string stand for the whole action."""
    if isinstance(call.arguments, str):
        return conversation.fill(call.arguments)
    return _json_or_text({"action": call.name, **call.arguments}, conversation)


def _json_or_text(value: str | dict[str, object] | None, conversation: Conversation) -> str:
    if isinstance(value, dict):
        return msgspec.json.encode(conversation.fill_all(value)).decode()
    return conversation.fill(value or "")


async def _stream(text: str, sink: ReplySink) -> None:
    size = max(-(-len(text) // STREAMED_PIECES), 1)
    for start in range(0, len(text), size):
        sink.on_text(text[start : start + size])
        await asyncio.sleep(0)


def _failure(fail: Failure, partial: str, request: ModelRequest, name: str) -> ModelError:
    usage = _usage(request, AssistantMessage(partial))
    text = f"{name}: scripted failure ({fail})"
    if fail == "unavailable":
        return ModelUnavailable(text, status=503, usage=usage, partial=partial)
    if fail == "rejected":
        return ModelRejected(text, status=400, usage=usage, partial=partial)
    return ModelInterrupted(text, usage=usage, partial=partial)


def _usage(request: ModelRequest, answer: AssistantMessage) -> Usage:
    texts = [request.instructions, *(_text_of(message) for message in request.messages)]
    asked = sum(estimate_tokens(text) + MESSAGE_OVERHEAD for text in texts)
    return Usage(asked, estimate_tokens(_text_of(answer)), estimated=True)


def _text_of(message: ChatMessage) -> str:
    """All that a message says, its calls included."""
    match message:
        case UserMessage():
            return message.text
        case ToolMessage():
            return message.content
        case AssistantMessage():
            return "\n".join(
                [message.text, *(f"{call.name} {call.arguments}" for call in message.tool_calls)]
            )
        case _:
            assert_never(message)
