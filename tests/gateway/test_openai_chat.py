"""Chat completions over a real socket: requests as clients send them, answers as they read them."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.openai_scene import ADD, USER, Events, Json, Scene, at_the_wire, deltas, joined
from xclaw.settings import Settings
from xclaw.testing.fake_replies import Calls, Cut, Hang, Raw, Status, Text, Until, delta, usage_chunk

GIVEN_CALL: Json = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
ASSISTANT: Json = {"role": "assistant", "content": None, "tool_calls": [GIVEN_CALL]}
RESULT: Json = {"role": "tool", "tool_call_id": "call_1", "content": "4"}
LONG = "This is a rather long answer, sentence after sentence. " * 12


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


def test_the_whole_tree_is_in_the_usage_and_in_the_cost(tmp_path: Path) -> None:
    """U01, U03: the orchestrator's calls, a worker's, and one that failed."""

    async def body(scene: Scene) -> None:
        task = json.dumps(
            {"agent": "coder", "task": "TASK: count the letters of the word one and give the number"}
        )
        result = '{"status":"success","summary_data":{"n":1},"artifact_pointers":{}}'
        scene.provider.queue(
            Calls(("c", "delegate", task), usage=(10, 5)),
            Raw(delta("hal"), usage_chunk((30, 0)), Cut()),
            Text(result, usage=(100, 1)),
            Text("One.", usage=(10, 5)),
        )
        got = (await scene.chat(model="xclaw/orchestrator")).json
        assert got["choices"][0]["message"]["content"] == "One."
        usage, run = got["usage"], got["xclaw"]["run"]
        assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
        assert usage["prompt_tokens"] >= 120
        assert got["xclaw"]["model_calls"] == 4
        async with scene.http.get(
            f"{scene.served.url}/api/v1/runs/{run}", headers=scene.served.headers()
        ) as response:
            told = await response.json()
        assert told["usage"]["input_tokens"] == usage["prompt_tokens"]
        assert told["usage"]["output_tokens"] == usage["completion_tokens"]
        assert told["cost_usd"] == got["xclaw"]["cost_usd"]

    at_the_wire(tmp_path, body)


@pytest.mark.parametrize("with_usage", [True, False])
def test_a_stream_has_the_shape_that_clients_expect(tmp_path: Path, with_usage: bool) -> None:
    """O04."""

    async def body(scene: Scene) -> None:
        scene.provider.queue(Calls(("c", "list_dir", "{}"), text="Let me look."), Text(LONG, chunk=9))
        options = {"stream_options": {"include_usage": True}} if with_usage else {}
        events = await scene.chat_stream(**options)
        assert events[-1] == "[DONE]"
        chunks = [json.loads(data) for data in events[:-1]]
        for chunk in chunks:
            assert {"id", "object", "created", "model", "choices"} <= set(chunk)
            assert (chunk["object"], chunk["model"]) == ("chat.completion.chunk", "xclaw/coder")
        assert len({(chunk["id"], chunk["created"]) for chunk in chunks}) == 1
        assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
        finishes = [choice["finish_reason"] for chunk in chunks for choice in chunk["choices"]]
        assert [reason for reason in finishes if reason] == ["stop"]
        empty = [chunk for chunk in chunks if chunk["choices"] == []]
        assert empty == (chunks[-1:] if with_usage else [])
        assert ([chunk["usage"]["total_tokens"] for chunk in empty] == [24]) == with_usage
        assert joined(events) == LONG
        assert joined(events, "reasoning_content") == "Let me look.\n[coder] list_dir\n"
        assert sum("content" in each for each in deltas(events)) > 1

    at_the_wire(tmp_path, body)


def test_a_streamed_answer_is_the_one_that_is_not(tmp_path: Path) -> None:
    """O04."""

    async def body(scene: Scene) -> None:
        for text in ("short", LONG, "  with space\n\n", "字" * 500):
            replies = (Calls(("c", "list_dir", "{}"), text="Hm."), Text(text, chunk=5))
            scene.provider.queue(*replies, *replies)
            got = await scene.chat()
            events = await scene.chat_stream()
            assert joined(events) == got.text == text
            told = got.json["choices"][0]["message"]["reasoning_content"]
            assert joined(events, "reasoning_content") == f"{told}\n"

    at_the_wire(tmp_path, body)


def test_text_reaches_the_client_while_the_model_still_writes(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        goes_on = asyncio.Event()
        scene.provider.queue(
            Raw(delta(LONG), Until(goes_on), delta("End."), delta(finish="stop"), b"data: [DONE]\n\n")
        )
        sent = {"model": "xclaw/coder", "messages": USER, "stream": True}
        async with scene.request("POST", "/chat/completions", sent) as response:
            seen: list[str] = []
            async for data in Events(response).read():
                seen.append(data)
                if joined(seen) == LONG:
                    goes_on.set()
        assert joined(seen) == LONG + "End."

    at_the_wire(tmp_path, body, within_s=10)


def test_a_silent_model_is_covered_by_comments_from_the_first_moment(tmp_path: Path) -> None:
    """O04."""

    async def body(scene: Scene) -> None:
        goes_on = asyncio.Event()
        answer = (delta("Hello"), delta(finish="stop"), b"data: [DONE]\n\n")
        scene.provider.queue(Raw(Until(goes_on), *answer))
        sent = {"model": "xclaw/coder", "messages": USER, "stream": True}
        async with scene.request("POST", "/chat/completions", sent) as response:
            events = Events(response)
            reading = events.read()
            first = json.loads(await anext(reading))
            assert first["choices"][0]["delta"]["role"] == "assistant"
            goes_on.set()
            rest = [data async for data in reading]
        assert rest[-1] == "[DONE]"
        assert joined(rest) == "Hello"
        assert ": keep-alive" in events.comments

    at_the_wire(tmp_path, body, keepalive_s=0.05)


@pytest.mark.parametrize("stream", [False, True])
def test_a_run_that_fails_before_it_said_anything_is_an_http_error(tmp_path: Path, stream: bool) -> None:
    async def body(scene: Scene) -> None:
        scene.provider.queue(Status(400))
        got = await scene.chat(stream=stream)
        assert got.error == (502, "run_failed")
        assert got.json["error"]["type"] == "server_error"
        assert got.headers["x-should-retry"] == "false"
        assert str(tmp_path) not in got.body.decode()

    at_the_wire(tmp_path, body)


def test_a_run_that_fails_later_ends_the_stream_with_an_error(tmp_path: Path) -> None:
    """O04: as an event, not as text, and without [DONE]."""

    async def body(scene: Scene) -> None:
        scene.provider.queue(Calls(("c", "list_dir", "{}")), Status(400))
        events = await scene.chat_stream()
        error = json.loads(events[-1])["error"]
        assert (error["code"], error["type"]) == ("run_failed", "server_error")
        assert joined(events) == ""
        assert "[DONE]" not in events

    at_the_wire(tmp_path, body)


@pytest.mark.parametrize("again", ["another answer altogether", LONG])
def test_what_a_failed_model_said_is_never_followed_by_something_else(tmp_path: Path, again: str) -> None:
    """S14."""

    async def body(scene: Scene) -> None:
        cut = Raw(delta(LONG[:500]), Cut(reset=False))
        scene.provider.queue(cut, Text(again), cut, Text(again))
        events = await scene.chat_stream()
        if again == LONG:
            assert joined(events) == LONG
            assert events[-1] == "[DONE]"
        else:
            assert joined(events) == LONG[:500]
            assert json.loads(events[-1])["error"]["code"] == "text_retracted"
        assert (await scene.chat()).text == again

    at_the_wire(tmp_path, body)


def test_progress_can_be_switched_off(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        scene.provider.answer_with(lambda body: Text("ok") if body["messages"][-2]["role"] == "tool" else Calls(("c", "list_dir", "{}")))  # type: ignore[index]  # fmt: skip
        assert "reasoning_content" in (await scene.chat()).json["choices"][0]["message"]
        by_field = await scene.chat(xclaw={"progress": False})
        sent = {"model": "xclaw/coder", "messages": USER}
        by_header = await scene.call("POST", "/chat/completions", sent, X_Xclaw_Progress="off")
        for got in (by_field, by_header):
            assert "reasoning_content" not in got.json["choices"][0]["message"]

    at_the_wire(tmp_path, body)


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_a_token_limit_cuts_the_answer_and_ends_the_run(tmp_path: Path, name: str) -> None:
    async def body(scene: Scene) -> None:
        for stream in (False, True):
            goes_on = asyncio.Event()
            scene.provider.queue(Raw(delta(LONG), Until(goes_on)))
            limit = {name: 110}
            if stream:
                events = await scene.chat_stream(**limit)
                text, finish = joined(events), json.loads(events[-2])["choices"][0]["finish_reason"]
            else:
                got = await scene.chat(**limit)
                text, finish = got.text, got.json["choices"][0]["finish_reason"]
            assert finish == "length"
            assert text == LONG[:440]
            async with asyncio.timeout(2):
                await scene.provider.requests[-1].closed.wait()
        assert [outcome for _, outcome in await scene.runs()] == ["cancelled", "cancelled"]

    at_the_wire(tmp_path, body)


def test_an_answer_that_the_model_could_not_finish_has_the_reason_length(tmp_path: Path) -> None:
    """S16."""

    async def body(scene: Scene) -> None:
        scene.provider.queue(Text("Half an ans", finish="length"), Text("Half an ans", finish="length"))
        got = (await scene.chat()).json["choices"][0]
        assert (got["finish_reason"], got["message"]["content"]) == ("length", "Half an ans")
        events = await scene.chat_stream()
        assert joined(events) == "Half an ans"

    at_the_wire(tmp_path, body)


def test_a_half_tool_call_is_not_handed_to_the_client(tmp_path: Path) -> None:
    """S16."""

    async def body(scene: Scene) -> None:
        scene.provider.queue(Calls(("c", "add", '{"a": '), finish="length"))
        got = (await scene.chat(tools=[ADD])).json["choices"][0]
        assert got["finish_reason"] == "length"
        assert "tool_calls" not in got["message"]

    at_the_wire(tmp_path, body)


def test_a_budget_that_is_spent_is_an_error_that_clients_do_not_repeat(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        got = await scene.chat()
        assert got.error == (429, "over_budget")
        assert got.json["error"]["type"] == "insufficient_quota"
        assert got.headers["x-should-retry"] == "false"

    def poor(settings: Settings) -> Settings:
        return replace(settings, runtime=replace(settings.runtime, budget_tokens=10))

    at_the_wire(tmp_path, body, change=poor)


def test_a_run_that_takes_too_long_is_a_timeout(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        scene.provider.queue(Hang())
        assert (await scene.chat()).error == (504, "run_timeout")

    def hurried(settings: Settings) -> Settings:
        return replace(settings, runtime=replace(settings.runtime, timeout_s=0.2))

    at_the_wire(tmp_path, body, change=hurried)


def test_a_token_without_the_scope_chat_may_not_talk(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        auditor = scene.as_user("eve", "approve")
        assert (await auditor.chat()).error == (403, "not_allowed")
        nobody = replace(scene, token="xc_owner_" + "x" * 30)
        refused = await nobody.chat()
        assert (refused.status, refused.json["error"]["type"]) == (401, "invalid_request_error")

    at_the_wire(tmp_path, body)
