"""Users' functions as tools."""

import asyncio
import contextvars
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import pytest

from tools.workspaces_for_tools import make_setup
from xclaw.contracts.errors import ToolFailed, UsageError
from xclaw.contracts.tools import Tool, ToolContext, ToolOutput
from xclaw.tools.functions import tool


def run(made: Tool, tmp_path: Path, arguments: Mapping[str, object]) -> str:
    return asyncio.run(made.run(arguments, make_setup(tmp_path).context)).content


@dataclass
class Point:
    x: int
    y: int = 0


def test_types_and_docstring_are_what_a_model_is_told() -> None:
    @tool
    async def search(
        query: str,
        limit: int = 10,
        kind: Literal["web", "news"] = "web",
        near: Annotated[Point | None, "Where to look."] = None,
        tags: list[str] | None = None,
    ) -> str:
        """Search the archive,
        newest first.

        Second paragraph.

        Args:
            query: What to look for,
                in any language.
            limit (int): How many.

        Returns:
            Not for models.
        """
        return query

    assert search.spec.name == "search"
    assert search.spec.description == "Search the archive, newest first.\n\nSecond paragraph."
    assert search.spec.parameters == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What to look for, in any language."},
            "limit": {"type": "integer", "description": "How many."},
            "kind": {"enum": ["news", "web"], "type": "string"},
            "near": {"description": "Where to look.", "anyOf": [{"$ref": "#/$defs/Point"}, {"type": "null"}]},
            "tags": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
        },
        "required": ["query"],
        "additionalProperties": False,
        "$defs": {
            "Point": {
                "title": "Point",
                "type": "object",
                "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}},
                "required": ["x"],
            }
        },
    }


def test_sphinx_docstrings_are_read_too() -> None:
    @tool
    async def look(at: str, long: bool = False) -> str:
        """Looks.

        :param at: Where.
        :param bool long: Whether to look
            for long.
        :returns: What was seen.
        """
        return at

    properties = look.spec.parameters["properties"]
    assert properties == {
        "at": {"type": "string", "description": "Where."},
        "long": {"type": "boolean", "description": "Whether to look for long."},
    }
    assert look.spec.description == "Looks."


def test_arguments_arrive_as_the_types_of_the_signature(tmp_path: Path) -> None:
    @tool
    async def add(point: Point, factor: float = 1.0, note: str = "-") -> str:
        """Adds."""
        return f"{(point.x + point.y) * factor} {note}"

    assert run(add, tmp_path, {"point": {"x": 1, "y": 2}}) == "3.0 -"
    assert run(add, tmp_path, {"point": {"x": "4"}, "factor": 2, "note": {"a": 1}}) == '8.0 {"a":1}'
    with pytest.raises(ToolFailed, match="point"):
        run(add, tmp_path, {"point": 7})
    with pytest.raises(ToolFailed, match="factr"):
        run(add, tmp_path, {"point": {"x": 1}, "factr": 2})


def test_any_json_value_passes_where_no_type_is_given(tmp_path: Path) -> None:
    @tool
    async def echo(value: object, more: dict[str, object] | None = None) -> object:
        """Echoes."""
        return [value, more]

    assert run(echo, tmp_path, {"value": [1, {"a": None}]}) == '[[1,{"a":null}],null]'
    assert run(echo, tmp_path, {"value": 1, "more": {"k": [2]}}) == '[1,{"k":[2]}]'


def test_the_context_is_handed_in_and_hidden_from_the_model(tmp_path: Path) -> None:
    @tool
    async def who(context: ToolContext) -> str:
        """Says who asks."""
        return context.agent

    assert who.spec.parameters["properties"] == {}
    assert run(who, tmp_path, {}) == "coder"
    with pytest.raises(ToolFailed):
        run(who, tmp_path, {"context": {}})


@pytest.mark.parametrize(
    ("answer", "content"),
    [
        ("text", "text"),
        (None, "done"),
        ({"a": 1}, '{"a":1}'),
        ([], "[]"),
        (7, "7"),
        (Point(1, 2), '{"x":1,"y":2}'),
        (ToolOutput("out", False, 3), "out"),
        (Path("/a"), '"/a"'),
    ],
)
def test_an_answer_becomes_text(tmp_path: Path, answer: object, content: str) -> None:
    @tool
    async def give() -> object:
        """Gives."""
        return answer

    assert run(give, tmp_path, {}) == content


def test_a_plain_function_runs_in_a_thread_with_the_callers_context(tmp_path: Path) -> None:
    """F5: what it sets there stays there."""
    variable = contextvars.ContextVar("variable", default="unset")
    threads: list[int] = []

    @tool
    def where() -> str:
        """Says where."""
        threads.append(threading.get_ident())
        seen = variable.get()
        variable.set("leaked")
        return seen

    async def main() -> str:
        variable.set("mine")
        output = await where.run({}, make_setup(tmp_path).context)
        assert variable.get() == "mine"
        return output.content

    assert asyncio.run(main()) == "mine"
    assert threads != [threading.get_ident()]


def test_plain_functions_that_hang_hold_neither_others_nor_the_end(tmp_path: Path) -> None:
    """C02: a hundred of them, cancelled, and one more still gets its turn."""
    release = threading.Event()

    @tool
    def hang() -> None:
        """Hangs."""
        release.wait(30)

    @tool
    def answer() -> str:
        """Answers."""
        return "here"

    async def main() -> str:
        context = make_setup(tmp_path).context
        calls = [asyncio.create_task(hang.run({}, context)) for _ in range(100)]
        async with asyncio.timeout(5):
            content = (await answer.run({}, context)).content
            for call in calls:
                call.cancel()
            await asyncio.wait(calls)
        return content

    assert asyncio.run(main()) == "here"
    release.set()


@pytest.mark.parametrize("error", [ToolFailed("no"), ValueError("bad"), StopIteration("end")])
def test_what_a_function_raises_reaches_the_caller(tmp_path: Path, error: Exception) -> None:
    @tool
    def fail() -> str:
        """Fails."""
        raise error

    with pytest.raises((type(error), RuntimeError)):
        run(fail, tmp_path, {})


def test_functions_that_cannot_be_tools_are_refused_with_the_reason() -> None:
    async def many(*paths: str) -> None:
        """Takes many."""

    async def named(**options: str) -> None:
        """Takes named."""

    async def undocumented(path: str) -> None:
        pass

    async def typed(path: threading.Event) -> None:
        """Takes what JSON has not."""

    async def yields(path: str):
        """Yields."""
        yield path

    reasons = {
        many: "'paths' must be a plain, named one",
        named: "'options' must be a plain, named one",
        undocumented: "needs a docstring",
        typed: "JSON cannot fill",
        yields: "does not yield",
        lambda: 0: "cannot be the name of a tool",
    }
    for function, reason in reasons.items():
        with pytest.raises(UsageError, match=reason):
            tool(function)


def test_name_description_and_limits_may_be_given() -> None:
    @tool(name="find-it", description="Finds.", replayable=True, timeout_s=3)
    def find(path: str) -> str:
        return path

    assert (find.spec.name, find.spec.description) == ("find-it", "Finds.")
    assert (find.replayable, find.timeout_s) == (True, 3)
