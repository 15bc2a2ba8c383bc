"""Chat completions over a real socket: requests as clients send them, answers as they read them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.openai_scene import ADD, USER, Json, Scene, at_the_wire
from xclaw.testing.fake_replies import Text

GIVEN_CALL: Json = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
ASSISTANT: Json = {"role": "assistant", "content": None, "tool_calls": [GIVEN_CALL]}
RESULT: Json = {"role": "tool", "tool_call_id": "call_1", "content": "4"}


def roles(messages: list[Json]) -> list[str]:
    return [str(message["role"]) for message in messages]


def test_models_are_the_router_the_orchestrator_and_each_agent(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        listed = (await scene.call("GET", "/models")).json
        assert listed["object"] == "list"
        ids = [model["id"] for model in listed["data"]]
        assert ids[:2] == ["xclaw", "xclaw/orchestrator"]
        assert "xclaw/coder" in ids
        assert len(set(ids)) == len(ids)
        for model in listed["data"]:
            assert (await scene.call("GET", f"/models/{model['id']}")).json == model

    at_the_wire(tmp_path, body)


def test_an_agent_of_any_name_has_an_id_that_every_wire_takes(tmp_path: Path) -> None:
    """N04."""
    folder = tmp_path / "agents"
    folder.mkdir(parents=True)
    text = "---\nname: 数据 专家\ndescription: data\n---\nYou know data.\n"
    (folder / "data.md").write_text(text, encoding="utf-8")

    async def body(scene: Scene) -> None:
        ids = [model["id"] for model in (await scene.call("GET", "/models")).json["data"]]
        (found,) = [name for name in ids if "%" in name]
        assert found.isascii()
        assert " " not in found
        scene.provider.queue(Text("one"), Text("two"))
        assert (await scene.chat(model=found)).text == "one"
        got = await scene.chat(model="xclaw/数据 专家")
        assert (got.text, got.json["model"], got.json["xclaw"]["agent"]) == ("two", found, "数据 专家")
        for path in (found, found.replace("%", "%25")):
            assert (await scene.call("GET", f"/models/{path}")).json["id"] == found

    at_the_wire(tmp_path, body)


@pytest.mark.parametrize("model", ["gpt-4o", "xclaw/nobody", "xclaw/", "coder", "xclaw//coder", "../xclaw"])
def test_an_unknown_model_is_not_found(tmp_path: Path, model: str) -> None:
    async def body(scene: Scene) -> None:
        got = await scene.chat(model=model)
        assert got.error == (404, "model_not_found")
        assert got.json["error"]["param"] == "model"
        assert got.json["error"]["type"] == "invalid_request_error"

    at_the_wire(tmp_path, body)


def test_the_model_without_a_name_is_routed_and_one_with_a_name_is_that_agent(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        scene.provider.queue(*[Text("ok")] * 3)
        asked: list[Json] = [{"role": "user", "content": "@skeptic is this true?"}]
        for model, agent in (("xclaw", "skeptic"), ("xclaw/coder", "coder")):
            got = await scene.chat(asked, model=model)
            assert (got.json["model"], got.json["xclaw"]["agent"]) == (model, agent)
        followed = await scene.chat([*asked, ASSISTANT, RESULT], model="xclaw", tools=[ADD])
        assert followed.json["xclaw"]["agent"] == "skeptic"

    at_the_wire(tmp_path, body)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"content": ""},
        {"content": []},
        {"content": "thinking"},
        {"name": "bot", "refusal": None, "audio": None, "function_call": None, "annotations": []},
    ],
)
def test_an_assistant_message_with_calls_needs_no_content(tmp_path: Path, change: Json) -> None:
    """O01."""

    async def body(scene: Scene) -> None:
        assistant = {**ASSISTANT, **change}
        messages = [{"role": "user", "content": "1+3?", "name": "me"}, assistant, RESULT, *USER]
        for variant in (messages, [m if m is not assistant else _without_content(m) for m in messages]):
            scene.provider.queue(Text("four"))
            assert (await scene.chat(variant, tools=[ADD])).text == "four"
            sent = [m for m in scene.sent() if m["role"] != "system"]
            assert roles(sent)[:4] == ["user", "assistant", "tool", "user"]
            assert sent[1]["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a": 1}'}
            assert sent[2]["tool_call_id"] == sent[1]["tool_calls"][0]["id"]

    at_the_wire(tmp_path, body)


def _without_content(message: Json) -> Json:
    return {key: value for key, value in message.items() if key != "content"}


def test_no_tool_calls_are_an_empty_list_of_them(tmp_path: Path) -> None:
    """O01."""

    async def body(scene: Scene) -> None:
        empty: list[Json] = []
        for calls in (empty, None):
            scene.provider.queue(Text("ok"))
            said: Json = {"role": "assistant", "content": "hello", "tool_calls": calls, "refusal": None}
            assert (await scene.chat([*USER, said, *USER])).text == "ok"
            assert "tool_calls" not in scene.sent()[2]

    at_the_wire(tmp_path, body)


def test_text_parts_are_joined_with_nothing_between_them(tmp_path: Path) -> None:
    """O02."""

    async def body(scene: Scene) -> None:
        scene.provider.queue(Text("ok"))
        parts = [{"type": "text", "text": "你"}, {"type": "text", "text": "好"}]
        await scene.chat([{"role": "system", "content": parts}, {"role": "user", "content": parts}])
        assert any(m["role"] == "user" and m["content"] == "你好" for m in scene.sent())
        assert str(scene.sent()[0]["content"]).endswith("你好")

    at_the_wire(tmp_path, body)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (
            [{"type": "text", "text": "x"}, {"type": "image_url", "image_url": {"url": "data:,"}}],
            "unsupported_content",
        ),
        ([{"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}], "unsupported_content"),
        ([{"type": "file", "file": {"file_id": "f"}}], "unsupported_content"),
        ([], "invalid_request"),
        ("", "invalid_request"),
        (None, "invalid_request"),
        (7, "invalid_request"),
        ([["x"]], "invalid_request"),
        ({"type": "text", "text": "x"}, "invalid_request"),
    ],
)
def test_content_that_is_no_text_is_refused(tmp_path: Path, content: object, code: str) -> None:
    """O02: and never sent on as something else."""

    async def body(scene: Scene) -> None:
        got = await scene.chat([{"role": "user", "content": content}])
        assert got.error == (400, code)
        assert scene.provider.requests == []

    at_the_wire(tmp_path, body)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"messages": None}, "invalid_request"),
        ({"messages": [{"role": "alien", "content": "x"}]}, "invalid_request"),
        ({"messages": [RESULT]}, "invalid_request"),
        ({"messages": [*USER, {"role": "assistant", "content": "The answer is"}]}, "invalid_request"),
        ({"messages": [{"role": "system", "content": "x"}]}, "invalid_request"),
        ({"model": None}, "invalid_request"),
        ({"n": 2}, "unsupported_parameter"),
        ({"n": 0}, "unsupported_parameter"),
        ({"logprobs": True}, "unsupported_parameter"),
        ({"modalities": ["text", "audio"]}, "unsupported_parameter"),
        ({"audio": {"voice": "x"}}, "unsupported_parameter"),
        ({"functions": [{"name": "f"}]}, "unsupported_parameter"),
        ({"max_tokens": 0}, "invalid_request"),
        ({"stream": "yes"}, "invalid_request"),
        ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "invalid_request"),
        ({"tools": [ADD, ADD]}, "invalid_request"),
        ({"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "string"}}}]}, "invalid_request"),
        ({"tool_choice": "required"}, "invalid_request"),
        ({"tools": [ADD], "tool_choice": {"type": "function", "function": {"name": "sub"}}}, "invalid_request"),
        ({"response_format": {"type": "xml"}}, "unsupported_parameter"),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}}, "invalid_request"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_refused_before_anything_is_spent(
    tmp_path: Path, fields: Json, code: str
) -> None:
    async def body(scene: Scene) -> None:
        for stream in (False, True):
            sent = {"model": "xclaw", "messages": USER, "stream": stream, **fields}
            got = await scene.call("POST", "/chat/completions", sent)
            assert got.error == (400, code), got.body
            assert set(got.json["error"]) == {"message", "type", "code", "param"}
        assert scene.provider.requests == []
        assert await scene.runs() == []

    at_the_wire(tmp_path, body)


def test_fields_that_change_nothing_are_passed_over(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        scene.provider.queue(Text("ok"))
        ignored = {
            "temperature": 0.1,
            "top_p": 1,
            "seed": 7,
            "stop": ["x"],
            "logit_bias": {"1": 2},
            "user": 3,
        }
        nulls = dict.fromkeys(
            ["n", "logprobs", "top_logprobs", "tools", "tool_choice", "response_format", "stream_options", "max_tokens",
             "modalities", "audio", "functions", "function_call", "parallel_tool_calls", "xclaw", "stream"]
        )  # fmt: skip
        assert (await scene.chat(**ignored, **nulls, store=True, anything={"at": ["all"]})).text == "ok"

    at_the_wire(tmp_path, body)


def test_two_requests_share_nothing_whatever_they_name(tmp_path: Path) -> None:
    """I06: `user`, `metadata` and headers choose no session."""

    async def body(scene: Scene) -> None:
        bob = scene.as_user("bob")
        scene.provider.queue(Text("noted"), Text("what code?"), Text("what code?"))
        same = {"user": "demo", "metadata": {"session": "demo", "session_id": "demo"}}
        await scene.chat([{"role": "user", "content": "my code is 1234"}], **same)
        for who in (bob, scene):
            await who.chat([{"role": "user", "content": "what is my code?"}], **same)
            assert "1234" not in json.dumps(scene.provider.requests[-1].body)
        rows = await scene.served.gateway.sessions.sessions(user="bob")
        assert len(rows) == 1

    at_the_wire(tmp_path, body)


def test_a_token_without_the_scope_chat_may_not_talk(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        auditor = scene.as_user("eve", "approve")
        assert (await auditor.chat()).error == (403, "not_allowed")
        nobody = replace(scene, token="xc_owner_" + "x" * 30)
        refused = await nobody.chat()
        assert (refused.status, refused.json["error"]["type"]) == (401, "invalid_request_error")

    at_the_wire(tmp_path, body)
