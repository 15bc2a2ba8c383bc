"""Scripted models: replies by place in the conversation, in both dialects."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from xclaw.contracts.errors import ModelError, ModelInterrupted, ModelRejected, ModelUnavailable, UsageError
from xclaw.contracts.messages import AssistantMessage, ChatMessage, ToolCall, ToolMessage, UserMessage
from xclaw.contracts.models import Model, ModelReply, ModelRequest, ToolSpec
from xclaw.testing import FunctionModel, RecordingSink, ScriptedModel

TOOLS = (ToolSpec("look", "Looks.", {"type": "object"}),)
TASK = "[Task workspace: /w/coder/aaaaaa]\n\n[Shared delivery dir: /d/aaaaaa]\n\nWrite it."


def _request(
    *messages: ChatMessage, agent: str = "coder", tools: tuple[ToolSpec, ...] = TOOLS
) -> ModelRequest:
    return ModelRequest("Be brief.", messages or (UserMessage("hi"),), tools, agent=agent)


def _ask(model: Model, request: ModelRequest, sink: RecordingSink | None = None) -> ModelReply:
    return asyncio.run(model.reply(request, sink or RecordingSink()))


def _error(model: Model, request: ModelRequest) -> ModelError:
    with pytest.raises(ModelError) as caught:
        _ask(model, request)
    return caught.value


def test_replies_follow_the_assistant_messages_since_the_last_instruction() -> None:
    """K6: the place is in the conversation, so a new process goes on where the old one was."""
    script = {"coder": ["first", "second"]}
    conversation = (
        UserMessage("an earlier request"),
        AssistantMessage("an earlier answer"),
        UserMessage("do it", "agent"),
    )
    assert _ask(ScriptedModel(script), _request(*conversation)).message.text == "first"
    went_on = (*conversation, AssistantMessage("first"), UserMessage("<note/>", "notification"))
    assert _ask(ScriptedModel(script), _request(*went_on)).message.text == "second"


def test_a_text_is_streamed_in_pieces_that_add_up() -> None:
    sink = RecordingSink()
    reply = _ask(ScriptedModel({"": ["你好, wörld"]}), _request(), sink)
    assert sink.deltas == ["你好,", " wö", "rld"]
    assert sink.text == reply.message.text == "你好, wörld"
    assert reply.finish == "stop"


def test_calls_are_native_when_the_request_has_tools() -> None:
    calls = [{"name": "look", "arguments": {"at": "ä"}}, {"name": "look"}, {"name": "x", "arguments": "{bad"}]
    reply = _ask(ScriptedModel({"coder": [{"calls": calls, "text": "I look."}]}), _request())
    assert reply.message == AssistantMessage(
        "I look.",
        (
            ToolCall("call_0", "look", '{"at":"ä"}'),
            ToolCall("call_1", "look", "{}"),
            ToolCall("call_2", "x", "{bad"),
        ),
    )
    assert reply.finish == "tool_calls"


def test_calls_are_json_text_when_the_request_has_none() -> None:
    """C4: the JSON dialect asks for actions as text."""
    calls = [{"name": "look", "arguments": {"at": "x"}}, {"name": "look", "arguments": "{'action': 'bad'"}]
    model = ScriptedModel({"coder": [{"calls": calls, "text": "So:"}]})
    reply = _ask(model, _request(tools=()))
    assert reply.message == AssistantMessage('So:\n{"action":"look","at":"x"}\n{\'action\': \'bad\'')
    assert reply.finish == "stop"


def test_usage_is_estimated_and_costs_nothing() -> None:
    model = ScriptedModel({"": ["x" * 400]})
    reply = _ask(model, _request())
    assert reply.usage.estimated
    assert reply.usage.output_tokens >= 100
    assert reply.usage.input_tokens > 0
    assert reply.cost_usd == 0.0
    assert model.profile.scripted


def test_a_script_that_has_run_out_names_agent_and_number() -> None:
    model = ScriptedModel({"coder": ["one"]}, name="script:demo.yaml")
    error = _error(model, _request(UserMessage("hi"), AssistantMessage("one")))
    assert isinstance(error, ModelRejected)
    assert str(error) == (
        "script:demo.yaml: the script of agent 'coder' has 1 replies for this request, number 2 was asked for"
    )
    assert "no entry answers agent 'writer'" in str(_error(model, _request(agent="writer")))


@pytest.mark.parametrize(
    ("fail", "kind", "status"),
    [
        ("unavailable", ModelUnavailable, 503),
        ("rejected", ModelRejected, 400),
        ("interrupted", ModelInterrupted, None),
    ],
)
def test_a_failure_comes_after_what_was_streamed(
    fail: str, kind: type[ModelError], status: int | None
) -> None:
    sink = RecordingSink()
    model = ScriptedModel({"coder": [{"fail": fail, "after": "half an ans"}]})
    with pytest.raises(kind) as caught:
        _ask(model, _request(), sink)
    assert sink.text == caught.value.partial == "half an ans"
    assert caught.value.status == status


def test_a_file_answers_by_agent_and_instruction(tmp_path: Path) -> None:
    path = tmp_path / "script.yaml"
    path.write_text(
        "- {agent: coder, when: '(?i)JOKE', replies: [{text: a joke}]}\n"
        "- {agent: coder, replies: [{text: code}]}\n"
        "- replies: [{text: anybody}]\n"
    )
    model = ScriptedModel.from_file(path)
    assert model.name == f"script:{path}"
    assert _ask(model, _request(UserMessage("tell a joke"))).message.text == "a joke"
    assert _ask(model, _request(UserMessage("write it"))).message.text == "code"
    assert _ask(model, _request(UserMessage("tell a joke"), agent="writer")).message.text == "anybody"


def test_json_files_work_with_tabs(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text('[\n\t{"replies": [{"text": "fine"}]}\n]')
    assert _ask(ScriptedModel.from_file(path), _request()).message.text == "fine"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("- {agent: a, replies: [{text: x}]}\n- {agent: a, replies: [{txt: x}]}", r"entry 2: .*`txt`"),
        ("- {agent: a, replies: []}", "entry 1: .*`replies` is empty"),
        ("- {agent: a}", "entry 1: .*missing required field `replies`"),
        ("- {when: '(', replies: [{text: x}]}", "entry 1: .*no regular expression"),
        ("- {replies: [{text: x, fail: rejected}]}", "entry 1: .*or else `fail`"),
        ("- {replies: [{}]}", "entry 1: .*or else `fail`"),
        ("- {replies: [{text: x, after: y}]}", "entry 1: .*goes with `fail` only"),
        ("- {replies: [{fail: oops}]}", "entry 1: .*'oops'"),
        ("- {replies: [{calls: [{arguments: {}}]}]}", "entry 1: .*`name`"),
        ("- just text", "entry 1: Expected `object`"),
        ("replies: []", "must be a list"),
        ("", "must be a list"),
        ("- [", "no valid YAML or JSON"),
        ("- {replies: [{text: {{delivery_dir}}}]}", "needs quotes"),
        ("- 2026-13-45", "no valid YAML or JSON"),
        ("[" * 10_000, "no valid YAML or JSON"),
    ],
)
def test_a_bad_file_is_told_by_file_entry_and_reason(tmp_path: Path, content: str, reason: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(content)
    with pytest.raises(UsageError, match=r"(?s)script .*bad\.yaml.*" + reason):
        ScriptedModel.from_file(path)


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "latin1.yaml").write_bytes(b"- caf\xe9")
    for path in (tmp_path / "missing.yaml", tmp_path / "latin1.yaml", tmp_path):
        with pytest.raises(UsageError, match="cannot be read"):
            ScriptedModel.from_file(path)


def test_a_bad_reply_in_python_is_told() -> None:
    with pytest.raises(UsageError, match=r"agent 'coder', reply 2: .*`txt`"):
        ScriptedModel({"coder": ["fine", {"txt": "oops"}]})


def test_placeholders_are_filled_from_the_task_headers() -> None:
    """D1; R04 and R05: once, literally; D3: a pipeline's own placeholder stays."""
    reply = {"text": "{{delivery_dir}}|{{workspace}}|{{input}}|{{unknown}}"}
    filled = _ask(ScriptedModel({"coder": [reply]}), _request(UserMessage(TASK, "agent")))
    assert filled.message.text == "/d/aaaaaa|/w/coder/aaaaaa|{{input}}|{{unknown}}"
    strange = TASK.replace("/d/aaaaaa", r"/d/\1{{workspace}}")
    filled = _ask(ScriptedModel({"coder": [reply]}), _request(UserMessage(strange, "agent")))
    assert filled.message.text.startswith(r"/d/\1{{workspace}}|/w/")


