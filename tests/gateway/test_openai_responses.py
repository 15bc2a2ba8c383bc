"""Responses over a real socket: the stateless part that coding clients use."""

import json
from pathlib import Path
from typing import cast

import pytest

from gateway.openai_scene import Events, Json, Scene, at_the_wire
from xclaw.testing.fake_replies import Calls, Cut, Raw, Status, Text, delta

ADD: Json = {"type": "function", "name": "add", "parameters": {"type": "object"}, "strict": False}
LONG = "This is a rather long answer, sentence after sentence. " * 12
GIVEN: list[Json] = [
    {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "BE BRIEF"}]},
    {"role": "user", "content": [{"type": "input_text", "text": "你"}, {"type": "input_text", "text": "好"}]},
    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "x"},
    {
        "type": "message",
        "role": "assistant",
        "id": "msg_1",
        "status": "completed",
        "phase": "commentary",
        "content": [{"type": "output_text", "text": "I add.", "annotations": []}],
    },
    {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "add", "arguments": '{"a": 1}'},
    {"type": "function_call", "call_id": "c2", "name": "add", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": "1"},
    {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "2"}]},
]

REFUSED: list[tuple[Json, str, str]] = [
    ({"store": True}, "unsupported_parameter", "store"),
    ({"previous_response_id": "resp_1"}, "unsupported_parameter", "previous_response_id"),
    ({"conversation": {"id": "c"}}, "unsupported_parameter", "conversation"),
    ({"background": True}, "unsupported_parameter", "background"),
    ({"prompt": {"id": "p"}}, "unsupported_parameter", "prompt"),
    ({"input": None}, "invalid_request", "input"),
    ({"input": []}, "invalid_request", "input"),
    ({"input": "  "}, "invalid_request", "input"),
    ({"input": [{"type": "item_reference", "id": "x"}]}, "unsupported_content", "input[0]"),
    ({"input": [{"role": "user", "content": []}]}, "invalid_request", "input[0].content"),
    (
        {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "data:,"}]}]},
        "unsupported_content",
        "input[0].content[0]",
    ),
    ({"input": [{"type": "function_call_output", "call_id": "c", "output": "1"}]}, "invalid_request", "input[0]"),
    ({"input": [{"role": "alien", "content": "x"}]}, "invalid_request", "input[0].role"),
    ({"model": None}, "invalid_request", "model"),
    ({"max_output_tokens": 0}, "invalid_request", "max_output_tokens"),
    ({"text": {"format": {"type": "json_schema", "name": "x"}}}, "invalid_request", "text.format"),
]  # fmt: skip


async def respond(scene: Scene, given: object = "hi", **fields: object) -> Json:
    got = await scene.call("POST", "/responses", {"model": "xclaw/coder", "input": given, **fields})
    assert got.status == 200, got.body
    return got.json


async def stream(scene: Scene, given: object = "hi", **fields: object) -> list[Json]:
    """Every event, whose name and number are checked."""
    sent = {"model": "xclaw/coder", "input": given, "stream": True, **fields}
    async with scene.request("POST", "/responses", sent) as response:
        assert response.status == 200, await response.read()
        events = Events(response)
        told = [cast("Json", json.loads(data)) for data in await events.all()]
    assert [event["type"] for event in told] == events.names
    assert [event["sequence_number"] for event in told] == list(range(len(told)))
    return told


def kinds(events: list[Json]) -> list[str]:
    """Types in order, runs of the same one as one."""
    names = [str(event["type"]).removeprefix("response.") for event in events]
    return [name for at, name in enumerate(names) if at == 0 or names[at - 1] != name]


def without_ids(output: list[Json]) -> list[Json]:
    return [{key: value for key, value in item.items() if key != "id"} for item in output]


