"""The tool that changes a part of a file, through the Tool contract, on a real directory."""

import asyncio
import os
import threading
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tools.workspaces_for_tools import Setup, make_setup
from xclaw.contracts.errors import ToolFailed
from xclaw.tools.edit import MAX_EDIT_BYTES, edit_file
from xclaw.workspaces.local import LocalWorkspaces
from xclaw.workspaces.settings import WorkspaceSettings


def edit(setup: Setup, old: str, new: str, *, path: str = "a.txt", everywhere: bool = False) -> str:
    arguments = {"path": path, "old": old, "new": new, **({"all": True} if everywhere else {})}
    output = asyncio.run(edit_file.run(arguments, setup.context))
    assert output.ok
    return output.content


def refusal(setup: Setup, old: str, new: str, *, path: str = "a.txt") -> str:
    with pytest.raises(ToolFailed) as refused:
        edit(setup, old, new, path=path)
    return str(refused.value)


def with_file(root: Path, content: bytes) -> tuple[Setup, Path]:
    setup = make_setup(root)
    path = setup.private / "a.txt"
    path.write_bytes(content)
    return setup, path


def test_the_text_is_replaced_and_the_change_is_shown_with_line_numbers(tmp_path: Path) -> None:
    setup, path = with_file(tmp_path, b"one\ntwo\nthree\nfour\nfive\n")
    shown = edit(setup, "three", "3\n3b")
    assert path.read_bytes() == b"one\ntwo\n3\n3b\nfour\nfive\n"
    assert shown.splitlines() == [
        "edited a.txt",
        "1\t  one",
        "2\t  two",
        "3\t- three",
        "3\t+ 3",
        "4\t+ 3b",
        "5\t  four",
        "6\t  five",
    ]


def test_a_deleted_line_is_shown_as_nothing_but_that(tmp_path: Path) -> None:
    setup, path = with_file(tmp_path, b"one\ntwo\nthree\n")
    assert edit(setup, "two\n", "").splitlines()[1:] == ["1\t  one", "2\t- two", "2\t  three"]
    assert path.read_bytes() == b"one\nthree\n"


def test_every_occurrence_is_replaced_when_asked(tmp_path: Path) -> None:
    setup, path = with_file(tmp_path, b"x = 1\n" * 5)
    shown = edit(setup, "x = 1\n", "x = 2\ny = 2\n", everywhere=True)
    assert path.read_bytes() == b"x = 2\ny = 2\n" * 5
    assert shown.startswith("edited a.txt in 5 places\n")
    assert shown.endswith("[2 more places]")
    assert "3\t+ x = 2\n4\t+ y = 2" in shown


@pytest.mark.parametrize(
    ("content", "old", "new", "result"),
    [
        (b"a\r\nb\r\nc\r\n", "a\nb", "x\ny", b"x\r\ny\r\nc\r\n"),
        (b"a\r\nb\r\n", "b", "b\nc", b"a\r\nb\r\nc\r\n"),
        (b"a\r\nb\r\n", "a\r\nb", "x\r\ny", b"x\r\ny\r\n"),
        (b"a\nb\n", "a\r\nb", "x\r\ny", b"x\ny\n"),
        (b"a\nb", "b", "c", b"a\nc"),
        (b"\xef\xbb\xbfa\n", "a", "b", b"\xef\xbb\xbfb\n"),
        ("größe = 1\n".encode(), "größe", "höhe", "höhe = 1\n".encode()),
        (b"caf\xe9 = 1\n", "= 1", "= 2", b"caf\xe9 = 2\n"),
    ],
)
def test_line_ends_bom_encoding_and_final_line_stay(
    tmp_path: Path, content: bytes, old: str, new: str, result: bytes
) -> None:
    setup, path = with_file(tmp_path, content)
    edit(setup, old, new)
    assert path.read_bytes() == result


def test_the_mode_of_the_file_stays(tmp_path: Path) -> None:
    setup, path = with_file(tmp_path, b"echo a\n")
    path.chmod(0o755)
    edit(setup, "a", "b")
    assert path.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(
    ("content", "old", "new", "told"),
    [
        (b"a\n", "", "x", "old is empty"),
        (b"a\n", "a", "a", "the same"),
        (b"x = 1\ny\nx = 1\n", "x = 1", "x = 2", "occurs 2 times, in lines 1, 3"),
        (b"def f():\n    return 1\n", "def f():\n\treturn 1", "x", "only in blanks, tabs or line ends"),
        (b"def f():\n    return 1\n", "return  1", "x", "line 2 and"),
        (b"total = count + 1\nother\n", "total = count + 2", "x", "1\ttotal = count + 1"),
        (b"now\nnew text\n", "old text!", "new text", "new is there already, in line 2"),
        (b"aaa\n", "zzzz", "x", "nor anything like it"),
        (b"a\0b", "a", "x", "binary"),
        (b"", "a", "x", "not found"),
    ],
)
def test_an_edit_that_cannot_be_made_says_why_and_changes_nothing(
    tmp_path: Path, content: bytes, old: str, new: str, told: str
) -> None:
    setup, path = with_file(tmp_path, content)
    assert told in refusal(setup, old, new)
    assert path.read_bytes() == content


