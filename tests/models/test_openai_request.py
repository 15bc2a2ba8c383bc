"""What is sent."""

import msgspec
import pytest
from wire_asking import REQUEST, opened, run

from xclaw.contracts.errors import ModelRejected
from xclaw.contracts.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from xclaw.contracts.models import ModelRequest, ToolSpec
from xclaw.models.openai.request import RequestEncoder, WireHabits, wire_messages, wire_name
from xclaw.testing.fake_provider import FakeProvider, Reply, Status, Text
from xclaw.testing.recording_sink import RecordingSink

SCHEMA: dict[str, object] = {"type": "object"}
FULL = ModelRequest("Be brief.", REQUEST.messages, (), SCHEMA, 100, 0.5)


def test_a_conversation_on_the_wire() -> None:
    conversation = (
        UserMessage("question"),
        AssistantMessage("", (ToolCall("c1", "look", '{"at": "x"}'),), "thoughts"),
        ToolMessage("c1", "look", "seen"),
        AssistantMessage("answer"),
    )
    assert wire_messages("Be brief.", conversation, WireHabits()) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "question"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": "x"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "seen"},
        {"role": "assistant", "content": "answer"},
    ]


@pytest.mark.parametrize(
    "arguments", ["", '{"pa', "[1]", "null", '"text"', "{'a': 1}", '{"a": NaN}', "[" * 5000]
)
def test_arguments_that_are_no_object_are_sent_as_an_empty_one(arguments: str) -> None:
    """P01: a server refuses a conversation with others, now and for ever."""
    history = (AssistantMessage("", (ToolCall("c1", "look", arguments),)),)
    sent = msgspec.json.encode(wire_messages("", history, WireHabits()))
    assert b'"arguments":"{}"' in sent


def test_half_characters_and_nul_are_made_sendable_everywhere() -> None:
    bad = "a\ud83cb\0c"
    tool = ToolSpec("look", bad, {"type": "object", "description": bad, "properties": {bad: {"enum": [bad]}}})
    request = ModelRequest(bad, (UserMessage(bad), ToolMessage("c", bad, bad)), (tool,), {"title": bad})
    body, _ = RequestEncoder("m").body(request, WireHabits())
    assert msgspec.json.decode(body)["messages"][0]["content"] == "a�b�c"


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("view_file", "view_file"),
        ("view file()", "view_file__"),
        ("查找", "__"),
        ("", "unknown"),
        ("x" * 99, "x" * 64),
    ],
)
def test_names_fit_the_wire(name: str, sent: str) -> None:
    """N04, N05."""
    assert wire_name(name) == sent


def test_long_call_ids_stay_equal_on_both_sides_and_different_from_others() -> None:
    ids = ["x" * 65, "x" * 66, "short"]
    for length in (64, 9):
        calls = tuple(ToolCall(call_id, "look", "{}") for call_id in ids)
        answers = tuple(ToolMessage(call_id, "look", "") for call_id in ids)
        wire = wire_messages("", (AssistantMessage("", calls), *answers), WireHabits(call_id_length=length))
        asked = [call["id"] for call in msgspec.convert(wire[0]["tool_calls"], list[dict[str, object]])]
        assert asked == [message["tool_call_id"] for message in wire[1:]]
        assert len(set(asked)) == 3
        assert all(len(str(call_id)) <= length for call_id in asked)


def test_tools_are_encoded_once_for_each_set() -> None:
    tools = (ToolSpec("look", "Looks.", SCHEMA),)
    encoder = RequestEncoder("m")
    bodies = [encoder.body(ModelRequest("", REQUEST.messages, tools), WireHabits())[0] for _ in range(2)]
    assert bodies[0] == bodies[1]
    others = encoder.body(ModelRequest("", REQUEST.messages, (ToolSpec("b", "", SCHEMA),)), WireHabits())[0]
    assert b'"look"' not in others


@pytest.mark.parametrize(
    ("field", "complaint"),
    [
        ("stream_options", "Unrecognized request argument supplied: stream_options"),
        ("stream_options", "Extra inputs are not permitted"),
        ("response_format", "'response_format' of type json_schema is not supported"),
        ("temperature", "Unsupported value: 'temperature' does not support 0.5 with this model"),
        ("max_tokens", "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
    ],
)
def test_a_field_that_the_endpoint_refuses_is_left_out_from_then_on(field: str, complaint: str) -> None:
    async def main() -> None:
        def answer(body: dict[str, object]) -> Reply:
            return Status(400, {"error": {"message": complaint}}) if field in body else Text("fine")

        async with FakeProvider() as provider, opened(provider.url) as model:
            provider.answer_with(answer)
            for _ in range(2):
                reply = await model.reply(FULL, RecordingSink())
                assert reply.message.text == "fine"
            assert len(provider.requests) == 3
            if field == "max_tokens":
                assert provider.requests[-1].body["max_completion_tokens"] == 100

    run(main)


def test_an_endpoint_that_refuses_everything_is_not_asked_for_ever() -> None:
    async def main() -> None:
        async with FakeProvider() as provider, opened(provider.url) as model:
            complaint = "unsupported: stream_options response_format temperature max_tokens reasoning_content"
            provider.answer_with(lambda _body: Status(400, {"error": {"message": complaint}}))
            with pytest.raises(ModelRejected):
                await model.reply(FULL, RecordingSink())
            assert len(provider.requests) <= 6

    run(main)


def test_a_value_out_of_range_is_not_taken_for_an_unknown_field() -> None:
    async def main() -> None:
        async with FakeProvider() as provider, opened(provider.url) as model:
            complaint = "max_tokens is too large: 100. This model supports at most 50 completion tokens"
            provider.queue(Status(400, {"error": {"message": complaint}}))
            with pytest.raises(ModelRejected, match="too large"):
                await model.reply(FULL, RecordingSink())
            assert len(provider.requests) == 1

    run(main)
