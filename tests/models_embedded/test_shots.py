"""The worked examples and the schema of small models agree with each other and with the tools."""

import json
import re
from collections.abc import Sequence
from typing import cast

import jsonschema
import pytest

from xclaw.contracts.agents import Agent
from xclaw.contracts.coaching import Standing
from xclaw.contracts.messages import AssistantMessage, ChatMessage, ToolMessage, UserMessage
from xclaw.contracts.models import ToolSpec
from xclaw.contracts.tokens import estimate_tokens
from xclaw.loop.finish import RESULT_SCHEMA, result_schema
from xclaw.models.embedded.coaching import SmallModelCoaching, missing_parts
from xclaw.models.embedded.schema import action_schema
from xclaw.models.embedded.shots import (
    WORKER_TOOLS,
    orchestrator_brief,
    orchestrator_shots,
    worker_brief,
    worker_shots,
)
from xclaw.patterns.debate import DebateTool
from xclaw.patterns.delegate import DelegateTool
from xclaw.patterns.pipeline import PipelineTool
from xclaw.patterns.selfcontained import check
from xclaw.tools.deliver import deliver
from xclaw.tools.files import view_file

AGENTS: tuple[str, ...] = (
    "coder",
    "reviewer",
    "writer",
    "skeptic",
    "optimizer",
    "extractor",
    "analyzer",
    "reporter",
)
COORDINATION = tuple(tool(lambda _path: None).spec for tool in (DelegateTool, DebateTool, PipelineTool))
FILES = (deliver.spec, view_file.spec)


def replies(shots: Sequence[ChatMessage]) -> list[dict[str, object]]:
    """What the model says in the examples, as it is to say it."""
    said: list[dict[str, object]] = []
    for message in shots:
        if isinstance(message, AssistantMessage):
            calls = [{"action": call.name} | json.loads(call.arguments) for call in message.tool_calls]
            said += calls or [json.loads(message.text)]
    return said


def conforms(reply: dict[str, object], schema: dict[str, object]) -> bool:
    try:
        jsonschema.validate(reply, schema)  # pyright: ignore[reportUnknownMemberType]  untyped there
    except jsonschema.ValidationError:
        return False
    return True


ORCHESTRATOR_TOOLS = ("delegate", "debate", "pipeline")
ORCHESTRATOR_SCHEMA = action_schema(COORDINATION, None, agents=AGENTS)
WORKER_SCHEMA = action_schema(FILES, RESULT_SCHEMA)
TALKING_WORKER_SCHEMA = action_schema(FILES, None)


def test_the_tools_of_small_models_are_the_real_ones() -> None:
    assert tuple(spec.name for spec in COORDINATION) == ORCHESTRATOR_TOOLS
    assert tuple(spec.name for spec in FILES) == WORKER_TOOLS


@pytest.mark.parametrize(
    ("shots", "schema"), [(orchestrator_shots, ORCHESTRATOR_SCHEMA), (worker_shots, WORKER_SCHEMA)]
)
def test_every_example_is_what_the_schema_asks_for(
    shots: Sequence[ChatMessage], schema: dict[str, object]
) -> None:
    assert replies(shots)
    for reply in replies(shots):
        asked = TALKING_WORKER_SCHEMA if reply["action"] == "answer" and schema is WORKER_SCHEMA else schema
        assert conforms(reply, asked), reply


def test_workers_answer_without_a_task_header_and_give_a_result_with_one() -> None:
    """D2, D3: debaters and pipeline steps have no header and end with text."""
    text = ""
    for message in worker_shots:
        if isinstance(message, UserMessage):
            text = message.text
        elif isinstance(message, AssistantMessage) and not message.tool_calls:
            ends_with = "result" if text.startswith("[Task workspace: ") else "answer"
            assert json.loads(message.text)["action"] == ends_with


@pytest.mark.parametrize("shots", [orchestrator_shots, worker_shots])
def test_an_example_is_a_whole_conversation(shots: Sequence[ChatMessage]) -> None:
    """H01: no tool result without its call, and each example ends before the next begins."""
    open_calls: list[str] = []
    previous: ChatMessage | None = None
    for message in shots:
        match message:
            case UserMessage():
                assert previous is None or isinstance(previous, AssistantMessage)
                assert not open_calls
            case AssistantMessage(tool_calls=calls):
                open_calls = [call.id for call in calls]
            case ToolMessage(call_id=call_id):
                assert open_calls == [call_id]
                open_calls = []
        previous = message
    assert isinstance(previous, AssistantMessage)
    assert not previous.tool_calls