def test_items_become_the_conversation_that_they_are(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        scene.provider.queue(Text("three"))
        told = await respond(scene, GIVEN, instructions="SPEAK UP", tools=[ADD], store=False)
        assert told["output"][-1]["content"][0]["text"] == "three"
        system, *sent = [m for m in scene.sent() if m["role"] != "runtime"]
        assert str(system["content"]).endswith("SPEAK UP\n\nBE BRIEF")
        assert [m["role"] for m in sent][:4] == ["user", "assistant", "tool", "tool"]
        assert sent[0]["content"] == "你好"
        assert sent[1]["content"] == "I add."
        assert [call["function"]["arguments"] for call in sent[1]["tool_calls"]] == ['{"a": 1}', "{}"]
        assert [m["content"] for m in sent[2:4]] == ["1", "2"]

    at_the_wire(tmp_path, body)


def test_the_events_of_an_answer_come_in_their_order(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        replies = (Calls(("c", "list_dir", "{}"), text="Let me look."), Text(LONG, chunk=9))
        scene.provider.queue(*replies, *replies)
        events = await stream(scene)
        assert kinds(events) == [
            "created",
            "in_progress",
            "output_item.added",
            "reasoning_summary_part.added",
            "reasoning_summary_text.delta",
            "reasoning_summary_text.done",
            "reasoning_summary_part.done",
            "output_item.done",
            "output_item.added",
            "content_part.added",
            "output_text.delta",
            "output_text.done",
            "content_part.done",
            "output_item.done",
            "completed",
        ]
        texts = [event["delta"] for event in events if event["type"] == "response.output_text.delta"]
        assert "".join(texts) == LONG
        done = events[-1]["response"]
        assert (done["status"], done["usage"]["total_tokens"]) == ("completed", 24)
        assert done["output"] == [
            event["item"] for event in events if event["type"] == "response.output_item.done"
        ]
        whole = await respond(scene)
        message = without_ids(done["output"])[-1]
        assert without_ids(whole["output"])[-1] == message
        assert set(whole) == set(done)
        assert whole["output"][0]["summary"][0]["text"] == done["output"][0]["summary"][0]["text"].strip()

    at_the_wire(tmp_path, body)


def test_a_call_of_the_clients_tool_is_an_item(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        replies = (Calls(("c", "add", '{"a": 1}'), ("d", "add", ""), text="I add."),) * 2
        scene.provider.queue(*replies)
        fields: Json = {
            "tools": [ADD, {"type": "web_search"}, {"type": "custom", "name": "apply_patch", "format": {}}]
        }
        whole = await respond(scene, **fields)
        assert [item["type"] for item in whole["output"]] == ["message", "function_call", "function_call"]
        assert whole["xclaw"]["ignored_tools"] == ["custom", "web_search"]
        assert [tool["name"] for tool in whole["tools"]] == ["add"]
        events = await stream(scene, **fields)
        assert kinds(events)[-5:] == [
            "output_item.added",
            "function_call_arguments.delta",
            "function_call_arguments.done",
            "output_item.done",
            "completed",
        ]
        output = events[-1]["response"]["output"]
        assert [item.get("arguments") for item in output] == [None, '{"a": 1}', "{}"]
        assert [event["output_index"] for event in events if event["type"].endswith("item.done")] == [0, 1, 2]

    at_the_wire(tmp_path, body)


@pytest.mark.parametrize(("fields", "code", "param"), REFUSED)
def test_what_needs_a_memory_or_cannot_be_read_is_refused(
    tmp_path: Path, fields: Json, code: str, param: str
) -> None:
    async def body(scene: Scene) -> None:
        sent = {"model": "xclaw", "input": "hi", "stream": True, **fields}
        got = await scene.call("POST", "/responses", sent)
        assert got.error == (400, code), got.body
        assert got.json["error"]["param"] == param
        assert scene.provider.requests == []

    at_the_wire(tmp_path, body)


def test_a_run_that_fails_is_an_http_error_or_the_last_event(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        scene.provider.queue(Status(400), Calls(("c", "list_dir", "{}")), Status(400))
        sent = {"model": "xclaw/coder", "input": "hi", "stream": True}
        assert (await scene.call("POST", "/responses", sent)).error == (502, "run_failed")
        events = await stream(scene)
        failed = events[-1]
        assert (failed["type"], failed["response"]["status"]) == ("response.failed", "failed")
        assert failed["response"]["error"]["code"] == "run_failed"
        assert kinds(events)[-2] == "output_item.done"

    at_the_wire(tmp_path, body)


def test_text_that_was_taken_back_fails_the_stream(tmp_path: Path) -> None:
    """S14."""

    async def body(scene: Scene) -> None:
        scene.provider.queue(Raw(delta(LONG[:500]), Cut(reset=False)), Text("something else"))
        events = await stream(scene)
        assert events[-1]["response"]["error"]["code"] == "text_retracted"
        assert events[-1]["response"]["output"][-1]["status"] == "incomplete"

    at_the_wire(tmp_path, body)


def test_an_answer_at_its_limit_is_incomplete(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        scene.provider.queue(Text(LONG), Text(LONG))
        whole = await respond(scene, max_output_tokens=20)
        events = await stream(scene, max_output_tokens=20)
        for told in (whole, events[-1]["response"]):
            assert (told["status"], told["incomplete_details"]) == (
                "incomplete",
                {"reason": "max_output_tokens"},
            )
            assert told["output"][-1]["content"][0]["text"] == LONG[:80]
        assert events[-1]["type"] == "response.incomplete"

    at_the_wire(tmp_path, body)


def test_an_answer_can_be_of_a_form(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        scene.provider.queue(Text('```json\n{"n": 3}\n```'))
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        told = await respond(scene, text={"format": {"type": "json_schema", "name": "n", "schema": schema}})
        assert told["output"][-1]["content"][0]["text"] == '{"n": 3}'
        assert told["text"]["format"]["schema"] == schema

    at_the_wire(tmp_path, body)


def test_what_a_coding_client_sends_is_understood(tmp_path: Path) -> None:
    """The fields that codex sends with every request."""

    async def body(scene: Scene) -> None:
        scene.provider.queue(Calls(("c", "shell", '{"command": ["ls"]}')), Text("It is empty."))
        shell: Json = {
            "type": "function",
            "name": "shell",
            "description": "Runs a command.",
            "strict": False,
            "parameters": {"type": "object", "properties": {"command": {"type": "array"}}},
        }
        fields: Json = {
            "instructions": "You are a coding agent.",
            "tools": [shell, {"type": "custom", "name": "apply_patch", "format": {"type": "grammar"}}],
            "tool_choice": "auto",
            "parallel_tool_calls": False,
            "reasoning": {"effort": "medium", "summary": "auto"},
            "store": False,
            "include": ["reasoning.encrypted_content"],
            "prompt_cache_key": "0199",
            "text": {"verbosity": "medium"},
            "client_metadata": {"installation": "x"},
            "service_tier": None,
        }
        given: list[Json] = [
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "sandbox"}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "what is here?"}]},
        ]
        events = await stream(scene, given, **fields)
        items = [event["item"] for event in events if event["type"] == "response.output_item.done"]
        assert [item["type"] for item in items] == ["function_call"]
        output = {"type": "function_call_output", "call_id": items[0]["call_id"], "output": ""}
        events = await stream(scene, [*given, *items, output], **fields)
        assert events[-1]["response"]["output"][-1]["content"][0]["text"] == "It is empty."

    at_the_wire(tmp_path, body)
