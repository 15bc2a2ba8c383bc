"""Files appear whole or not at all (D06)."""

import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from workspaces.places import workspace

TESTS = str(Path(__file__).parents[1])
SIZE = 3_000_000


def start(root: Path, body: str) -> "subprocess.Popen[bytes]":
    code = f"""
import itertools, resource
from pathlib import Path
from workspaces.places import workspace
from xclaw.contracts.errors import ToolFailed
run = workspace(Path({str(root)!r}))
{body}
"""
    return subprocess.Popen([sys.executable, "-c", code], env={"PYTHONPATH": TESTS}, stdout=subprocess.PIPE)


def kill_after_lines(process: "subprocess.Popen[bytes]", count: int) -> None:
    """Let it get through `count` rounds, then kill it wherever it is."""
    with process:
        assert process.stdout is not None
        try:
            for line in itertools.islice(process.stdout, count):
                assert line == b"round\n"
        finally:
            process.send_signal(signal.SIGKILL)


@pytest.mark.parametrize("rounds", range(1, 7))
def test_a_kill_in_mid_write_leaves_the_old_content_or_the_new(tmp_path: Path, rounds: int) -> None:
    body = f"""
for letter in itertools.cycle(b"ab"):
    run.write("a.txt", bytes([letter]) * {SIZE})
    print("round", flush=True)
"""
    kill_after_lines(start(tmp_path, body), rounds)
    run = workspace(tmp_path)
    content = (Path(run.private_dir) / "a.txt").read_bytes()
    assert content in (b"a" * SIZE, b"b" * SIZE)
    assert [item.name for item in run.list_directory(".")] == ["a.txt"]


@pytest.mark.parametrize("rounds", range(1, 7))
def test_a_kill_in_mid_delivery_leaves_whole_artifacts_only(tmp_path: Path, rounds: int) -> None:
    body = f"""
for number in itertools.count(65):
    run.deliver("a.txt", bytes([number]) * {SIZE})
    print("round", flush=True)
"""
    kill_after_lines(start(tmp_path, body), rounds)
    run = workspace(tmp_path)
    pointers = run.delivered()
    assert len(pointers) >= rounds
    assert [run.verify(pointer.path) for pointer in pointers] == pointers
    assert {item.size for item in run.list_directory(run.delivery_dir)} == {SIZE}
    following = run.deliver("a.txt", b"after the crash")
    assert run.delivered() == [*pointers, following]


def test_a_disk_that_takes_no_more_leaves_the_old_content(tmp_path: Path) -> None:
    """The limit on file size stands for a full disk: the write fails in the middle."""
    run = workspace(tmp_path)
    run.write("a.txt", b"old")
    body = """
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
for change in (run.write, run.deliver):
    try:
        change("a.txt", b"x" * 2_000_000)
    except ToolFailed as refused:
        print(refused)
"""
    with start(tmp_path, body) as process:
        told, _ = process.communicate(timeout=30)
    assert told.decode().splitlines() == [
        "could not write 'a.txt': File too large",
        "could not deliver 'a.txt': File too large",
    ]
    assert run.read("a.txt").text == "old"
    assert [path.name for path in Path(run.private_dir).iterdir()] == ["a.txt"]
    assert list(Path(run.delivery_dir).iterdir()) == []
    assert run.delivered() == []


def test_a_written_file_keeps_its_mode(tmp_path: Path) -> None:
    run = workspace(tmp_path)
    script = Path(run.write("run.sh", b"old"))
    script.chmod(0o755)
    run.write("run.sh", b"new")
    assert script.stat().st_mode & 0o777 == 0o755


def test_a_hard_link_is_cut_by_a_write(tmp_path: Path) -> None:
    """The other name keeps what it had."""
    run = workspace(tmp_path / "ws")
    other = tmp_path / "other"
    other.write_bytes(b"other")
    os.link(other, Path(run.private_dir) / "a.txt")
    run.write("a.txt", b"mine")
    assert other.read_bytes() == b"other"