def test_the_examples_show_every_action_and_only_self_contained_tasks() -> None:
    said = replies(orchestrator_shots)
    assert {reply["action"] for reply in said} == {*ORCHESTRATOR_TOOLS, "answer"}
    assert {reply["action"] for reply in replies(worker_shots)} == {*WORKER_TOOLS, "result", "answer"}
    for reply in said:
        if reply["action"] == "delegate":
            assert check(cast("str", reply["task"]), has_inputs=False) is None, reply["task"]


def test_brief_and_examples_leave_most_of_a_small_context_free() -> None:
    agents = dict.fromkeys(AGENTS, "does what its name says")
    for brief, shots in (
        (orchestrator_brief(agents), orchestrator_shots),
        (worker_brief("A coder."), worker_shots),
    ):
        text = brief + "".join(repr(message) for message in shots)
        assert estimate_tokens(text) < 8192 * 0.4


def test_a_brief_names_the_agents_and_keeps_its_json_examples_whole() -> None:
    brief = orchestrator_brief({"coder": "writes {code}"})
    assert "- coder: writes {code}" in brief
    lines = [line for line in brief.splitlines() if line.startswith("{")]
    assert [json.loads(line[: _end_of_object(line)])["action"] for line in lines] == [
        *ORCHESTRATOR_TOOLS,
        "answer",
    ]
    assert "{{input}}" in brief


BOSS = Agent("boss", "Plans.", "Plan.", orchestrator=True)
CODER = Agent("coder", "Codes.", "Code.")


def test_a_small_model_is_told_what_is_done() -> None:
    note = SmallModelCoaching().note
    assert note(BOSS, Standing("Do it", ("coder", "writer"))) == (
        "(Done: coder, writer. Go on with the next part, or end with answer.)"
    )
    assert note(CODER, Standing("Do it", (), ("/s/a.py", "/s/b.md"))).startswith("(Delivered: a.py, b.md. ")
    assert note(BOSS, Standing("Do it")) == note(CODER, Standing("Do it")) == ""


@pytest.mark.parametrize(
    ("request_text", "parts"),
    [
        ("Write a Python function slugify(text) with tests, and a short README for it", ("coder", "writer")),
        ("Implement a JWT module, review it and document it", ("coder", "reviewer", "writer")),
        ("帮我写一个函数，写完后做代码审查，最后加上说明文档", ("coder", "reviewer", "writer")),
        ("Write a Python function that reverses a list", ()),
        ("Review this text for spelling", ()),
        ("What is the capital of France?", ()),
    ],
)
def test_the_parts_of_a_request_are_handed_out_one_after_the_other(
    request_text: str, parts: tuple[str, ...]
) -> None:
    """Which specialists a request for code needs is a rule's choice; the model words their tasks."""
    assert missing_parts(Standing(request_text)) == parts
    assert missing_parts(Standing(request_text, parts)) == ()
    for number, part in enumerate(parts):
        standing = Standing(request_text, parts[:number])
        schema = SmallModelCoaching().schema(BOSS, COORDINATION, None, AGENTS, standing)
        task: dict[str, object] = {"action": "delegate", "task": "t", "agent": part}
        assert conforms(task, schema)
        assert not conforms({**task, "agent": "skeptic"}, schema)
        assert not conforms({"action": "answer", "text": "done"}, schema)


def test_a_small_model_that_repeats_itself_is_offered_only_the_end() -> None:
    schema = SmallModelCoaching().schema(CODER, FILES, None, AGENTS, Standing("Do it", is_over=True))
    assert conforms({"action": "answer", "text": "done"}, schema)
    assert not conforms({"action": "deliver", "path": "a", "content": "b"}, schema)


@pytest.mark.parametrize(
    ("request_text", "offered"),
    [
        ("Write a parser with tests and a README", {"delegate"}),
        ("用 Go 写一个缓存，再写说明文档", {"delegate"}),
        ("Extract the points, translate them, then summarise", {"delegate", "pipeline"}),
        ("提取核心观点 → 翻译成中文 → 生成摘要", {"delegate", "pipeline"}),
        ("Should we use Redis or SQLite for sessions?", {"delegate", "debate"}),
        ("我在考虑用 Redis 还是 SQLite 来存储用户 session", {"delegate", "debate"}),
    ],
)
def test_a_line_or_a_debate_is_offered_to_who_seems_to_ask_for_one(
    request_text: str, offered: set[str]
) -> None:
    assert set(SmallModelCoaching().tools(BOSS, ORCHESTRATOR_TOOLS, request_text)) == offered