POINTERS: Sequence[tuple[str, str]] = [
    ("delivered: /d/my dir/report.md", "/d/my dir/report.md"),
    ('{"artifact_pointers": {"r": "/d/my dir/report.md"}}', "/d/my dir/report.md"),
    ("delivered: /d/report.md\ndelivered: /d/report.v2.md", "/d/report.v2.md"),
    ("see /d/report.md, and /d/other.md.", "/d/report.md"),
    ("delivered: /d/a-report.md\n(delivered: /d/b/report.md)", "/d/b/report.md"),
    ("[Input artifacts: /d/x.md, /d/report.md]", "/d/report.md"),
    (r"delivered: C:\d\report.md", r"C:\d\report.md"),
]


@pytest.mark.parametrize(("said", "path"), POINTERS)
def test_a_pointer_is_the_path_that_was_last_said(said: str, path: str) -> None:
    model = ScriptedModel({"coder": ["", {"text": {"r": "{{pointer:report.md}}"}}]})
    conversation = (
        UserMessage("go"),
        AssistantMessage("", (ToolCall("1", "deliver", '{"path": "/mine/report.md"}'),)),
        ToolMessage("1", "deliver", said),
    )
    text = _ask(model, _request(*conversation)).message.text
    assert msgspec.json.decode(text) == {"r": path}


