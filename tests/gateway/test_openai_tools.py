"""The client's own tools, and answers that have to be of a form, over a real socket."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.openai_scene import ADD, USER, Json, Scene, at_the_wire, deltas, joined
from xclaw.settings import Settings
from xclaw.testing.fake_replies import Calls, Text

SUB: Json = {"type": "function", "function": {"name": "sub"}}
PERSON: Json = {
    "type": "object",
    "properties": {"name": {"type": "string", "pattern": "^(a+)+$"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
SCHEMA: Json = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON, "strict": True}}
ANN = '{"name": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", "age": 3}'


def tool_names(scene: Scene) -> list[str]:
    """Of the last request to the model."""
    return [tool["function"]["name"] for tool in scene.provider.requests[-1].body.get("tools", [])]  # type: ignore[union-attr, index]


def choice(got: Json) -> Json:
    return got["choices"][0]


def test_a_call_of_the_clients_tool_comes_back_and_its_result_goes_on(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        scene.provider.queue(Calls(("c", "add", '{"a": 1}'), text="I add."), Text("It is 4."))
        first = choice((await scene.chat(tools=[ADD])).json)
        assert (first["finish_reason"], first["message"]["content"]) == ("tool_calls", "I add.")
        (call,) = first["message"]["tool_calls"]
        assert call["function"] == {"name": "add", "arguments": '{"a": 1}'}
        result = {"role": "tool", "tool_call_id": call["id"], "content": "4"}
        got = await scene.chat([*USER, first["message"], result], tools=[ADD])
        assert got.text == "It is 4."
        assert "add" in tool_names(scene)

    at_the_wire(tmp_path, body)


def test_calls_are_streamed_whole_each_under_its_index(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        scene.provider.queue(Calls(("c", "add", '{"a": 1}'), ("d", "add", ""), text="Both."))
        events = await scene.chat_stream(tools=[ADD])
        calls = [call for delta in deltas(events) for call in delta.get("tool_calls", [])]
        assert [(call["index"], call["function"]["arguments"]) for call in calls] == [
            (0, '{"a": 1}'),
            (1, "{}"),
        ]
        assert len({call["id"] for call in calls}) == 2
        assert joined(events) == "Both."
        assert choice(json.loads(events[-2]))["finish_reason"] == "tool_calls"

    at_the_wire(tmp_path, body)


def test_the_clients_tool_goes_before_one_of_the_same_name(tmp_path: Path) -> None:
    """An editor's `write_file` writes in the editor."""

    async def body(scene: Scene) -> None:
        scene.provider.queue(Calls(("c", "write_file", '{"file": "x"}')))
        own = {"type": "function", "function": {"name": "write_file", "parameters": {"type": "object"}}}
        got = choice((await scene.chat(tools=[own])).json)
        assert got["message"]["tool_calls"][0]["function"]["name"] == "write_file"
        assert tool_names(scene).count("write_file") == 1

    at_the_wire(tmp_path, body)


@pytest.mark.parametrize(
    ("wanted", "offered"),
    [
        ("auto", {"add", "sub"}),
        ("none", set[str]()),
        ("required", {"add", "sub"}),
        ({"type": "function", "function": {"name": "sub"}}, {"sub"}),
        (
            {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "name": "add"}]}},
            {"add"},
        ),
    ],
)  # fmt: skip
def test_tool_choice_decides_what_the_agent_is_offered(
    tmp_path: Path, wanted: object, offered: set[str]
) -> None:
    async def body(scene: Scene) -> None:
        name = min(offered, default="")
        scene.provider.queue(Calls(("c", name, "{}")) if name else Text("no"))
        got = await scene.chat(tools=[ADD, SUB], tool_choice=wanted)
        assert got.status == 200
        assert {"add", "sub"} & set(tool_names(scene)) == offered

    at_the_wire(tmp_path, body)


