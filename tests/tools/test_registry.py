"""Names to tools, whatever a model wrote around them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xclaw.contracts.errors import UsageError
from xclaw.contracts.tools import Tool
from xclaw.tools.functions import tool
from xclaw.tools.registry import ToolRegistry


def named(name: str) -> Tool:
    @tool(name=name, description="Does something.")
    async def function() -> str:
        return name

    return function


def registry() -> ToolRegistry:
    return ToolRegistry([named("list_dir"), named("view_file"), named("deliver")])


@pytest.mark.parametrize(
    "written",
    [
        "list_dir",
        'list_dir" />',
        "list_dir()",
        " functions.list_dir",
        "list_dir\n",
        "`list_dir`",
        "'list_dir'",
        "[list_dir]",
        "tools.list_dir",
        "default_api:list_dir",
        "functions.functions.list_dir",
        "List_Dir",
        "list-dir",
        "ｌｉｓｔ_ｄｉｒ",
        "<list_dir>",
        "list_dir:",
    ],
)
def test_a_name_with_debris_finds_its_tool(written: str) -> None:
    """N05."""
    found = registry().resolve(written)
    assert found is not None
    assert found.spec.name == "list_dir"


@pytest.mark.parametrize(
    "written", ["", " ", '" />', "()", "functions.", "list_dirs", "list", "list_dir view_file", "x" * 100_000]
)
def test_a_name_that_is_not_certain_finds_nothing(written: str) -> None:
    """N05: an empty name, debris alone, or another name is never guessed at."""
    assert registry().resolve(written) is None


@given(st.text())
def test_any_text_is_answered_without_an_exception(written: str) -> None:
    """N05."""
    found = registry().resolve(written)
    assert found is None or found.spec.name in registry().names()


@pytest.mark.parametrize("name", ["deliver", "Deliver", "list-dir", "LIST_DIR"])
def test_a_built_in_tool_cannot_be_shadowed(name: str) -> None:
    """K04: also not by a name that a model could not tell from it."""
    tools = registry()
    builtin = tools.resolve("deliver")
    with pytest.raises(UsageError, match="is taken by"):
        tools.add(named(name))
    assert tools.resolve("deliver") is builtin


@pytest.mark.parametrize("name", ["", "a.b", "规划", "a b", "x" * 65, "a\n"])
def test_a_name_that_providers_refuse_is_refused(name: str) -> None:
    """N04."""
    with pytest.raises(UsageError):
        named(name or "\0")


def test_select_gives_what_exists_in_the_order_asked() -> None:
    tools = registry().select(["deliver", "gone", "list_dir"])
    assert list(tools) == ["deliver", "list_dir"]


def test_missing_names_come_with_what_may_have_been_meant() -> None:
    assert registry().missing(["deliver", "list_dirs", "zzz"]) == {"list_dirs": ("list_dir",), "zzz": ()}
