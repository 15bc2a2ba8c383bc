"""`xclaw memory`, `xclaw scratchpad`, `xclaw kb` (SPEC H4, I2, I4)."""

import asyncio
from pathlib import Path
from typing import cast

import pytest
from xclaw_command import Json, Xclaw

from xclaw.contracts.memory import Whose
from xclaw.memory.memory import FileMemory
from xclaw.memory.scratchpad import FileScratchpad
from xclaw.memory.settings import MemorySettings


@pytest.fixture
def xclaw(tmp_path: Path) -> Xclaw:
    return Xclaw(tmp_path)


def settings_of(xclaw: Xclaw) -> MemorySettings:
    return MemorySettings(str(xclaw.home / "memory"), str(xclaw.home / "workspace" / "scratchpads"))


def remember(xclaw: Xclaw, text: str, user: str = "owner") -> str:
    memory = FileMemory(settings_of(xclaw), None)
    return asyncio.run(memory.remember(text, agent="coder", user=user))


def write(xclaw: Xclaw, name: str, text: str, session: str = "cli") -> None:
    pad = FileScratchpad(settings_of(xclaw))
    asyncio.run(pad.write(Whose(conversation=session), name, text, author="coder"))


def test_memories_are_listed_shown_found_and_forgotten(xclaw: Xclaw) -> None:
    assert xclaw("memory").out.startswith("no memories yet. They are kept in ")
    note_id = remember(xclaw, "The user prefers tabs\x1b[31m")
    listed = xclaw("memory")
    assert note_id in listed.out
    assert "agent-coder/MEMORY.md" in listed.out
    assert "\x1b" not in listed.out
    assert "The user prefers tabs" in xclaw("memory", "show", note_id).out
    assert note_id in xclaw("memory", "search", "tabs", "or", "spaces").out
    assert str(xclaw.home / "memory") in xclaw("memory", "path").out
    assert xclaw("memory", "forget", note_id).out.startswith(f"forgot {note_id} of agent-coder/MEMORY.md")
    again = xclaw("memory", "forget", note_id)
    assert again.code == 2
    assert f"there is no memory '{note_id}'" in again.err


def test_memories_as_json_and_of_one_agent_or_user(xclaw: Xclaw) -> None:
    note_id = remember(xclaw, "tabs")
    remember(xclaw, "hers", user="alice")
    form = xclaw("memory", "--json").document
    (note,) = cast("list[Json]", form["memories"])
    assert (note["id"], note["text"], note["author"]) == (note_id, "tabs", "coder")
    assert xclaw("memory", "search", "tabs", "--agent", "writer", "--json").document == {"memories": []}
    assert "hers" in xclaw("memory", "--user", "alice").out
    assert cast("Json", xclaw("memory", "forget", note_id, "--json").document["forgotten"])["text"] == "tabs"
    assert "error" in xclaw("memory", "show", "none", "--json").document


def test_unfinished_lines_of_a_file_are_told(xclaw: Xclaw) -> None:
    """D06."""
    remember(xclaw, "tabs")
    path = xclaw.home / "memory" / "agent-coder" / "MEMORY.md"
    path.write_text(path.read_text("utf-8") + "- [m0123", "utf-8")
    assert "agent-coder/MEMORY.md: 1 unfinished line, left as they are" in xclaw("memory").err


def test_a_scratchpad_is_listed_read_and_searched_by_session(xclaw: Xclaw) -> None:
    """H4."""
    assert xclaw("scratchpad").out == "the scratchpad of session cli is empty\n"
    write(xclaw, "plan.md", "first")
    write(xclaw, "plan.md", "second\x1b]0;title\x07")
    write(xclaw, "other.md", "elsewhere", "web-1")
    assert "plan.md  version 2  coder  " in xclaw("scratchpad").out
    assert xclaw("scratchpad", "read", "plan.md").out == "second\n"
    assert xclaw("scratchpad", "read", "plan.md", "--entry-version", "1").out == "first\n"
    assert "    second" in xclaw("scratchpad", "search", "second").out
    assert "other.md" in xclaw("scratchpad", "--session", "web-1").out
    assert xclaw("scratchpad", "read", "plan.md", "--json").document["author"] == "coder"
    missing = xclaw("scratchpad", "read", "other.md")
    assert missing.code == 2
    assert "It has: plan.md." in missing.err
    assert xclaw("scratchpad", "read").code == 2


def test_documents_are_added_listed_searched_and_removed(xclaw: Xclaw) -> None:
    """I4."""
    folder = xclaw.directory / "docs"
    folder.mkdir()
    (folder / "guide.md").write_text("# Guide\n\n## Run\n\nThe port is 8080.\n")
    (folder / "binary.txt").write_bytes(b"\x00" * 10)
    added = xclaw("kb", "add", "docs")
    assert (added.code, added.out) == (0, "1 added, 1 left out\n")
    assert "left out: " in added.err
    assert "binary.txt: is binary" in added.err
    assert xclaw("kb", "add", "docs").out == "1 unchanged, 1 left out\n"
    assert "guide.md  markdown" in xclaw("kb").out
    found = xclaw("kb", "search", "which", "port").out
    assert f"[1] {folder}/guide.md, Guide › Run, lines 3–5" in found
    (passage,) = cast("list[Json]", xclaw("kb", "search", "port", "--json").document["passages"])
    assert passage["source"] == str(folder / "guide.md")
    assert xclaw("kb", "add", "docs/none.md").code == 1
    assert xclaw("kb", "remove", "docs").out == f"removed {folder}/guide.md\n"
    assert xclaw("kb", "remove", "docs").code == 2
    assert xclaw("kb", "search").code == 2
