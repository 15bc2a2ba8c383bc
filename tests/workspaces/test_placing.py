"""Artifacts laid out as files for programs: copies, under their names, read-only (SPEC H1)."""

import stat
from pathlib import Path

import pytest

from xclaw.contracts.errors import ToolFailed
from xclaw.workspaces.local import LocalWorkspaces
from xclaw.workspaces.settings import WorkspaceSettings


def workspaces(root: Path) -> LocalWorkspaces:
    return LocalWorkspaces(WorkspaceSettings(str(root), durable=False))


def test_artifacts_lie_under_the_names_they_were_delivered_by_and_the_last_of_a_name_counts(
    tmp_path: Path,
) -> None:
    places = workspaces(tmp_path)
    coder = places.open("coder", "aaaaaa", "r1")
    first = coder.deliver("pkg/a.py", b"x = 1\n")
    second = coder.deliver("pkg/a.py", b"x = 2\n")
    other = places.open("writer", "bbbbbb", "r2").deliver("README.md", b"# A\n")
    assert second.path.endswith("a.v2.py")
    verifier = places.open("verifier", "cccccc", "r3")
    assert verifier.place((first, other, second)) == ["pkg/a.py", "README.md"]
    placed = Path(verifier.private_dir, "pkg", "a.py")
    assert placed.read_text("utf-8") == "x = 2\n"
    assert stat.S_IMODE(placed.stat().st_mode) == 0o444
    assert placed.stat().st_ino != Path(second.path).stat().st_ino, "no link to the original"
    assert verifier.place((first, other, second)) == ["pkg/a.py", "README.md"], "again after a crash"


def test_an_artifact_that_is_not_as_it_was_delivered_is_refused(tmp_path: Path) -> None:
    places = workspaces(tmp_path)
    pointer = places.open("coder", "aaaaaa", "r1").deliver("a.py", b"x = 1\n")
    Path(pointer.path).chmod(0o600)
    Path(pointer.path).write_bytes(b"x = 9\n")
    with pytest.raises(ToolFailed, match="is not what was delivered"):
        places.open("verifier", "cccccc", "r3").place((pointer,))


def test_a_link_in_the_way_that_leads_out_is_not_followed(tmp_path: Path) -> None:
    places = workspaces(tmp_path / "root")
    pointer = places.open("coder", "aaaaaa", "r1").deliver("a.py", b"x = 1\n")
    verifier = places.open("verifier", "cccccc", "r3")
    verifier.prepare()
    outside = tmp_path / "outside"
    outside.mkdir()
    Path(verifier.private_dir, "pkg").symlink_to(outside)
    nested = places.open("coder", "dddddd", "r4").deliver("pkg/b.py", b"y = 1\n")
    with pytest.raises(ToolFailed):
        verifier.place((pointer, nested))
    assert list(outside.iterdir()) == []
