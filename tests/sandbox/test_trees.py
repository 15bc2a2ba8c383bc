"""Trees that strangers have filled are measured, handed over and removed, however they are made."""

import os
from pathlib import Path

import pytest

from xclaw.sandbox.linux.trees import (
    ENTRY_BYTES,
    Unmeasurable,
    allocated_bytes,
    empty,
    entries,
    give,
    open_directory,
)

is_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


def deep(place: Path, depth: int) -> None:
    """Directories in directories, deeper than any path is long."""
    within = open_directory(str(place))
    for _ in range(depth):
        os.mkdir("d", dir_fd=within)
        inner = os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=within)
        os.close(within)
        within = inner
    os.close(within)


def test_what_has_no_content_still_counts(tmp_path: Path) -> None:
    """SPEC F3."""
    for number in range(10):
        (tmp_path / str(number)).touch()
    (tmp_path / "link").symlink_to("/nowhere")
    assert allocated_bytes(open_directory(str(tmp_path))) == 11 * ENTRY_BYTES


def test_a_file_with_two_names_counts_once(tmp_path: Path) -> None:
    """SPEC F3."""
    (tmp_path / "a").write_bytes(os.urandom(1_000_000))
    one = allocated_bytes(open_directory(str(tmp_path)))
    os.link(tmp_path / "a", tmp_path / "b")
    assert allocated_bytes(open_directory(str(tmp_path))) == one


def test_links_are_never_followed(tmp_path: Path) -> None:
    """SPEC F3, J1: neither to measure nor to give away nor to remove."""
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    inside.mkdir()
    (outside / "kept").write_bytes(bytes(100_000))
    (inside / "link").symlink_to(outside)
    root = open_directory(str(inside))
    assert allocated_bytes(root) == ENTRY_BYTES
    empty(root)
    assert list(inside.iterdir()) == []
    assert (outside / "kept").exists()
    with pytest.raises(OSError):
        open_directory(str(Path("/proc/self/cwd")))


def test_no_depth_is_too_deep(tmp_path: Path) -> None:
    """SPEC F3: with one descriptor open at a time."""
    deep(tmp_path, 1_500)
    root = open_directory(str(tmp_path))
    before = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 0
    assert sum(1 for _ in entries(root)) == 1_500
    empty(root)
    assert list(tmp_path.iterdir()) == []
    if before:
        assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_directory_that_is_moved_meanwhile_is_noticed(tmp_path: Path) -> None:
    """SPEC F3: or the way up would lead out of the tree."""
    (tmp_path / "tree" / "a" / "b").mkdir(parents=True)
    walking = entries(open_directory(str(tmp_path / "tree")))
    assert [next(walking)[1], next(walking)[1]] == ["a", "b"]
    (tmp_path / "tree" / "a" / "b").rename(tmp_path / "b")
    (tmp_path / "tree" / "a").rename(tmp_path / "a")
    with pytest.raises(Unmeasurable):
        list(walking)


def test_closed_directories_are_opened_by_their_owner(tmp_path: Path) -> None:
    """SPEC F3."""
    (tmp_path / "closed" / "in").mkdir(parents=True)
    (tmp_path / "closed" / "in" / "file").write_text("x")
    (tmp_path / "closed" / "in").chmod(0)
    (tmp_path / "closed").chmod(0)
    root = open_directory(str(tmp_path))
    assert {name for _, name, _ in entries(root)} == {"closed", "in", "file"}
    empty(root)
    assert list(tmp_path.iterdir()) == []


@is_root
def test_what_is_given_is_everything_but_what_may_be_somebodys(tmp_path: Path) -> None:
    """SPEC F3, J1: a hard link that was made as root could be to anything."""
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    inside.mkdir()
    (inside / "dir").mkdir()
    outside.write_text("root's")
    (inside / "dir" / "file").write_text("")
    os.link(outside, inside / "dir" / "linked")
    (inside / "link").symlink_to(outside)
    for name in ("one", "two"):
        (inside / name).write_text("")
        os.chown(inside / name, 70_001, 70_001)
        os.link(inside / name, inside / f"{name}-again")
    give(open_directory(str(inside)), 70_002, range(70_000, 71_000))
    assert outside.stat().st_uid == 0
    for name in ("dir", "dir/file", "link", "one", "one-again", "two"):
        assert (inside / name).lstat().st_uid == 70_002, name
