"""How the JSON action protocol is shown to a model (SPEC C4, fault B04)."""

import json
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xclaw.contracts.messages import ToolCall
from xclaw.contracts.models import ToolSpec
from xclaw.loop.actions import (
    Actions,
    Answer,
    action_schema,
    parse_reply,
    render_calls,
    render_output,
    syntax_instructions,
)
from xclaw.loop.fences import fence, fenced_blocks
from xclaw.loop.finish import RESULT_SCHEMA, result_schema
from xclaw.loop.schema_checks import violations

VIEW = ToolSpec(
    "view_file",
    "Read a file.",
    {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Where it is."},
            "offset": {"type": "integer"},
        },
        "required": ["path"],
    },
)
ODD = ToolSpec(
    "convert",
    'Converts {braces} and "quotes".',
    {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]},
)
REFERRING = ToolSpec(
    "plan",
    "Plans.",
    {
        "type": "object",
        "properties": {"steps": {"type": "array", "items": {"$ref": "#/$defs/Step"}}},
        "required": ["steps"],
        "$defs": {"Step": {"type": "object", "properties": {"agent": {"type": "string"}}}},
    },
)


def test_a_past_call_is_one_line_with_the_action_first() -> None:
    call = ToolCall("c1", "view_file", '{ "path" : "a.txt" }')
    assert (
        render_calls([call, call])
        == '{"action":"view_file","path":"a.txt"}\n{"action":"view_file","path":"a.txt"}'
    )


@pytest.mark.parametrize("arguments", ['{"path": "no', "", "null", "[]", '{"cmd": "' + "A" * 400_000])
def test_a_past_call_with_unreadable_arguments_is_shown_without_them(arguments: str) -> None:
    """P04"""
    assert render_calls([ToolCall("c1", "view_file", arguments)]) == '{"action":"view_file"}'


def test_parameters_that_collide_with_the_protocol_go_under_args() -> None:
    line = render_calls([ToolCall("c1", "convert", '{"input": {"a": 1}}')])
    assert parse_reply(line, ["convert"]) == Actions((("convert", '{"input":{"a":1}}'),))


def test_a_tool_output_says_what_it_is() -> None:
    assert render_output("view_file", "7") == "tool output: view_file\n```\n7\n```"


@given(st.lists(st.sampled_from(["```", "````", "`", "~~~", "\n", "x", "tool output: x"])).map("".join))
def test_nothing_in_an_output_can_end_its_block(content: str) -> None:
    """B04: a fence is not closed from inside."""
    rendered = render_output("view_file", content)
    assert fenced_blocks(rendered) == [("", content)]
    opening = rendered.split("\n")[1]
    assert opening not in content
    assert rendered.endswith(f"\n{opening}")


def test_blocks_are_read_back_with_their_labels() -> None:
    inner = fence("secret", "task")
    text = f"Intro\n{fence(inner, 'summary')}\n\n{fence('b', 'record')}"
    assert fenced_blocks(text) == [("summary", inner), ("record", "b")]


def test_the_instructions_show_a_signature_and_an_example_that_is_an_action_for_every_tool() -> None:
    text = syntax_instructions([VIEW, ODD, REFERRING])
    assert text.startswith("## Tool calls\n")
    assert '"tool output:"' in text
    assert "view_file(path: string, offset?: integer): Read a file." in text
    assert "path: Where it is." in text
    examples = [line.strip() for line in text.splitlines() if line.startswith('  {"action"')]
    readings = [parse_reply(example, ["view_file", "convert", "plan"]) for example in examples]
    assert readings == [
        Actions((("view_file", '{"path":"<path>"}'),)),
        Actions((("convert", '{"input":"<input>"}'),)),
        Actions((("plan", '{"steps":[]}'),)),
    ]


def test_an_agent_without_tools_is_told_nothing_of_them() -> None:
    assert syntax_instructions([]) == ""


def test_the_schema_admits_each_action_and_the_answer_and_nothing_else() -> None:
    schema = action_schema([VIEW, ODD, REFERRING], None)
    good = [
        {"action": "view_file", "path": "a"},
        {"action": "convert", "args": {"input": "x"}},
        {"action": "plan", "steps": [{"agent": "coder"}]},
        {"action": "answer", "text": "hi"},
    ]
    bad = [
        {"action": "view_file"},
        {"action": "shell", "path": "a"},
        {"action": "view_file", "path": "a", "mode": 1},
        {"action": "plan", "steps": [{"agent": 3}]},
        {"text": "hi"},
    ]
    for value in good:
        assert not violations(value, schema)
        assert isinstance(parse_reply(json.dumps(value), ["view_file", "convert", "plan"]), Actions | Answer)
    for value in bad:
        assert violations(value, schema)


@pytest.mark.parametrize(
    "final",
    [RESULT_SCHEMA, result_schema({"type": "object", "properties": {"score": {"type": "integer"}}})],
)
def test_the_schema_of_a_structured_task_ends_in_the_result_form(final: dict[str, object]) -> None:
    schema = action_schema([VIEW], final)
    reply: dict[str, object] = {
        "action": "result",
        "status": "success",
        "summary_data": {"score": 7},
        "artifact_pointers": {},
    }
    assert not violations(reply, schema)
    reading = parse_reply(json.dumps(reply), ["view_file"])
    assert isinstance(reading, Answer)
    form = cast(dict[str, object], json.loads(reading.text))
    assert form == {"status": "success", "summary_data": {"score": 7}, "artifact_pointers": {}}
    assert violations({"action": "answer", "text": "hi"}, schema)


def test_definitions_of_a_tool_and_of_a_result_do_not_collide() -> None:
    form = result_schema({"$ref": "#/$defs/Step", "$defs": {"Step": {"type": "string"}}})
    schema = action_schema([REFERRING], form)
    reply: dict[str, object] = {
        "action": "result",
        "status": "success",
        "summary_data": "x",
        "artifact_pointers": {},
    }
    assert not violations(reply, schema)
    assert not violations({"action": "plan", "steps": [{"agent": "a"}]}, schema)
    assert violations({**reply, "summary_data": {}}, schema)
