"""Long outputs: both ends in the conversation, the whole in a file, nothing lost (SPEC E2)."""

import asyncio
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tools.workspaces_for_tools import Setup, make_setup
from xclaw.contracts.tokens import share_inline
from xclaw.loop.bounding import NOTICE_CHARS, both_ends, joined
from xclaw.tools.files import view_file

LIMIT = 1_000


def shown(setup: Setup, content: str) -> str:
    ends = both_ends(content, LIMIT - NOTICE_CHARS)
    assert ends is not None
    return joined(ends, content, setup.context.workspace.spill("out.txt", content), can_view=True)


def read_on(setup: Setup, path: str, offset: int) -> str:
    """Everything from `offset`, as a model reads it."""
    text, at = "", offset
    while True:
        page = asyncio.run(view_file.run({"path": path, "offset": at}, setup.context)).content
        part, _, notice = page.rpartition("\n[bytes ")
        text += part
        if "go on with" not in notice:
            return text
        at = int(notice.rpartition(" ")[2].rstrip("]"))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.text(alphabet="ab \n字é🌍", min_size=1, max_size=30), st.integers(1_100, 30_000), st.integers(0, 99)
)
def test_what_is_shown_and_what_is_read_on_from_there_are_the_whole(
    tmp_path: Path, unit: str, length: int, number: int
) -> None:
    setup = make_setup(tmp_path)
    content = f"{number}" + (unit * (length // len(unit) + 1))[:length]
    if share_inline(content, LIMIT - NOTICE_CHARS) == 1:
        return
    text = shown(setup, content)
    middle = re.search(
        r"\n?\[\.\.\. (\d+) characters in all; (\d+) are left out here; view_file with offset (\d+) reads on from here \.\.\.\]\n",
        text,
    )
    assert middle is not None
    end = re.search(r"\n\[the whole output \((\d+) characters\) is in ([^\n]*)\]\Z", text)
    assert end is not None
    head, tail = text[: middle.start()], text[middle.end() : end.start()]
    if content[len(head) : len(head) + 1] == "\n" and len(head.encode()) < int(middle[3]):
        head += "\n"
    assert content.startswith(head)
    assert content.endswith(tail)
    assert int(middle[1]) == int(end[1]) == len(content)
    assert int(middle[2]) == len(content) - len(head) - len(tail)
    assert head + read_on(setup, end[2], int(middle[3])) == content
    assert share_inline(head + tail, LIMIT) == 1


def test_the_ends_are_whole_lines_where_that_costs_little(tmp_path: Path) -> None:
    lines = [f"line {number} of the output" for number in range(500)]
    text = shown(make_setup(tmp_path), "\n".join(lines))
    told = text.splitlines()
    at = next(index for index, line in enumerate(told) if line.startswith("[... "))
    assert told[:at] == lines[:at]
    assert told[at + 1 : -1] == lines[-len(told[at + 1 : -1]) :]
    assert len(told[at + 1 : -1]) >= 5


@pytest.mark.parametrize("content", ["short", "x" * LIMIT])
def test_what_fits_is_not_cut(content: str) -> None:
    assert both_ends(content, LIMIT) is None


def test_who_cannot_view_files_is_not_told_to() -> None:
    ends = both_ends("x" * 5_000, LIMIT)
    assert ends is not None
    assert "view_file" not in joined(ends, "x" * 5_000, "/p", can_view=False)
