"""The file tools, through the Tool contract, on a real directory."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from tools.workspaces_for_tools import Setup, make_setup
from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.tools import Tool
from xclaw.tools.files import list_dir, view_file, write_file


def run(tool: Tool, setup: Setup, arguments: Mapping[str, object]) -> str:
    output = asyncio.run(tool.run(arguments, setup.context))
    assert output.ok
    return output.content


def test_a_written_file_is_viewed_as_it_is(tmp_path: Path) -> None:
    setup = make_setup(tmp_path)
    assert str(setup.private / "a.txt") in run(write_file, setup, {"path": "a.txt", "content": "hi\n你好\n"})
    assert run(view_file, setup, {"path": "a.txt"}) == "hi\n你好\n"


def test_an_object_as_content_is_written_as_json(tmp_path: Path) -> None:
    setup = make_setup(tmp_path)
    run(write_file, setup, {"path": "a.json", "content": {"k": ["ü", 1, None]}})
    assert (setup.private / "a.json").read_text("utf-8") == '{"k":["ü",1,null]}'


@pytest.mark.parametrize("limit", [10, 100, 200_000])
def test_slices_of_a_file_join_to_the_whole(tmp_path: Path, limit: int) -> None:
    """Whatever the limit, no character is lost, doubled or cut in two."""
    setup = make_setup(tmp_path)
    whole = "a你é🙂" * 50
    (setup.private / "a.txt").write_text(whole, "utf-8")
    shown = ""
    offset: int | None = 0
    while offset is not None:
        part = run(view_file, setup, {"path": "a.txt", "offset": offset, "limit": limit})
        text, _, notice = part.partition("\n[bytes ")
        shown += text
        offset = int(notice.rpartition(" ")[2].rstrip("]")) if "go on with" in notice else None
    assert shown == whole


def test_a_long_file_says_where_to_go_on(tmp_path: Path) -> None:
    setup = make_setup(tmp_path)
    (setup.private / "big.txt").write_text("x" * 100_000)
    text = run(view_file, setup, {"path": "big.txt"})
    assert text.endswith("\n[bytes 0 to 16000 of 100000; go on with offset 16000]")


@pytest.mark.parametrize(
    ("content", "offset", "shown"),
    [
        (b"", 0, "[empty file]"),
        (b"abc", 3, "[the file has 3 bytes: nothing at offset 3]"),
        (b"abc", 1, "bc\n[bytes 1 to 3, the end]"),
        (b"\x89PNG\0\0", 0, "[binary file, 6 bytes: a]"),
        (b"\xff\xfe ok", 0, "�� ok"),
    ],
)
def test_odd_files_are_named_for_what_they_are(
    tmp_path: Path, content: bytes, offset: int, shown: str
) -> None:
    setup = make_setup(tmp_path)
    (setup.private / "a").write_bytes(content)
    assert run(view_file, setup, {"path": "a", "offset": offset}) == shown


@pytest.mark.parametrize("arguments", [{"offset": -1}, {"limit": 0}, {"limit": -5}, {"offset": "x"}])
def test_a_range_that_is_none_is_refused(tmp_path: Path, arguments: dict[str, object]) -> None:
    setup = make_setup(tmp_path)
    (setup.private / "a").write_bytes(b"abc")
    with pytest.raises(ToolFailed):
        run(view_file, setup, {"path": "a", **arguments})


def test_a_listing_shows_types_and_sizes(tmp_path: Path) -> None:
    """F10: a pipe is shown as one."""
    setup = make_setup(tmp_path)
    (setup.private / "sub").mkdir()
    (setup.private / "a.txt").write_bytes(b"12345")
    os.mkfifo(setup.private / "pipe")
    (setup.private / "link").symlink_to("/etc/passwd")
    assert run(list_dir, setup, {}).splitlines() == ["a.txt (5 bytes)", "link (link)", "pipe (fifo)", "sub/"]


def test_a_name_cannot_forge_a_line_of_a_listing(tmp_path: Path) -> None:
    setup = make_setup(tmp_path)
    (setup.private / "a\nb.txt (9 bytes)").write_bytes(b"1")
    assert run(list_dir, setup, {}) == "'a\\nb.txt (9 bytes)' (1 bytes)"


def test_a_long_listing_is_bounded(tmp_path: Path) -> None:
    setup = make_setup(tmp_path)
    for number in range(510):
        (setup.private / f"{number:04}").touch()
    lines = run(list_dir, setup, {}).splitlines()
    assert len(lines) == 501
    assert lines[-1] == "[10 more]"


def test_an_empty_directory_says_so(tmp_path: Path) -> None:
    assert run(list_dir, make_setup(tmp_path), {}) == "[empty directory]"


def test_a_refusal_says_what_is_allowed_and_nothing_of_the_contents(tmp_path: Path) -> None:
    """F01."""
    setup = make_setup(tmp_path)
    (tmp_path / "secret.txt").write_text("s3cret")
    with pytest.raises(ToolFailed) as refused:
        run(view_file, setup, {"path": str(tmp_path / "secret.txt")})
    assert str(setup.private) in str(refused.value)
    assert "s3cret" not in str(refused.value)


def test_the_path_alone_is_required() -> None:
    assert view_file.spec.parameters["required"] == ["path"]
    assert list_dir.spec.parameters["required"] == []
    assert write_file.spec.parameters["required"] == ["path", "content"]
