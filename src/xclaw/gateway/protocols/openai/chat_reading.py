"""Chat completions: what a request says."""

from collections.abc import Sequence

import msgspec

from xclaw.gateway.protocols.openai.ask import Ask
from xclaw.gateway.protocols.openai.conversation import ConversationReader, WrittenCall
from xclaw.gateway.protocols.openai.formats import WrittenFormat, answer_format
from xclaw.gateway.protocols.openai.model_ids import agent_of, model_id
from xclaw.gateway.protocols.openai.reading import (
    Content,
    ProgressWish,
    read_body,
    refuse_present,
    text_of,
)
from xclaw.gateway.protocols.openai.refused import Refused
from xclaw.gateway.protocols.openai.tools import WrittenChoice, WrittenTool, tool_order
from xclaw.loop.json_blocks import encode_json
from xclaw.runtime.services import Agents

_OLD = "the old function calls are not supported; use tools"


class CalledFunction(msgspec.Struct):
    name: str
    arguments: str | dict[str, object] | None = None


class GivenCall(msgspec.Struct):
    """A tool call in a message of the assistant."""

    id: str = ""
    type: str | None = None
    function: CalledFunction | None = None


class ChatMessage(msgspec.Struct):
    """One message, of any role. What is null or missing is the same."""

    role: str
    content: Content = None
    refusal: str | None = None
    tool_calls: list[GivenCall] | None = None
    tool_call_id: str | None = None
    function_call: object = None


class StreamOptions(msgspec.Struct):
    include_usage: bool | None = None


class ChatBody(msgspec.Struct):
    """The fields that are looked at; all others are passed over."""

    messages: list[ChatMessage]
    model: str | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    tools: list[WrittenTool] | None = None
    tool_choice: str | WrittenChoice | None = None
    parallel_tool_calls: bool | None = None
    response_format: WrittenFormat | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    n: int | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    modalities: list[str] | None = None
    audio: object = None
    functions: object = None
    function_call: object = None
    xclaw: ProgressWish | None = None


def read_chat(raw: bytes, agents: Agents, *, with_progress: bool) -> Ask:
    """Raises `Refused`."""
    body = read_body(raw, ChatBody)
    agent = agent_of(body.model, agents)
    _refuse_unsupported(body)
    reader = ConversationReader()
    for index, message in enumerate(body.messages):
        _read_message(reader, message, f"messages[{index}]")
    text, history = reader.asked("messages")
    options = body.stream_options
    return Ask(
        model=model_id(agent),
        agent=agent,
        text=text,
        history=history,
        note=reader.note,
        tools=tool_order(body.tools, body.tool_choice, parallel=body.parallel_tool_calls is not False),
        format=answer_format(body.response_format, "response_format"),
        max_tokens=token_limit(
            (("max_completion_tokens", body.max_completion_tokens), ("max_tokens", body.max_tokens))
        ),
        is_streamed=bool(body.stream),
        with_usage=bool(options and options.include_usage),
        with_progress=with_progress and (body.xclaw is None or body.xclaw.progress),
    )


def token_limit(fields: Sequence[tuple[str, int | None]]) -> int | None:
    """The first that is set. Raises `Refused` for one below 1."""
    for name, value in fields:
        if value is not None and value < 1:
            raise Refused(f"{name} has to be at least 1", param=name)
    return next((value for _, value in fields if value is not None), None)


def _refuse_unsupported(body: ChatBody) -> None:
    refuse_present((("functions", body.functions), ("function_call", body.function_call)), _OLD)
    more_than_one = None if body.n in (None, 1) else body.n or True
    refuse_present((("n", more_than_one),), "one answer is all there is; leave it at 1")
    logprobs = (("logprobs", body.logprobs), ("top_logprobs", body.top_logprobs))
    refuse_present(logprobs, "agents have no log probabilities")
    sound = [kind for kind in body.modalities or () if kind != "text"]
    refuse_present((("modalities", sound), ("audio", body.audio)), "answers are text")


def _read_message(reader: ConversationReader, message: ChatMessage, param: str) -> None:
    content = f"{param}.content"
    match message.role:
        case "system" | "developer":
            reader.instruct(text_of(message.content, content))
        case "user":
            reader.say_user(text_of(message.content, content, may_be_empty=False))
        case "assistant":
            refuse_present(((f"{param}.function_call", message.function_call),), _OLD)
            text = text_of(message.content, content) or message.refusal or ""
            calls = [
                _call(call, f"{param}.tool_calls[{i}]") for i, call in enumerate(message.tool_calls or ())
            ]
            reader.say_assistant(text, calls)
        case "tool":
            reader.give_result(message.tool_call_id or "", text_of(message.content, content), param)
        case _:
            raise Refused(f"{param}: there is no role {message.role[:60]!r}", param=f"{param}.role")


def _call(given: GivenCall, param: str) -> WrittenCall:
    if given.function is None:
        raise Refused(f"{param}: only calls of functions are supported", param=param)
    return WrittenCall(given.id, given.function.name, written_arguments(given.function.arguments))


def written_arguments(arguments: str | dict[str, object] | None) -> str:
    """As text: some clients give them back decoded."""
    if isinstance(arguments, dict):
        return encode_json(arguments)
    return arguments or "{}"
