"""From a model's tool call to arguments (fault class 01, SPEC D4)."""

import json
import time
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xclaw.contracts.errors import ToolFailed
from xclaw.loop.arguments import decode_arguments, resolve_name, safe_arguments, unknown_tool
from xclaw.loop.schema_checks import violations

LIST_DIR: dict[str, object] = {"type": "object", "properties": {"path": {"type": "string"}}}
VIEW: dict[str, object] = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "offset": {"type": "integer"}},
    "required": ["path"],
    "additionalProperties": False,
}
DEBATE: dict[str, object] = {
    "type": "object",
    "properties": {
        "question": {"type": "string"},
        "agents": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "rounds": {"type": "integer", "minimum": 1, "maximum": 5},
        "strict": {"type": "boolean"},
        "weight": {"type": "number"},
        "output_schema": {"anyOf": [{"type": "object"}, {"type": "null"}]},
    },
    "required": ["question", "agents"],
}


def failure_of(name: str, text: str, schema: dict[str, object]) -> str:
    with pytest.raises(ToolFailed) as caught:
        decode_arguments(name, text, schema)
    return str(caught.value)


@pytest.mark.parametrize("text", ["", "null", "   ", "\n", "{}", " { } "])
def test_no_arguments_in_any_spelling_are_an_empty_object(text: str) -> None:
    """P05"""
    assert decode_arguments("list_dir", text, LIST_DIR) == {}
    message = failure_of("view_file", text, VIEW)
    assert "path" in message
    assert "required" in message
    assert "invalid JSON" not in message


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("[]", "array"),
        ('["a"]', "array"),
        ("7", "number"),
        ('"x"', "string"),
        ("true", "boolean"),
        ("1.5", "number"),
        ('"[1]"', "string"),
    ],
)
def test_json_that_is_no_object_is_an_error_that_asks_for_one(text: str, kind: str) -> None:
    """P03"""
    message = failure_of("delegate", text, LIST_DIR)
    assert "object" in message
    assert kind in message
    assert "delegate" in message


@pytest.mark.parametrize(
    "text", ['{"path": "no', "{'path': 'a'}", '{"path": }', "path=a", '{"a": NaN}', "{}{}"]
)
def test_invalid_json_names_the_tool_and_what_is_wrong(text: str) -> None:
    """P01"""
    message = failure_of("view_file", text, VIEW)
    assert "invalid JSON" in message
    assert "view_file" in message
    assert text in message


def test_a_huge_malformed_payload_is_not_echoed() -> None:
    """P04"""
    text = '{"cmd": "' + "A" * 400_000
    message = failure_of("shell", text, LIST_DIR)
    assert len(message) <= 2_000
    assert "400009" in message
    assert safe_arguments(text) == "{}"


@pytest.mark.parametrize("depth", [200, 5_000, 100_000])
def test_deep_nesting_is_an_error(depth: int) -> None:
    text = '{"path": "a", "offset": ' + "[" * depth + "]" * depth + "}"
    message = failure_of("view_file", text, VIEW)
    assert len(message) <= 2_000
    assert "offset" in message or "nested too deeply" in message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"path": "a\nb"}', {"path": "a\nb"}),
        ('"{\\"path\\": \\"a\\"}"', {"path": "a"}),
        ('{"path": "a", "offset": "12"}', {"path": "a", "offset": 12}),
        ('{"path": "a", "offset": 12.0}', {"path": "a", "offset": 12}),
        ('{"path": "a", "offset": null}', {"path": "a"}),
        ('{"Path": "a"}', {"path": "a"}),
        ('{"path": 7}', {"path": "7"}),
        ('{"path": {"a": 1}}', {"path": '{"a":1}'}),
    ],
)
def test_what_can_be_read_without_losing_anything_is_read(text: str, expected: dict[str, object]) -> None:
    assert decode_arguments("view_file", text, VIEW) == expected


@pytest.mark.parametrize(
    ("agents", "expected"),
    [
        (["coder"], ["coder"]),
        ('["coder", "skeptic"]', ["coder", "skeptic"]),
        ("coder", ["coder"]),
        ("", [""]),
    ],
)
def test_lists_come_natively_as_json_text_or_alone(agents: object, expected: list[str]) -> None:
    """D4"""
    arguments = decode_arguments("debate", json.dumps({"question": "q", "agents": agents}), DEBATE)
    assert arguments["agents"] == expected


def test_scalars_and_objects_written_as_text_are_converted() -> None:
    text = json.dumps(
        {
            "question": "q",
            "agents": ["a"],
            "rounds": " 2 ",
            "strict": "True",
            "weight": "0.5",
            "output_schema": '{"type": "object"}',
        }
    )
    assert decode_arguments("debate", text, DEBATE) == {
        "question": "q",
        "agents": ["a"],
        "rounds": 2,
        "strict": True,
        "weight": 0.5,
        "output_schema": {"type": "object"},
    }


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        ({"question": "q"}, "agents"),
        ({"question": "q", "agents": []}, "agents"),
        ({"question": "q", "agents": [7]}, "agents[0]"),
        ({"question": "q", "agents": ["a"], "rounds": 9}, "rounds"),
        ({"question": "q", "agents": ["a"], "rounds": "many"}, "rounds"),
        ({"question": "q", "agents": ["a"], "rounds": 1.5}, "rounds"),
        ({"question": "q", "agents": ["a"], "rounds": True}, "rounds"),
        ({"question": "q", "agents": ["a"], "strict": "perhaps"}, "strict"),
        ({"question": "q", "agents": ["a"], "weight": "NaN"}, "weight"),
        ({"question": None, "agents": ["a"]}, "question"),
    ],
)
def test_violations_name_the_place_and_the_expected_call(arguments: dict[str, object], place: str) -> None:
    message = failure_of("debate", json.dumps(arguments), DEBATE)
    assert place in message
    assert "debate(question: string, agents: array, rounds?: integer" in message
    assert len(message) <= 2_000


