"""The file tools, through the Tool contract, on a real directory."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from tools.workspaces_for_tools import Setup, make_setup
from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.tokens import share_inline
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
    text = run(view_file, setup, {"path": "big.txt", "limit": 5_000})
    assert text.endswith("\n[bytes 0 to 5000 of 100000; go on with offset 5000]")


@pytest.mark.parametrize("character", ["x", "字", "é", "🌍"])
def test_what_is_shown_at_once_is_never_more_than_an_answer_may_hold(tmp_path: Path, character: str) -> None:
    """E2, H10: so nothing of it is spilled, and the pages join to the whole."""
    setup = make_setup(tmp_path)
    whole = character * 10_000
    (setup.private / "big.txt").write_text(whole)
    shown = ""
    offset: int | None = 0
    while offset is not None:
        page = run(view_file, setup, {"path": "big.txt", "offset": offset})
        assert share_inline(page, setup.context.inline_chars) == 1.0
        text, _, notice = page.partition("\n[bytes ")
        assert len(text) > 1_400 or "the end" in notice
        shown += text
        offset = int(notice.rpartition(" ")[2].rstrip("]")) if "go on with" in notice else None
    assert shown == whole


def test_lines_are_shown_with_their_numbers_when_asked(tmp_path: Path) -> None:
    setup = make_setup(tmp_path)
    (setup.private / "a.txt").write_bytes(b"one\r\ntwo\n\nfour")
    assert run(view_file, setup, {"path": "a.txt", "from_line": 2, "lines": 2}) == (
        "2\ttwo\n3\t\n[lines 2 to 3; go on with from_line 4]"
    )
    assert run(view_file, setup, {"path": "a.txt", "from_line": 4}) == "4\tfour\n[lines 4 to 4, the end]"
    assert (
        run(view_file, setup, {"path": "a.txt", "lines": 1})
        == "1\tone\n[lines 1 to 1; go on with from_line 2]"
    )
    assert (
        run(view_file, setup, {"path": "a.txt", "from_line": 5})
        == "[the file has 4 lines: nothing at line 5]"
    )


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (b"", "[empty file]"),
        (b"a\0b", "[binary file, 3 bytes: a]"),
        (b"a\n", "1\ta\n[lines 1 to 1, the end]"),
    ],
)
def test_odd_files_are_named_by_lines_too(tmp_path: Path, content: bytes, shown: str) -> None:
    setup = make_setup(tmp_path)
    (setup.private / "a").write_bytes(content)
    assert run(view_file, setup, {"path": "a", "from_line": 1}) == shown


def test_pages_of_lines_join_to_the_whole(tmp_path: Path) -> None:
    setup = make_setup(tmp_path)
    whole = [f"line {number} " + "x字" * (number % 90) for number in range(2_000)]
    (setup.private / "a").write_text("\n".join(whole))
    seen: list[str] = []
    while len(seen) < len(whole):
        page = run(view_file, setup, {"path": "a", "from_line": len(seen) + 1})
        assert share_inline(page, setup.context.inline_chars) == 1.0
        *numbered, notice = page.splitlines()
        assert [int(line.split("\t")[0]) for line in numbered] == list(
            range(len(seen) + 1, len(seen) + 1 + len(numbered))
        )
        seen += [line.split("\t", 1)[1] for line in numbered]
        assert ("the end" in notice) == (len(seen) == len(whole))
    assert seen == whole


def test_a_huge_line_is_shown_in_part_and_can_be_read_on(tmp_path: Path) -> None:
    setup = make_setup(tmp_path)
    (setup.private / "a").write_bytes(b"first\n" + "é".encode() * 2_000_000 + b"\nlast\n")
    shown = run(view_file, setup, {"path": "a", "from_line": 1}).splitlines()
    assert len(shown) == 4
    assert shown[1].endswith("é… [3998000 more bytes of this line, from offset 2006]")
    assert shown[2:] == ["3\tlast", "[lines 1 to 3, the end]"]
    assert run(view_file, setup, {"path": "a", "offset": 2006, "limit": 4}).startswith("éé\n[bytes")


@pytest.mark.parametrize(
    "arguments",
    [{"from_line": -1}, {"lines": -1}, {"from_line": 1, "offset": 5}, {"path": ".", "from_line": 1}],
)
def test_lines_that_are_none_are_refused(tmp_path: Path, arguments: dict[str, object]) -> None:
    setup = make_setup(tmp_path)
    (setup.private / "a").write_bytes(b"abc")
    with pytest.raises(ToolFailed):
        run(view_file, setup, {"path": "a", **arguments})


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