@pytest.mark.parametrize("stream", [False, True])
def test_a_required_call_is_asked_for_once_more(tmp_path: Path, stream: bool) -> None:
    async def body(scene: Scene) -> None:
        scene.provider.queue(Text("I would rather talk. " * 30), Calls(("c", "add", "{}"), usage=(30, 4)))
        fields = {"tools": [ADD], "tool_choice": "required", "stream_options": {"include_usage": True}}
        if stream:
            events = await scene.chat_stream(**fields)
            calls = [call for delta in deltas(events) for call in delta.get("tool_calls", [])]
            text, usage = joined(events), json.loads(events[-2])["usage"]
        else:
            got = (await scene.chat(**fields)).json
            calls, usage = choice(got)["message"]["tool_calls"], got["usage"]
            text = choice(got)["message"]["content"] or ""
        assert [call["function"]["name"] for call in calls] == ["add"]
        assert (text, usage["total_tokens"]) == ("", 46)
        assert "call add" in str(scene.sent()[-1]["content"]) + str(scene.sent()[-2]["content"])

    at_the_wire(tmp_path, body)


@pytest.mark.parametrize("stream", [False, True])
def test_a_required_call_that_is_not_made_is_an_error(tmp_path: Path, stream: bool) -> None:
    async def body(scene: Scene) -> None:
        scene.provider.queue(Text("no"), Text("never"))
        got = await scene.chat(tools=[ADD], tool_choice="required", stream=stream)
        assert got.error == (502, "tool_choice_unmet")

    at_the_wire(tmp_path, body)


def test_one_call_at_a_time_is_one_call(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        scene.provider.queue(Calls(("c", "add", '{"a": 1}'), ("d", "add", '{"a": 2}')))
        got = choice((await scene.chat(tools=[ADD], parallel_tool_calls=False)).json)
        assert [call["function"]["arguments"] for call in got["message"]["tool_calls"]] == ['{"a": 1}']

    at_the_wire(tmp_path, body)


def test_tools_that_are_no_functions_are_passed_over_and_named(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        scene.provider.queue(Text("ok"))
        got = await scene.chat(
            tools=[ADD, {"type": "custom", "custom": {"name": "x"}}, {"type": "web_search"}]
        )
        assert got.json["xclaw"]["ignored_tools"] == ["custom", "web_search"]

    at_the_wire(tmp_path, body)


@pytest.mark.parametrize("written", [ANN, f"```json\n{ANN}\n```", f"\n{ANN}\n"])
def test_an_answer_of_a_form_is_that_and_nothing_around_it(tmp_path: Path, written: str) -> None:
    async def body(scene: Scene) -> None:
        scene.provider.queue(Text(written), Text(written))
        got = await scene.chat(response_format=SCHEMA)
        events = await scene.chat_stream(response_format=SCHEMA)
        assert got.text == joined(events) == ANN
        assert '"age"' in str(scene.sent(0)[0]["content"])

    at_the_wire(tmp_path, body)


@pytest.mark.parametrize("form", [SCHEMA, {"type": "json_object"}])
@pytest.mark.parametrize("wrong", ["Ann is 3.", '["Ann", 3]', '{"name": "Ann"', ""])
def test_an_answer_that_misses_its_form_is_asked_for_once_more(
    tmp_path: Path, form: Json, wrong: str
) -> None:
    async def body(scene: Scene) -> None:
        scene.provider.queue(Text(wrong or "x"), Text(ANN), Text(wrong or "x"), Text(wrong or "x"))
        assert (await scene.chat(response_format=form)).text == ANN
        refused = await scene.chat(response_format=form, stream=True)
        assert refused.error == (502, "format_unmet")

    at_the_wire(tmp_path, body)


def test_a_model_that_honours_schemas_is_given_the_schema(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        scene.provider.queue(Text(ANN))
        assert (await scene.chat(response_format=SCHEMA)).text == ANN
        sent = scene.provider.requests[-1].body["response_format"]
        assert sent["json_schema"]["schema"] == PERSON  # type: ignore[index]

    def obedient(settings: Settings) -> Settings:
        profiles = {"openai:fake": {"structured_output": "with_tools"}}
        return replace(settings, models=replace(settings.models, profiles=profiles))

    at_the_wire(tmp_path, body, change=obedient)
