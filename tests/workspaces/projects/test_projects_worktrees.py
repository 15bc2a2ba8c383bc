"""Private trees, merges and what comes back to the user (SPEC F4)."""

import os
import subprocess
from pathlib import Path

import pytest
from project_play import NUMBERS, UserRepository, names, projects

from xclaw.contracts.errors import ToolFailed, UsageError
from xclaw.contracts.projects import Project
from xclaw.workspaces.projects.projects import LocalProjects
from xclaw.workspaces.projects.worktree import PrivateTree


class Play:
    """A project with two changes by hand, and trees of it."""

    def __init__(self, tmp_path: Path) -> None:
        self.tmp = tmp_path
        self.repository = UserRepository(tmp_path / "repo")
        self.repository.commit("one", {"a.txt": NUMBERS, "b.txt": "b\n", "bin/run": "#!/bin/sh\n"})
        self.ours: LocalProjects = projects(tmp_path)
        self.project: Project = self.ours.open(str(self.repository.directory))

    def tree(self, number: int, onto: str = "") -> PrivateTree:
        task = f"{number}" * 6
        place = self.tmp / f"workspace/agents/coder/{task}/project"
        tree = self.ours.worktree(self.project, f"run{number}", task, str(place), onto)
        tree.prepare()
        return tree

    def commit(self, number: int, files: dict[str, str], onto: str = "") -> PrivateTree:
        tree = self.tree(number, onto)
        for path, content in files.items():
            place = Path(tree.directory, path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(content)
        assert tree.commit(f"change {number}", "coder") is not None
        return tree

    def shown(self, commit: str, path: str) -> str:
        return Path(self.ours.snapshot(self.project, commit), path).read_text()


def test_a_commit_is_what_changed_under_the_workers_name(tmp_path: Path) -> None:
    play = Play(tmp_path)
    tree = play.tree(1)
    directory = Path(tree.directory)
    (directory / "a.txt").write_text("changed\n")
    (directory / "b.txt").unlink()
    (directory / "bin/run").chmod(0o755)
    (directory / "link").symlink_to("a.txt")
    (directory / "deep/er").mkdir(parents=True)
    (directory / "deep/er/new.txt").write_text("new")
    commit = tree.commit("All of it\n\nWith a body.", "Coder Ü")
    assert commit is not None
    assert commit.files == ("a.txt", "b.txt", "bin/run", "deep/er/new.txt", "link")
    assert tree.commit("again", "coder") is None
    branch = play.ours.publish(play.project, tree.branch)
    log = play.repository.git("log", "-1", "--format=%an|%ae|%cn|%s|%b", branch)
    assert log.strip() == "Coder Ü|coder@xclaw.invalid|xclaw|All of it|With a body."
    listed = play.repository.git("ls-tree", "-r", branch)
    assert "100755" in next(line for line in listed.splitlines() if line.endswith("bin/run"))
    assert "120000" in next(line for line in listed.splitlines() if line.endswith("link"))
    assert "b.txt" not in listed
    play.repository.git("fsck", "--strict")


def test_the_users_files_index_and_head_stay_as_they_are(tmp_path: Path) -> None:
    play = Play(tmp_path)
    play.repository.write({"b.txt": "dirty\n", "untracked": "u"})
    play.repository.git("add", "b.txt")
    before = play.repository.fingerprint()
    play.project = play.ours.open(str(play.repository.directory))
    play.ours.snapshot(play.project)
    one, two = play.commit(1, {"a.txt": "1\n"}), play.commit(2, {"c.txt": "2\n"})
    merged = play.ours.merge(play.project, (one.branch, two.branch), "xclaw/merged")
    assert play.ours.publish(play.project, merged.branch) == "xclaw/merged"
    assert play.repository.fingerprint() == before


def test_a_tree_that_is_there_is_left_as_it_is(tmp_path: Path) -> None:
    play = Play(tmp_path)
    tree = play.tree(1)
    Path(tree.directory, "a.txt").write_text("half done")
    again = projects(tmp_path).worktree(play.project, "run1", "111111", tree.directory)
    again.prepare()
    assert again.branch == tree.branch
    assert Path(again.directory, "a.txt").read_text() == "half done"


def test_two_runs_with_one_task_id_have_a_branch_each(tmp_path: Path) -> None:
    play = Play(tmp_path)
    one = play.tree(1)
    other = play.ours.worktree(play.project, "c0ffee", "111111", str(tmp_path / "other/project"))
    assert one.branch == "xclaw/111111"
    assert other.branch.startswith("xclaw/111111-")


def test_what_is_ignored_is_not_committed_and_secrets_are_left_out_and_said(tmp_path: Path) -> None:
    play = Play(tmp_path)
    tree = play.tree(1)
    for name, content in {
        ".gitignore": "build/\n",
        "build/x.o": "o",
        ".env": "KEY=1",
        "new.txt": "n",
    }.items():
        place = Path(tree.directory, name)
        place.parent.mkdir(exist_ok=True)
        place.write_text(content)
    commit = tree.commit("work", "coder")
    assert commit is not None
    assert commit.files == (".gitignore", "new.txt")
    assert any(".env" in note for note in commit.notes)


def test_a_tree_is_removed_only_when_nothing_is_lost_by_it(tmp_path: Path) -> None:
    play = Play(tmp_path)
    tree = play.commit(1, {"a.txt": "1\n"})
    Path(tree.directory, "later.txt").write_text("not committed")
    assert not tree.remove()
    assert Path(tree.directory, "later.txt").exists()
    tree.commit("later", "coder")
    assert tree.remove()
    assert not Path(tree.directory).exists()
    assert [commit.message for commit in play.ours.log(play.project, tree.branch)] == ["change 1", "later"]


def test_different_files_and_different_places_of_one_file_are_merged(tmp_path: Path) -> None:
    play = Play(tmp_path)
    top = NUMBERS.replace("1\n2\n", "one\n2\n", 1)
    end = NUMBERS.replace("30\n", "thirty\n")
    one, two = play.commit(1, {"a.txt": top, "x.txt": "x"}), play.commit(2, {"a.txt": end, "y.txt": "y"})
    merged = play.ours.merge(play.project, (one.branch, two.branch), "xclaw/merged")
    assert merged.taken == (one.branch, two.branch)
    assert not merged.conflicts
    text = play.shown(merged.commit, "a.txt")
    assert text.startswith("one\n")
    assert text.endswith("thirty\n")
    again = projects(tmp_path).merge(play.project, (one.branch, two.branch), "xclaw/merged")
    assert again == merged, "the same again is the same commit"


def test_a_conflict_is_told_and_both_sides_are_kept(tmp_path: Path) -> None:
    play = Play(tmp_path)
    one, two = play.commit(1, {"a.txt": NUMBERS.replace("15", "mine")}), play.commit(2, {"a.txt": "theirs\n"})
    three = play.commit(3, {"z.txt": "z"})
    merged = play.ours.merge(play.project, (one.branch, two.branch, three.branch), "xclaw/merged")
    assert merged.taken == (one.branch, three.branch)
    (conflict,) = merged.conflicts
    assert (conflict.branch, conflict.files) == (two.branch, ("a.txt",))
    assert "mine" in conflict.detail
    assert "theirs" in conflict.detail
    assert play.shown(one.tip, "a.txt") != play.shown(two.tip, "a.txt") == "theirs\n"
    mended = play.commit(4, {"a.txt": "both\n"}, onto=merged.commit)
    final = play.ours.merge(play.project, (mended.branch,), "xclaw/final")
    assert play.shown(final.commit, "z.txt") == "z"


def test_deleted_on_one_side_and_changed_on_the_other_is_a_conflict(tmp_path: Path) -> None:
    play = Play(tmp_path)
    one = play.commit(1, {"b.txt": "changed\n"})
    two = play.tree(2)
    Path(two.directory, "b.txt").unlink()
    two.commit("deleted", "coder")
    merged = play.ours.merge(play.project, (one.branch, two.branch), "xclaw/merged")
    assert [conflict.files for conflict in merged.conflicts] == [("b.txt",)]


def test_a_task_can_begin_where_others_ended(tmp_path: Path) -> None:
    play = Play(tmp_path)
    one = play.commit(1, {"x.txt": "x"})
    two = play.tree(2, onto=one.tip)
    assert Path(two.directory, "x.txt").exists()
    with pytest.raises(ToolFailed, match="no branch"):
        play.tree(3, onto="xclaw/nobody")
    with pytest.raises(ToolFailed, match="no branch"):
        play.ours.merge(play.project, ("--help",), "xclaw/m")


def test_a_dirty_tree_comes_back_behind_a_commit_of_what_was_not_committed(tmp_path: Path) -> None:
    play = Play(tmp_path)
    play.repository.write({"b.txt": "mine\n", "untracked.txt": "u"})
    play.project = play.ours.open(str(play.repository.directory))
    tree = play.commit(1, {"a.txt": "worker\n"})
    branch = play.ours.publish(play.project, tree.branch)
    assert play.repository.git("log", "--format=%s", branch).splitlines() == [
        "change 1",
        "What was not committed when xclaw began",
        "one",
    ]
    patch = play.ours.patch(play.project, tree.branch).decode()
    assert "b.txt" not in patch
    play.repository.git("apply", stdin=patch)
    assert (play.repository.directory / "a.txt").read_text() == "worker\n"


def test_a_branch_leaves_what_workers_were_not_shown_as_the_user_has_it(tmp_path: Path) -> None:
    play = Play(tmp_path)
    play.repository.commit("secrets", {".env": "KEY=1", "big.bin": "x" * 5_000})
    play.ours = projects(tmp_path, max_file_bytes=1_000)
    play.project = play.ours.open(str(play.repository.directory))
    tree = play.commit(1, {"a.txt": "worker\n"})
    branch = play.ours.publish(play.project, tree.branch)
    assert play.repository.git("diff", "--name-only", "main", branch).split() == ["a.txt"]
    play.repository.git("merge", "-q", branch)
    assert (play.repository.directory / "a.txt").read_text() == "worker\n"


def test_a_branch_of_another_is_never_moved(tmp_path: Path) -> None:
    play = Play(tmp_path)
    play.repository.git("branch", "xclaw/111111")
    play.repository.git("checkout", "-q", "-b", "elsewhere")
    theirs = play.repository.commit("theirs", {"t": "t"})
    play.repository.git("branch", "-f", "xclaw/111111", theirs)
    play.repository.git("checkout", "-q", "main")
    play.repository.git("pack-refs", "--all")
    tree = play.commit(1, {"a.txt": "worker\n"})
    assert play.ours.publish(play.project, tree.branch) == "xclaw/111111-2"
    assert play.repository.git("rev-parse", "xclaw/111111").strip() == theirs
    assert play.ours.publish(play.project, tree.branch) == "xclaw/111111-2", "the same again makes no third"


def test_a_branch_that_goes_on_is_moved_on_unless_somebody_works_on_it(tmp_path: Path) -> None:
    play = Play(tmp_path)
    tree = play.commit(1, {"a.txt": "worker\n"})
    assert play.ours.publish(play.project, tree.branch) == "xclaw/111111"
    Path(tree.directory, "a.txt").write_text("more\n")
    tree.commit("more", "coder")
    assert play.ours.publish(play.project, tree.branch) == "xclaw/111111"
    assert play.repository.git("show", "xclaw/111111:a.txt") == "more\n"
    play.repository.git("checkout", "-q", "xclaw/111111")
    before = play.repository.fingerprint()
    Path(tree.directory, "a.txt").write_text("even more\n")
    tree.commit("even more", "coder")
    assert play.ours.publish(play.project, tree.branch) == "xclaw/111111-2"
    assert play.repository.fingerprint() == before


def test_a_branch_named_like_the_folder_of_ours_is_a_clear_error(tmp_path: Path) -> None:
    play = Play(tmp_path)
    play.repository.git("branch", "xclaw")
    tree = play.commit(1, {"a.txt": "worker\n"})
    with pytest.raises(UsageError, match="another branch has the name"):
        play.ours.publish(play.project, tree.branch)


def test_a_repository_without_a_commit_and_a_folder(tmp_path: Path) -> None:
    fresh = UserRepository(tmp_path / "fresh")
    fresh.write({"a.txt": "1\n"})
    ours = projects(tmp_path)
    project = ours.open(str(fresh.directory))
    tree = ours.worktree(project, "r1", "aaaaaa", str(tmp_path / "p/project"))
    tree.prepare()
    Path(tree.directory, "a.txt").write_text("2\n")
    tree.commit("two", "coder")
    assert fresh.git("show", f"{ours.publish(project, tree.branch)}:a.txt") == "2\n"
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.txt").write_text("1\n")
    project = ours.open(str(folder))
    tree = ours.worktree(project, "r2", "bbbbbb", str(tmp_path / "q/project"))
    tree.prepare()
    Path(tree.directory, "a.txt").write_text("2\n")
    tree.commit("two", "coder")
    assert ours.publish(project, tree.branch) == ""
    subprocess.run(["patch", "-p1", "-s"], input=tree.patch(), cwd=folder, check=True)
    assert (folder / "a.txt").read_text() == "2\n"


def test_binary_files_come_back_in_the_patch(tmp_path: Path) -> None:
    play = Play(tmp_path)
    tree = play.tree(1)
    Path(tree.directory, "i.png").write_bytes(bytes(range(256)))
    tree.commit("image", "coder")
    play.repository.git("apply", stdin=tree.patch().decode())
    assert (play.repository.directory / "i.png").read_bytes() == bytes(range(256))


def test_trees_that_there_are_can_be_listed(tmp_path: Path) -> None:
    play = Play(tmp_path)
    play.commit(1, {"a.txt": "1\n"})
    gone, empty = play.commit(2, {"b.txt": "2\n"}), play.tree(3)
    assert gone.remove()
    assert empty.remove()
    listed = projects(tmp_path).trees()
    assert [(each.record.branch, each.is_there) for each in listed] == [
        ("xclaw/111111", True),
        ("xclaw/222222", False),
    ]
    assert [commit.message for commit in listed[0].commits] == ["change 1"]
    assert listed[0].record.project == play.project


def test_a_shallow_clone_takes_a_branch(tmp_path: Path) -> None:
    play = Play(tmp_path)
    play.repository.commit("two", {"a.txt": "2\n"})
    clone = tmp_path / "clone"
    subprocess.run(
        ["git", "clone", "-q", "--depth=1", f"file://{play.repository.directory}", str(clone)], check=True
    )
    project = play.ours.open(str(clone))
    tree = play.ours.worktree(project, "r9", "999999", str(tmp_path / "s/project"))
    tree.prepare()
    Path(tree.directory, "a.txt").write_text("3\n")
    tree.commit("three", "coder")
    branch = play.ours.publish(project, tree.branch)
    shown = subprocess.run(
        ["git", "show", f"{branch}:a.txt"], cwd=clone, capture_output=True, text=True, check=True
    )
    assert shown.stdout == "3\n"


def test_private_trees_belong_to_whoever_has_the_directory(tmp_path: Path) -> None:
    """A sandbox runs commands as a user of its own, who has to be able to write there."""
    if os.geteuid() != 0:
        pytest.skip("only root can make files for others")
    play = Play(tmp_path)
    private = tmp_path / "of-another"
    private.mkdir()
    os.chown(private, 12345, 12345)
    tree = play.ours.worktree(play.project, "r5", "555555", str(private / "project"))
    tree.prepare()
    assert {path.stat().st_uid for path in (Path(tree.directory), *Path(tree.directory).rglob("*"))} == {
        12345
    }
    assert names(tree.directory) == {"a.txt", "b.txt", "bin/run"}
