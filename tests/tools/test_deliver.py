"""Delivering through the tool (SPEC D6)."""

import asyncio
import base64
from pathlib import Path
from typing import cast

import pytest

from tools.workspaces_for_tools import Setup, make_setup
from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.events import ArtifactDelivered
from xclaw.loop.action_texts import syntax_instructions
from xclaw.models.embedded.schema import action_schema
from xclaw.tools.deliver import deliver


def hand_in(setup: Setup, path: str, content: object, **more: object) -> Path:
    output = asyncio.run(deliver.run({"path": path, "content": content, **more}, setup.context))
    assert output.ok
    assert output.content.startswith("delivered: ")
    return Path(output.content.removeprefix("delivered: "))


def test_an_absolute_path_inside_the_delivery_directory_is_taken(tmp_path: Path) -> None:
    setup = make_setup(tmp_path)
    path = hand_in(setup, f"{setup.delivery}/report.md", "# Report\n")
    assert path == setup.delivery / "report.md"
    assert path.read_text() == "# Report\n"


@pytest.mark.parametrize("written", ["report.md", "./report.md", "sub/../report.md"])
def test_a_relative_name_is_taken_from_the_delivery_directory(tmp_path: Path, written: str) -> None:
    setup = make_setup(tmp_path)
    assert hand_in(setup, written, "x") == setup.delivery / "report.md"


def test_a_delivery_is_an_event_with_its_pointer(tmp_path: Path) -> None:
    setup = make_setup(tmp_path)
    path = hand_in(setup, "sub/data.csv", "a,b")
    [event] = setup.events
    assert isinstance(event, ArtifactDelivered)
    assert event.name == "data.csv"
    assert (event.pointer.path, event.pointer.agent, event.pointer.run_id) == (str(path), "coder", "run-1")
    assert setup.context.workspace.verify(str(path)) == event.pointer


def test_a_second_delivery_of_a_name_is_a_new_version(tmp_path: Path) -> None:
    setup = make_setup(tmp_path)
    first = hand_in(setup, "report.md", "one")
    second = hand_in(setup, "report.md", "two")
    assert second == setup.delivery / "report.v2.md"
    assert (first.read_text(), second.read_text()) == ("one", "two")


def test_bytes_come_as_base64(tmp_path: Path) -> None:
    setup = make_setup(tmp_path)
    raw = bytes(range(256))
    text = base64.encodebytes(raw).decode()
    assert hand_in(setup, "image.png", text, encoding="base64").read_bytes() == raw


@pytest.mark.parametrize("content", ["not base64!", "QUJ", "日本"])
def test_broken_base64_delivers_nothing(tmp_path: Path, content: str) -> None:
    setup = make_setup(tmp_path)
    with pytest.raises(ToolFailed, match="base64"):
        hand_in(setup, "image.png", content, encoding="base64")
    assert list(setup.delivery.iterdir()) == []
    assert setup.events == []


def test_a_json_value_is_delivered_as_its_text(tmp_path: Path) -> None:
    setup = make_setup(tmp_path)
    assert hand_in(setup, "data.json", {"a": [1, "é"]}).read_text("utf-8") == '{"a":[1,"é"]}'


def test_an_empty_delivery_is_refused(tmp_path: Path) -> None:
    """R02: a 0-byte file is no artifact."""
    setup = make_setup(tmp_path)
    with pytest.raises(ToolFailed, match="empty"):
        hand_in(setup, "report.md", "")
    assert setup.events == []


@pytest.mark.parametrize(
    "path", ["../../boot.sh", "/etc/cron.d/x", "..", "../abc1234/x", "a\0b", "", ".", "sub/", "~/x", "a\nb"]
)
def test_nothing_is_delivered_outside(tmp_path: Path, path: str) -> None:
    """D6, F04."""
    setup = make_setup(tmp_path / "root")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ToolFailed):
        hand_in(setup, path, "x")
    assert [path for path in sorted(tmp_path.rglob("*")) if path not in before] == []


@pytest.mark.parametrize("path", ["sub/report.md", "/report.md", "..", "../report.md"])
def test_full_mode_takes_a_bare_name_only(tmp_path: Path, path: str) -> None:
    """D6."""
    setup = make_setup(tmp_path, mode="full")
    assert hand_in(setup, "report.md", "x") == setup.delivery / "report.md"
    with pytest.raises(ToolFailed, match="bare file name"):
        hand_in(setup, path, "x")