def test_a_file_that_is_too_large_is_not_edited(tmp_path: Path) -> None:
    setup, path = with_file(tmp_path, b"")
    os.truncate(path, MAX_EDIT_BYTES + 1)
    assert f"files of up to {MAX_EDIT_BYTES}" in refusal(setup, "a", "b")


def test_a_file_that_is_not_there_may_be_written_instead(tmp_path: Path) -> None:
    setup, _ = with_file(tmp_path, b"a")
    told = refusal(setup, "a", "b", path="b.txt")
    assert "does not exist" in told
    assert "write_file" in told


def test_what_was_handed_on_or_delivered_is_not_edited(tmp_path: Path) -> None:
    """E3: a copy can be made."""
    setup = make_setup(tmp_path)
    pointer = setup.context.workspace.deliver("r.md", b"result")
    other = LocalWorkspaces(WorkspaceSettings(str(tmp_path), durable=False)).open("writer", "def456", "run-2")
    given_away = other.deliver("given.md", b"given")
    setup.context.workspace.grant((given_away,))
    for path in ("r.md", pointer.path, "given.md", given_away.path):
        refusal(setup, "e", "x", path=path)
    assert "write_file makes a copy" in refusal(setup, "e", "x", path="given.md")
    assert Path(pointer.path).read_bytes() == b"result"
    assert Path(given_away.path).read_bytes() == b"given"


def test_edits_of_one_file_at_once_are_all_made(tmp_path: Path) -> None:
    """None of fifty edits that begin at the same moment is lost."""
    count = 50
    setup, path = with_file(tmp_path, b"".join(b"<%d>\n" % n for n in range(count)))

    async def main() -> None:
        async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
            for n in range(count):
                arguments = {"path": "a.txt", "old": f"<{n}>", "new": f"done {n}"}
                tasks.create_task(edit_file.run(arguments, setup.context))

    asyncio.run(main())
    assert path.read_text().splitlines() == [f"done {n}" for n in range(count)]


def test_what_somebody_else_writes_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    setup, path = with_file(tmp_path, b"a")

    def change(content: bytes) -> bytes:
        path.write_bytes(b"theirs")
        return content + b"b"

    with pytest.raises(ToolFailed, match="at the same moment"):
        setup.context.workspace.edit("a.txt", change, 100)
    assert path.read_bytes() == b"theirs"


def test_a_reader_sees_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    setup, path = with_file(tmp_path, b"a" * 200_000)
    seen: set[bytes] = set()
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            seen.add(path.read_bytes())

    reader = threading.Thread(target=read)
    reader.start()
    for old, new in (("a", "b"), ("b", "a")) * 5:
        edit(setup, old * 200_000, new * 200_000)
    stop.set()
    reader.join(5)
    assert seen <= {b"a" * 200_000, b"b" * 200_000}


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.text(alphabet="ab \té\n\r", max_size=40),
    st.text("ab \n\r", min_size=1, max_size=4),
    st.text("abé\n", max_size=4),
)
def test_an_edit_replaces_one_place_or_says_why_not(tmp_path: Path, whole: str, old: str, new: str) -> None:
    """Whatever the texts: nothing but the place changes, or nothing at all."""
    setup, path = with_file(tmp_path, whole.encode())
    try:
        edit(setup, old, new)
    except ToolFailed:
        assert path.read_bytes() == whole.encode()
    else:
        after = path.read_bytes().decode()
        flat = whole.replace("\r\n", "\n"), old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
        assert after.replace("\r\n", "\n") == flat[0].replace(flat[1], flat[2], 1) or after == whole.replace(
            old, new, 1
        )


@pytest.mark.parametrize(
    ("content", "old", "new", "then"),
    [
        (b"a\r\nb\r\nx\r\nc\nd\n", "c\nd", "C\nD", b"a\r\nb\r\nx\r\nC\nD\n"),
        (b"a\nb\nc\r\nd\r\n", "c\nd", "C\nD", b"a\nb\nC\r\nD\r\n"),
        (b"a\nb\nc\r\nd\r\n", "a\r\nb", "A\r\nB", b"A\nB\nc\r\nd\r\n"),
        (b"a\nb\nc\r\n", "b", "b\n2", b"a\nb\n2\nc\r\n"),
    ],
)
def test_in_a_file_with_both_line_ends_the_place_says_which(
    tmp_path: Path, content: bytes, old: str, new: str, then: bytes
) -> None:
    setup, path = with_file(tmp_path, content)
    edit(setup, old, new)
    assert path.read_bytes() == then


def test_replacing_everywhere_does_not_make_a_file_of_any_size(tmp_path: Path) -> None:
    setup, path = with_file(tmp_path, b"a" * 1_000_000)
    with pytest.raises(
        ToolFailed, match=r"nothing was changed: with 1000000 replacements .* 100000000 bytes"
    ):
        edit(setup, "a", "b" * 100, everywhere=True)
    assert path.read_bytes() == b"a" * 1_000_000


def test_looking_for_something_alike_takes_bounded_time(tmp_path: Path) -> None:
    """Lines that are all somewhat alike: comparing each of them with care takes a long time."""
    setup, _ = with_file(tmp_path, f"{'ab' * 75}\n".encode() * 5_000)
    started = time.process_time()
    assert "The nearest lines are these" in refusal(setup, f"{'ba' * 75}Q", "q")
    assert time.process_time() - started < 5
