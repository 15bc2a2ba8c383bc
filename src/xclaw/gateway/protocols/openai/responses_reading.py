"""Responses: what a request says. Nothing is kept between requests, so whatever refers to an earlier one
is refused."""

from collections.abc import Sequence

import msgspec

from xclaw.gateway.protocols.openai.ask import Ask
from xclaw.gateway.protocols.openai.chat_reading import token_limit, written_arguments
from xclaw.gateway.protocols.openai.conversation import ConversationReader, WrittenCall
from xclaw.gateway.protocols.openai.formats import WrittenFormat, answer_format
from xclaw.gateway.protocols.openai.model_ids import agent_of, model_id
from xclaw.gateway.protocols.openai.reading import Content, ProgressWish, read_body, refuse_present, text_of
from xclaw.gateway.protocols.openai.refused import Refused
from xclaw.gateway.protocols.openai.tools import WrittenChoice, WrittenTool, tool_order
from xclaw.runtime.services import Agents

_STATELESS = "nothing is kept between requests; send the whole conversation as input, with store set to false"


class Item(msgspec.Struct):
    """One item of the input, of any type. What is null or missing is the same."""

    type: str | None = None
    role: str | None = None
    content: Content = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | dict[str, object] | None = None
    output: Content = None


class TextOptions(msgspec.Struct):
    format: WrittenFormat | None = None


class ResponsesBody(msgspec.Struct):
    """The fields that are looked at, and those that the answer repeats; all others are passed over."""

    input: str | list[Item] | None = None
    model: str | None = None
    instructions: str | None = None
    stream: bool | None = None
    store: bool | None = None
    previous_response_id: str | None = None
    conversation: object = None
    background: bool | None = None
    prompt: object = None
    tools: list[WrittenTool] | None = None
    tool_choice: str | WrittenChoice | None = None
    parallel_tool_calls: bool | None = None
    text: TextOptions | None = None
    max_output_tokens: int | None = None
    top_logprobs: int | None = None
    metadata: dict[str, object] | None = None
    prompt_cache_key: str | None = None
    safety_identifier: str | None = None
    xclaw: ProgressWish | None = None


def read_responses(raw: bytes, agents: Agents, *, with_progress: bool) -> tuple[Ask, ResponsesBody]:
    """What is asked, and the body, of which the answer repeats some. Raises `Refused`."""
    body = read_body(raw, ResponsesBody)
    agent = agent_of(body.model, agents)
    _refuse_state(body)
    reader = ConversationReader()
    reader.instruct(body.instructions or "")
    _read_input(reader, body.input)
    text, history = reader.asked("input")
    ask = Ask(
        model=model_id(agent),
        agent=agent,
        text=text,
        history=history,
        note=reader.note,
        tools=tool_order(body.tools, body.tool_choice, parallel=body.parallel_tool_calls is not False),
        format=answer_format(body.text.format if body.text else None, "text.format"),
        max_tokens=token_limit((("max_output_tokens", body.max_output_tokens),)),
        is_streamed=bool(body.stream),
        with_usage=True,
        with_progress=with_progress and (body.xclaw is None or body.xclaw.progress),
    )
    return ask, body


def _refuse_state(body: ResponsesBody) -> None:
    stateful = (
        ("store", body.store),
        ("previous_response_id", body.previous_response_id),
        ("conversation", body.conversation),
        ("background", body.background),
        ("prompt", body.prompt),
    )
    refuse_present(stateful, _STATELESS)
    refuse_present((("top_logprobs", body.top_logprobs),), "agents have no log probabilities")


def _read_input(reader: ConversationReader, given: str | Sequence[Item] | None) -> None:
    if given is None:
        raise Refused("input is missing", param="input")
    if isinstance(given, str):
        reader.say_user(given)
        return
    for index, item in enumerate(given):
        _read_item(reader, item, f"input[{index}]")


def _read_item(reader: ConversationReader, item: Item, param: str) -> None:
    match item.type:
        case None | "message":
            _read_message(reader, item, param)
        case "function_call":
            arguments = written_arguments(item.arguments)
            reader.join_call(WrittenCall(item.call_id or "", item.name or "", arguments))
        case "function_call_output":
            reader.give_result(item.call_id or "", text_of(item.output, f"{param}.output"), param)
        case "reasoning":
            pass  # what an agent thought before is its own affair
        case _:
            text = f"{param}: items of type {item.type[:60]!r} are not supported"
            raise Refused(text, code="unsupported_content", param=param)


def _read_message(reader: ConversationReader, item: Item, param: str) -> None:
    text = text_of(item.content, f"{param}.content", may_be_empty=item.role != "user")
    match item.role:
        case "system" | "developer":
            reader.instruct(text)
        case "user":
            reader.say_user(text)
        case "assistant":
            reader.say_assistant(text)
        case _:
            raise Refused(f"{param}: there is no role {str(item.role)[:60]!r}", param=f"{param}.role")