def test_full_mode_refuses_an_absolute_path_too(tmp_path: Path) -> None:
    setup = make_setup(tmp_path, mode="full")
    with pytest.raises(ToolFailed, match="bare file name"):
        hand_in(setup, f"{setup.delivery}/report.md", "x")


def test_repeating_a_delivery_after_a_crash_changes_nothing(tmp_path: Path) -> None:
    """The tool says that it is replayable: the same content again is the same artifact."""
    assert deliver.replayable
    setup = make_setup(tmp_path)
    assert hand_in(setup, "report.md", "x") == hand_in(setup, "report.md", "x")
    assert len(list(setup.delivery.iterdir())) == 1


@pytest.mark.parametrize(
    ("name", "content", "note"),
    [
        ("a.py", 'def f():\n    """open\n    return 1\n', "line 2: unterminated triple-quoted string"),
        ("a.py", "x = '\x00'", "null bytes"),
        ("a.py", "(" * 5_000, "parse"),
        ("a.json", '{"a": 1,}', "double quotes"),
        ("a.json", "[" * 100_000, "recursion"),
    ],
)
def test_a_file_that_does_not_parse_is_kept_and_the_worker_is_told(
    tmp_path: Path, name: str, content: str, note: str
) -> None:
    setup = make_setup(tmp_path)
    output = asyncio.run(deliver.run({"path": name, "content": content}, setup.context))
    delivered, told = output.content.splitlines()
    assert Path(delivered.removeprefix("delivered: ")).read_text() == content
    assert told.startswith("note: it does not parse: ")
    assert note in told


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.py", "def f():\n    return '\\d'\n"), ("a.json", '{"a": 1}'), ("a.js", "{{{"), ("a.py.txt", "(((")],
)
def test_a_good_file_or_one_of_another_kind_is_just_delivered(
    tmp_path: Path, name: str, content: str
) -> None:
    assert hand_in(make_setup(tmp_path), name, content).name == name


@pytest.mark.parametrize("mode", ["host", "full"])
def test_a_file_of_the_workspace_is_delivered_as_it_is(tmp_path: Path, mode: str) -> None:
    """D6: what is no text, or too long to be written again."""
    setup = make_setup(tmp_path, mode=mode)
    raw = bytes(range(256)) * 10_000
    setup.context.workspace.write("out/image.png", raw)
    output = asyncio.run(deliver.run({"path": "image.png", "from_file": "out/image.png"}, setup.context))
    assert Path(output.content.removeprefix("delivered: ")).read_bytes() == raw


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ({"content": "x", "from_file": "a.txt"}, "give one of them"),
        ({}, "nothing to deliver.*or from_file for a file"),
        ({"from_file": "missing.txt"}, "does not exist"),
        ({"from_file": "/etc/passwd"}, "outside"),
        ({"from_file": "."}, "directory"),
    ],
)
def test_exactly_one_of_content_and_file_is_delivered(
    tmp_path: Path, arguments: dict[str, object], wanted: str
) -> None:
    """D6."""
    setup = make_setup(tmp_path)
    setup.context.workspace.write("a.txt", b"a")
    with pytest.raises(ToolFailed, match=wanted):
        asyncio.run(deliver.run({"path": "b.txt", **arguments}, setup.context))
    assert setup.events == []


def test_a_file_that_is_too_large_is_not_read_whole(tmp_path: Path) -> None:
    """D6: also one that only claims its size."""
    setup = make_setup(tmp_path)
    setup.context.workspace.prepare()
    with (setup.private / "big").open("wb") as file:
        file.truncate(10**12)
    with pytest.raises(ToolFailed, match="a file may have 64000000"):
        asyncio.run(deliver.run({"path": "big", "from_file": "big"}, setup.context))


def test_a_model_is_shown_that_a_file_has_content() -> None:
    """D6: an example without it would be followed; small models are asked for it."""
    assert '"content": "<content>"' in syntax_instructions([deliver.spec])
    (action,) = cast("list[dict[str, object]]", action_schema([deliver.spec], None, ends=False)["anyOf"])
    assert action["required"] == ["action", "path", "content"]
