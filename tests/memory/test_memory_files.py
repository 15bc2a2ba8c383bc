"""Memory files on disk: crashes, full disks, and what is no file (D06)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from xclaw.contracts.errors import UsageError
from xclaw.memory.files import add_to_file, change_file, read_file

FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from xclaw.contracts.errors import UsageError
from xclaw.memory.files import add_to_file, change_file
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    if sys.argv[2] == "add":
        add_to_file(Path(sys.argv[1]), lambda content: b"x" * 200, durable=True)
    else:
        change_file(Path(sys.argv[1]), lambda content: b"x" * 200, durable=True)
except UsageError as error:
    print(error)
"""
KILLED = """
import os, signal, sys
from pathlib import Path
from xclaw.memory import files
def half(descriptor, content, size_before):
    os.write(descriptor, content[: len(content) // 2])
    os.kill(os.getpid(), signal.SIGKILL)
files._append = half
getattr(files, sys.argv[2])(Path(sys.argv[1]), lambda content: b"- new content of it\\n", durable=True)
"""


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True)


@pytest.mark.parametrize("how", ["add", "change"])
def test_a_full_disk_is_said_and_leaves_the_file_as_it_was(tmp_path: Path, how: str) -> None:
    path = tmp_path / "MEMORY.md"
    path.write_text("- old\n")
    done = run(FULL_DISK, str(path), how)
    assert "Check the file, its directory and the space left" in done.stdout, done.stderr
    assert path.read_text() == "- old\n"
    assert sorted(left.name for left in tmp_path.iterdir()) == [".lock", "MEMORY.md"]


def test_a_process_killed_while_it_replaces_a_file_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "MEMORY.md"
    path.write_text("- old\n")
    assert run(KILLED, str(path), "change_file").returncode == -9
    assert path.read_text() == "- old\n"
    change_file(path, lambda content: content + b"- more\n", durable=False)
    assert path.read_text() == "- old\n- more\n"
    assert sorted(left.name for left in tmp_path.iterdir()) == [".lock", "MEMORY.md"]


def test_an_append_that_was_cut_short_is_closed_and_costs_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "MEMORY.md"
    path.write_text("- old\n")
    assert run(KILLED, str(path), "add_to_file").returncode == -9
    add_to_file(path, lambda _: b"- after\n", durable=False)
    assert path.read_bytes() == b"- old\n- new cont\n- after\n"


def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    """F10."""
    os.mkfifo(tmp_path / "fifo.md")
    (tmp_path / "dir.md").mkdir()
    (tmp_path / "link.md").symlink_to("/etc/passwd")
    for name in ("fifo.md", "dir.md", "link.md"):
        with pytest.raises(UsageError, match=name):
            read_file(tmp_path / name)
    with pytest.raises(UsageError):
        add_to_file(tmp_path / "link.md", lambda _: b"x", durable=False)


def test_a_file_that_is_too_large_is_refused_and_one_that_is_missing_is_empty(tmp_path: Path) -> None:
    (tmp_path / "big.md").write_bytes(b"x" * 11)
    with pytest.raises(UsageError, match="has 11 bytes, at most 10"):
        read_file(tmp_path / "big.md", 10)
    assert read_file(tmp_path / "none.md") == b""
