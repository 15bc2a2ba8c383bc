"""Checks against schemas that somebody wrote to hold everything up."""

import time
from typing import cast

import pytest

from xclaw.loop.json_schema import MAX_CHECK_S, validator_of
from xclaw.loop.schema_checks import checker_for, violations

DRAFT_7 = "http://json-schema.org/draft-07/schema#"


def doubling(names: str = "$defs", **each: object) -> dict[str, object]:
    """A few lines that name each other twice: 2^30 checks, one after the other."""
    steps = {
        f"s{n}": {"anyOf": [{"$ref": f"#/{names}/s{n + 1}"}, {"$ref": f"#/{names}/s{n + 1}"}], **each}
        for n in range(30)
    }
    return {names: {**steps, "s30": {"type": "string"}}, "$ref": f"#/{names}/s0"}


@pytest.mark.parametrize(
    "schema",
    [
        doubling(),
        doubling(**{"$schema": DRAFT_7}),
        {**doubling("definitions"), "$schema": DRAFT_7},
        {"$ref": "#"},
        {"items": {"$ref": "#/items"}},
        {"uniqueItems": True},
    ],
)
def test_a_schema_that_takes_years_is_given_up_soon(schema: dict[str, object]) -> None:
    value: list[object] = [{"n": n} if n % 2 else n for n in range(20_000)]
    begun = time.monotonic()
    assert violations(value, schema) == []
    assert time.monotonic() - begun < MAX_CHECK_S + 10


def test_what_was_found_before_a_check_was_given_up_counts() -> None:
    schema: dict[str, object] = {"allOf": [{"type": "string"}, doubling()], "$defs": doubling()["$defs"]}
    assert len(violations([1], schema)) == 1


def test_a_dialect_named_below_the_top_changes_no_other_check() -> None:
    schema: dict[str, object] = {
        "properties": {"a": {"$schema": DRAFT_7, "type": "integer"}, "$schema": {"const": {"$schema": "x"}}}
    }
    assert violations({"a": 1, "$schema": {"$schema": "x"}}, schema) == []
    assert len(violations({"a": "1", "$schema": {"$schema": "y"}}, schema)) == 2


@pytest.mark.parametrize("value", [[float("inf")], [float("nan")], [10**400]])
def test_numbers_too_large_for_a_keyword_are_no_failure_of_ours(value: list[object]) -> None:
    assert isinstance(violations(value, {"items": {"multipleOf": 1e-320}}), list)


def with_inputs(inputs: object) -> dict[str, object]:
    properties = {"task": {"type": "string"}, "inputs": inputs}
    return {"type": "object", "properties": properties, "required": ["task"], "additionalProperties": False}


def test_what_only_the_library_can_judge_is_judged_by_it_where_it_is_there() -> None:
    checker = checker_for(with_inputs({"anyOf": [{"type": "array", "items": {"type": "string"}}]}))
    assert checker.accepts({"task": "t"})
    assert checker.accepts({"task": "t", "inputs": ["a"]})
    assert not checker.accepts({"task": "t", "inputs": [1]})
    assert not checker.accepts({"task": 1})
    assert not checker.accepts({"inputs": ["a"]})
    assert not checker.accepts({"task": "t", "other": 1})


def test_a_broken_schema_refuses_nothing() -> None:
    checker = checker_for(with_inputs({"anyOf": 5}))
    assert checker.accepts({"task": 1})
    assert checker.accepts({"task": "t", "inputs": 1})


def test_equal_schemas_are_made_ready_once_and_one_may_change_without_the_other() -> None:
    def schema() -> dict[str, object]:
        return {"type": "object", "properties": {"numbers": {"type": "array", "items": {"type": "integer"}}}}

    first, second = schema(), schema()
    assert validator_of(first) is validator_of(second)
    cast("dict[str, object]", first["properties"]).clear()
    assert violations({"numbers": ["a"]}, second)
    assert not violations({"numbers": ["a"]}, first | {"title": "changed"})