def test_an_unknown_parameter_is_refused_only_by_a_closed_schema() -> None:
    assert decode_arguments("list_dir", '{"deep": 1}', LIST_DIR) == {"deep": 1}
    assert "deep" in failure_of("view_file", '{"path": "a", "deep": 1}', VIEW)


def test_many_or_huge_violations_stay_bounded() -> None:
    text = json.dumps({"path": "a", **{f"k{i}" * 100: "v" * 5_000 for i in range(200)}})
    assert len(failure_of("view_file", text, VIEW)) <= 2_000


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"$ref": "https://example.invalid/x.json"}}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}},
        {"type": "nonsense"},
        {"type": "object", "properties": {"a": {"pattern": "("}}},
        {"type": "object", "properties": []},
    ],
)
def test_a_broken_schema_stops_no_call_and_fetches_nothing(schema: dict[str, object]) -> None:
    assert decode_arguments("t", '{"a": "x"}', schema) == {"a": "x"}


def test_schemas_are_told_apart_even_when_one_takes_the_place_of_another_in_memory() -> None:
    for index in range(1_000):
        schema: dict[str, object] = {"type": "object", "required": [f"p{index}"]}
        assert decode_arguments("t", json.dumps({f"p{index}": 1}), schema) == {f"p{index}": 1}
        assert f"p{index}" in failure_of("t", "{}", schema)


def test_the_common_case_costs_microseconds() -> None:
    text = '{"path": "a.txt", "offset": 3}'
    decode_arguments("view_file", text, VIEW)
    started = time.process_time()
    for _ in range(2_000):
        decode_arguments("view_file", text, VIEW)
    assert (time.process_time() - started) / 2_000 < 100e-6


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(["question", "agents", "rounds", "strict", "x"]), JSON_VALUES))
def test_arguments_either_satisfy_the_schema_or_are_refused(arguments: dict[str, object]) -> None:
    try:
        decoded = decode_arguments("debate", json.dumps(arguments), DEBATE)
    except ToolFailed:
        return
    assert violations(decoded, DEBATE) == []


@given(st.text(max_size=40) | JSON_VALUES.map(json.dumps))
def test_what_the_history_keeps_is_always_an_object(text: str) -> None:
    assert isinstance(json.loads(safe_arguments(text)), dict)


def test_the_history_keeps_readable_arguments_and_shortens_huge_ones() -> None:
    assert json.loads(safe_arguments('{"path": "a\nb"}')) == {"path": "a\nb"}
    huge = json.dumps({"path": "a.txt", "content": "x" * 500_000, "parts": ["y" * 1_000] * 300})
    kept = safe_arguments(huge)
    assert len(kept) < 10_000
    fields = cast(dict[str, object], json.loads(kept))
    assert fields["path"] == "a.txt"
    assert "500000 characters" in str(fields["content"])


@pytest.mark.parametrize(
    "name",
    [
        "list_dir",
        'list_dir" />',
        "list_dir()",
        " functions.list_dir",
        "LIST_DIR",
        "list-dir",
        "`list_dir`",
        "ListDir",
        "ｌｉｓｔ＿ｄｉｒ",
        "list_dir\n",
    ],
)
def test_names_with_debris_are_resolved(name: str) -> None:
    """N05"""
    assert resolve_name(name, ["list_dir", "view_file"]) == "list_dir"


@pytest.mark.parametrize("name", ["", "  ", "search_web", "list", "list_dir view_file", "x" * 100_000])
def test_names_that_mean_no_tool_are_not_resolved(name: str) -> None:
    assert resolve_name(name, ["list_dir", "view_file"]) is None


def test_a_name_that_could_mean_two_tools_is_not_resolved() -> None:
    assert resolve_name("Readfile", ["read_file", "ReadFile"]) is None
    assert resolve_name("read_file", ["read_file", "ReadFile"]) == "read_file"


def test_the_error_for_an_unknown_tool_lists_the_real_names_near_ones_first() -> None:
    """N01"""
    message = unknown_tool("view_fil", ["deliver", "list_dir", "view_file"])
    assert "'view_fil'" in message
    assert "view_file, deliver, list_dir" in message


@pytest.mark.parametrize("name", ["", "x" * 400_000])
def test_the_error_for_an_odd_name_is_bounded(name: str) -> None:
    message = unknown_tool(name, [f"tool_{i}" for i in range(500)])
    assert len(message) <= 2_000
    assert "tool_0" in message


def test_without_tools_the_model_is_told_to_answer() -> None:
    assert "answer" in unknown_tool("x", [])