@pytest.mark.parametrize(
    "said", ["nothing", "report.md", "/d/a-report.md", "/d/report.mdx", "/a b/report.md"]
)
def test_a_pointer_that_nobody_named_is_no_answer(said: str) -> None:
    model = ScriptedModel({"coder": ["{{pointer:report.md}}"]})
    error = _error(model, _request(UserMessage(said)))
    assert isinstance(error, ModelRejected)
    assert "'coder': the placeholder {{pointer:report.md}} cannot be filled" in str(error)


def test_a_function_answers_the_request() -> None:
    model = FunctionModel(lambda request: f"{request.agent}: {len(request.messages)}")
    sink = RecordingSink()
    assert _ask(model, _request(agent="writer"), sink).message.text == "writer: 1"
    assert sink.text == "writer: 1"


def test_an_async_function_may_wait_and_is_cancelled_with_the_reply() -> None:
    async def main() -> None:
        waiting, ended = asyncio.Event(), asyncio.Event()

        async def wait(request: ModelRequest) -> str:
            waiting.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()
            return "never"

        call = asyncio.create_task(FunctionModel(wait).reply(_request(), RecordingSink()))
        async with asyncio.timeout(5):
            await waiting.wait()
            call.cancel()
            await ended.wait()
            with pytest.raises(asyncio.CancelledError):
                await call

    asyncio.run(main())


def test_what_a_function_raises_comes_out() -> None:
    def fail(request: ModelRequest) -> str:
        raise ModelUnavailable("busy", retry_after_s=3.0)

    error = _error(FunctionModel(fail), _request())
    assert isinstance(error, ModelUnavailable)
    assert error.retry_after_s == 3.0


def test_replies_that_run_at_once_do_not_mix() -> None:
    """I01: a model is shared and holds nothing of a call."""
    model = FunctionModel(lambda request: request.agent * 50)

    async def main() -> None:
        sinks = {name: RecordingSink() for name in "abcdef"}
        async with asyncio.timeout(5), asyncio.TaskGroup() as group:
            for name, sink in sinks.items():
                group.create_task(model.reply(_request(agent=name), sink))
        assert {name: sink.text for name, sink in sinks.items()} == {name: name * 50 for name in "abcdef"}

    asyncio.run(main())
