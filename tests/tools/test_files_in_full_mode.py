"""The file tools of a sandboxed run: paths are the sandbox's, and mean the same as in its commands (SPEC F3)."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from tools.pictures import png
from tools.workspaces_for_tools import Setup, make_setup
from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.tools import Tool
from xclaw.tools.edit import edit_file
from xclaw.tools.files import list_dir, view_file, write_file
from xclaw.tools.search import search_tool
from xclaw.workspaces.local import LocalWorkspaces
from xclaw.workspaces.settings import WorkspaceSettings

SEARCH = search_tool()


def run(tool: Tool, setup: Setup, arguments: Mapping[str, object]) -> str:
    return asyncio.run(tool.run(arguments, setup.context)).content


def with_input(root: Path) -> Setup:
    setup = make_setup(root, mode="full")
    other = LocalWorkspaces(WorkspaceSettings(str(root), mode="full", durable=False)).open(
        "writer", "d", "run-2"
    )
    setup.context.workspace.grant((other.deliver("data.csv", b"handed on\n"),))
    setup.context.workspace.prepare()
    return setup


def test_one_file_has_the_same_name_for_every_tool(tmp_path: Path) -> None:
    setup = with_input(tmp_path)
    assert run(write_file, setup, {"path": "/workspace/src/a.py", "content": "x = 1\n"}).endswith(
        ": /workspace/src/a.py"
    )
    assert "1\t+ x = 2" in run(edit_file, setup, {"path": "/workspace/src/a.py", "old": "1", "new": "2"})
    assert run(view_file, setup, {"path": "src/a.py", "from_line": 1}).startswith("1\tx = 2\n")
    assert run(list_dir, setup, {"path": "/workspace/src"}) == "a.py (6 bytes)"
    assert run(SEARCH, setup, {"pattern": "x =", "path": "/workspace"}) == "/workspace/src/a.py:1: x = 2"
    assert run(SEARCH, setup, {"pattern": "x ="}) == "src/a.py:1: x = 2"


def test_what_was_handed_on_is_read_and_searched_and_not_edited(tmp_path: Path) -> None:
    setup = with_input(tmp_path)
    assert run(view_file, setup, {"path": "/input/data.csv"}) == "handed on\n"
    assert run(SEARCH, setup, {"pattern": "handed", "path": "/input"}) == "/input/data.csv:1: handed on"
    assert (
        run(SEARCH, setup, {"pattern": "handed", "path": "/input/data.csv"}) == "/input/data.csv:1: handed on"
    )
    with pytest.raises(ToolFailed, match="read only"):
        run(edit_file, setup, {"path": "/input/data.csv", "old": "on", "new": "off"})


def test_a_picture_is_shown_from_where_a_command_would_put_it(tmp_path: Path) -> None:
    setup = with_input(tmp_path)
    (setup.private / "plot.png").write_bytes(png(300, 200))
    output = asyncio.run(view_file.run({"path": "/workspace/plot.png"}, setup.context))
    assert [image.path for image in output.images] == ["/workspace/plot.png"]


@pytest.mark.parametrize("path", ["/etc", "/workspace/../etc", "/", "/workspace/out", "/project"])
def test_other_places_are_told_of(tmp_path: Path, path: str) -> None:
    setup = with_input(tmp_path)
    (setup.private / "out").symlink_to("/etc")
    for tool, more in (
        (view_file, {}),
        (list_dir, {}),
        (SEARCH, {"pattern": "x"}),
        (edit_file, {"old": "a", "new": "b"}),
    ):
        with pytest.raises(ToolFailed) as refused:
            run(tool, setup, {"path": path, **more})
        assert str(tmp_path) not in str(refused.value)