def test_coaching_gives_short_prompts_few_tools_and_fitting_examples() -> None:
    coaching = SmallModelCoaching()
    boss = Agent("boss", "Plans.", "Long.\n\nLonger.", orchestrator=True)
    coder = Agent("coder", "Codes.", "You write\ncode.\n\n## Details\nMany.")
    assert coaching.brief(coder, {}).startswith("You write code.\n\nAnswer with one JSON object")
    assert "Details" not in coaching.brief(coder, {})
    assert "- coder: Codes." in coaching.brief(boss, {"coder": "Codes."})
    assert coaching.tools(boss, ["delegate", "spawn", "wait", "deliver"], "Build it") == ("delegate",)
    assert coaching.tools(coder, ["view_file", "list_dir", "deliver"], "Build it") == ("view_file", "deliver")
    assert (coaching.shots(boss), coaching.shots(coder)) == (orchestrator_shots, worker_shots)


def _end_of_object(line: str) -> int:
    _, end = json.JSONDecoder().raw_decode(line)
    return end


@pytest.mark.parametrize(
    "reply",
    [
        {"action": "delegate", "task": "Write x.", "agent": "nobody"},
        {"action": "delegate", "task": "", "agent": "coder"},
        {"action": "delegate", "task": "Write x.", "agent": "coder", "output_schema": {}},
        {"action": "debate", "question": "A or B?", "agents": ["coder"]},
        {"action": "debate", "question": "A or B?", "agents": '["coder", "writer"]'},
        {"action": "pipeline", "steps": [{"task": "x", "agent": "nobody"}, {"task": "x", "agent": "coder"}]},
        {"action": "spawn", "prompt": "x", "agent": "coder"},
        {"action": "answer", "text": "x" * 2_001},
    ],
)
def test_what_an_orchestrator_must_not_say_is_ruled_out(reply: dict[str, object]) -> None:
    """N02: an agent that does not exist cannot be named."""
    assert not conforms(reply, ORCHESTRATOR_SCHEMA)


def test_a_small_model_words_the_task_before_it_names_the_agent() -> None:
    [option] = [
        option
        for option in cast("list[dict[str, dict[str, object]]]", ORCHESTRATOR_SCHEMA["anyOf"])
        if option["properties"]["action"] == {"const": "delegate"}
    ]
    assert list(option["properties"]) == ["action", "task", "agent"]


def test_pointers_are_taken_from_the_ledger_or_left_to_the_runtime() -> None:
    """R02: an invented pointer is impossible."""
    result: dict[str, object] = {
        "action": "result",
        "status": "success",
        "summary_data": {"summary": "done"},
        "artifact_pointers": dict[str, object](),
    }
    invented = result | {"artifact_pointers": {"a.py": "/elsewhere/a.py"}}
    assert conforms(result, WORKER_SCHEMA)
    assert not conforms(invented, WORKER_SCHEMA)
    known = action_schema(FILES, RESULT_SCHEMA, delivered=["/shared/1/a.py"])
    assert conforms(result | {"artifact_pointers": {"a.py": "/shared/1/a.py"}}, known)
    assert not conforms(invented, known)
    assert not conforms(result, known)


def test_a_tasks_own_schema_replaces_the_summary() -> None:
    """E4."""
    own: dict[str, object] = {
        "type": "object",
        "properties": {"score": {"type": "integer"}},
        "required": ["score"],
        "additionalProperties": False,
    }
    schema = action_schema(FILES, result_schema(own))
    result: dict[str, object] = {
        "action": "result",
        "status": "success",
        "artifact_pointers": dict[str, object](),
    }
    assert conforms(result | {"summary_data": {"score": 3}}, schema)
    assert not conforms(result | {"summary_data": {"summary": "good"}}, schema)


def test_a_file_is_never_cut_by_the_schema() -> None:
    """A cut string would pass for a whole file; the output limit says that it was cut."""
    assert conforms({"action": "deliver", "path": "a.py", "content": "x" * 100_000}, WORKER_SCHEMA)


def test_a_file_name_begins_with_no_space() -> None:
    assert not conforms({"action": "deliver", "path": " a.py", "content": "x"}, WORKER_SCHEMA)
    assert not conforms({"action": "deliver", "path": "", "content": "x"}, WORKER_SCHEMA)
    assert conforms({"action": "view_file", "path": "/workspace/a b/文件.py"}, WORKER_SCHEMA)


def test_parameters_of_any_tool_are_reduced_to_the_required_ones() -> None:
    tool = ToolSpec(
        "search",
        "Searches.",
        {
            "type": "object",
            "properties": {
                "kind": {"type": "string", "enum": ["web", "files"], "description": "Where"},
                "limit": {"type": "integer"},
                "words": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["kind", "words"],
        },
    )
    schema = action_schema([tool], None)
    assert conforms({"action": "search", "kind": "web", "words": ["a"]}, schema)
    assert not conforms({"action": "search", "kind": "web", "words": ["a"], "limit": 3}, schema)
    assert not conforms({"action": "search", "kind": "moon", "words": ["a"]}, schema)
    assert not re.search("description", json.dumps(schema))
