"""Checks against schemas that somebody wrote to hold everything up."""

import time

import pytest

from xclaw.loop.schema_checks import MAX_CHECK_S, violations

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
