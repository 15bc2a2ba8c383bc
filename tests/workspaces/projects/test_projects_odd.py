"""Repositories and trees that are not as most are: nothing of the user's is lost or broken by them (SPEC F4)."""

import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from workspaces.projects.project_play import UserRepository, names, projects
from xclaw.contracts.errors import ToolFailed, UsageError
from xclaw.contracts.projects import Project
from xclaw.workspaces.projects.projects import LocalProjects
from xclaw.workspaces.projects.worktree import PrivateTree

NOBODY = 65_534


def tree_of(mine: LocalProjects, project: Project, place: Path) -> PrivateTree:
    tree = mine.worktree(project, "run1", "task1", str(place / "project"))
    tree.prepare()
    return tree


def changed(
    tmp_path: Path, theirs: UserRepository, **files: str
) -> tuple[LocalProjects, Project, PrivateTree]:
    mine = projects(tmp_path)
    project = mine.open(str(theirs.directory))
    tree = tree_of(mine, project, tmp_path)
    for path, content in files.items():
        Path(tree.directory, path).write_text(content)
    tree.commit("work", "coder")
    return mine, project, tree


@pytest.mark.parametrize("how", [("--no-sparse-index",), ("--sparse-index",)])
def test_what_a_sparse_checkout_leaves_out_is_not_deleted(tmp_path: Path, how: tuple[str, ...]) -> None:
    theirs = UserRepository(tmp_path / "repo")
    theirs.commit("one", {"in/a": "1\n", "out/deep/b": "2\n", "c": "3\n"})
    theirs.git("sparse-checkout", "set", "--cone", *how, "in")
    mine, project, tree = changed(tmp_path, theirs, c="4\n")
    assert not project.dirty
    branch = mine.publish(project, tree.branch)
    assert theirs.git("diff", "--name-only", "main", branch).split() == ["c"]


def test_an_index_in_two_files_makes_nothing_deleted(tmp_path: Path) -> None:
    theirs = UserRepository(tmp_path / "repo")
    theirs.commit("one", {".gitignore": "made\n", "a": "1\n"})
    theirs.write({"made": "by hand\n"})
    theirs.git("add", "-f", "made")
    theirs.git("commit", "-q", "-m", "two")
    theirs.git("update-index", "--split-index")
    mine, project, tree = changed(tmp_path, theirs, a="2\n")
    branch = mine.publish(project, tree.branch)
    assert theirs.git("diff", "--name-only", "main", branch).split() == ["a"]


def test_a_disk_on_which_all_files_may_be_run_changes_none(tmp_path: Path) -> None:
    theirs = UserRepository(tmp_path / "repo")
    theirs.commit("one", {"a": "1\n", "b": "1\n"})
    theirs.git("config", "core.fileMode", "false")
    for name in ("a", "b"):
        (theirs.directory / name).chmod(0o755)
    mine, project, tree = changed(tmp_path, theirs, a="2\n")
    assert not project.dirty
    branch = mine.publish(project, tree.branch)
    assert theirs.git("diff", "--summary", "main", branch) == ""


@pytest.mark.parametrize("ours", ["xclaw/task1/more", "xclaw"])
def test_branches_that_were_packed_are_in_the_way_too(tmp_path: Path, ours: str) -> None:
    """A branch beside them, of a name that is a part of theirs, would break the repository."""
    theirs = UserRepository(tmp_path / "repo")
    theirs.commit("one", {"a": "1\n"})
    theirs.git("branch", ours)
    theirs.git("pack-refs", "--all")
    mine, project, tree = changed(tmp_path, theirs, a="2\n")
    if ours == "xclaw":
        with pytest.raises(UsageError, match="another branch has the name of a part of it"):
            mine.publish(project, tree.branch)
    else:
        assert mine.publish(project, tree.branch) == "xclaw/task1-2"
    theirs.git("gc", "-q")
    theirs.git("fsck")


def test_a_message_and_names_of_any_characters_are_read_as_they_are(tmp_path: Path) -> None:
    theirs = UserRepository(tmp_path / "repo")
    theirs.commit("one", {"a": "1\n"})
    mine, project, tree = changed(tmp_path, theirs)
    odd = ["\x01\x01f", "\n:z", " ", ":100644 x"]
    for name in odd:
        Path(tree.directory, name).write_text("x")
    tree.commit("a\x01\x01:b\nand more", "coder")
    Path(tree.directory, "a").write_text("2\n")
    tree.commit(":", "coder")
    first, second = mine.log(project, tree.branch)
    assert (first.message, set(first.files)) == ("a\x01\x01:b and more", set(odd))
    assert (second.message, second.files) == (":", ("a",))


def test_no_branch_replaces_what_workers_were_not_shown(tmp_path: Path) -> None:
    theirs = UserRepository(tmp_path / "repo")
    theirs.commit("one", {"conf/.env": "KEY=1\n", "conf/a": "1\n"})
    mine, project, tree = changed(tmp_path, theirs)
    shutil.rmtree(Path(tree.directory, "conf"))
    Path(tree.directory, "conf").write_text("a file now")
    tree.commit("work", "coder")
    with pytest.raises(
        UsageError, match="would replace what workers were not shown, by conf; take the patch"
    ):
        mine.publish(project, tree.branch)
    assert theirs.git("branch", "--list", "xclaw/*") == ""


def test_a_file_inside_a_submodule_that_workers_were_not_shown_makes_no_branch(tmp_path: Path) -> None:
    inner = UserRepository(tmp_path / "inner")
    inner.commit("one", {"f": "1\n"})
    theirs = UserRepository(tmp_path / "repo")
    theirs.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner.directory), "sub")
    theirs.commit("one", {"a": "1\n"})
    mine, project, tree = changed(tmp_path, theirs)
    Path(tree.directory, "sub").mkdir()
    Path(tree.directory, "sub/f").write_text("another\n")
    tree.commit("work", "coder")
    with pytest.raises(UsageError, match="by sub/f"):
        mine.publish(project, tree.branch)


def test_an_empty_repository_gets_its_first_branch(tmp_path: Path) -> None:
    theirs = UserRepository(tmp_path / "repo")
    mine, project, tree = changed(tmp_path, theirs, a="1\n")
    branch = mine.publish(project, tree.branch)
    theirs.git("merge", "-q", branch)
    assert (theirs.directory / "a").read_text() == "1\n"


def test_a_commit_that_is_gone_meanwhile_is_a_clear_error(tmp_path: Path) -> None:
    theirs = UserRepository(tmp_path / "repo")
    theirs.commit("one", {"a": "1\n"})
    theirs.commit("two", {"a": "2\n"})
    mine, project, tree = changed(tmp_path, theirs, a="3\n")
    theirs.git("reset", "-q", "--hard", "HEAD~1")
    theirs.git("reflog", "expire", "--expire=now", "--all")
    theirs.git("gc", "-q", "--prune=now")
    with pytest.raises(UsageError, match=r"does not hold the commit .* any more"):
        mine.publish(project, tree.branch)
    assert b"+3" in mine.patch(project, tree.branch)


def test_a_repositorys_own_files_are_no_project(tmp_path: Path) -> None:
    theirs = UserRepository(tmp_path / "repo")
    theirs.commit("one", {"a": "1\n"})
    theirs.git("clone", "-q", "--bare", str(theirs.directory), str(tmp_path / "bare.git"))
    mine = projects(tmp_path)
    for place in (tmp_path / "bare.git", tmp_path / "bare.git/refs", theirs.directory / ".git"):
        with pytest.raises(UsageError, match="is git's own"):
            mine.open(str(place))
    theirs.git(
        "--git-dir", str(tmp_path / "bare.git"), "worktree", "add", "-q", str(tmp_path / "bare.git/work")
    )
    assert names(mine.snapshot(mine.open(str(tmp_path / "bare.git/work")))) == {"a"}


def test_a_repository_without_a_git_directory_is_neither_shown_nor_committed(tmp_path: Path) -> None:
    """git takes any directory that looks like one for a repository, with its settings and hooks."""
    theirs = UserRepository(tmp_path / "repo")
    theirs.commit("one", {"a": "1\n"})
    theirs.git("clone", "-q", "--bare", ".", "copy.git")
    mine, project, tree = changed(tmp_path, theirs)
    assert names(mine.snapshot(project)) == {"a"}
    assert any("a repository of its own" in note and "copy.git" in note for note in project.notes)
    shutil.copytree(theirs.directory / "copy.git", Path(tree.directory, "planted"))
    with pytest.raises(ToolFailed, match="'planted' holds a repository of its own"):
        tree.commit("work", "coder")
    Path(tree.directory, "a").write_text("2\n")
    last = tree.commit("work", "coder", last=True)
    assert last is not None
    assert last.files == ("a",)
    assert not tree.remove()


@pytest.mark.parametrize("target", ["here/../a", "here/here/../../../..", "b/../../b"])
def test_links_through_links_cannot_lead_out(tmp_path: Path, target: str) -> None:
    theirs = UserRepository(tmp_path / "repo")
    (theirs.directory / "here").symlink_to(".")
    (theirs.directory / "out").symlink_to(target)
    theirs.commit("one", {"a": "1\n", "b/c": "1\n"})
    mine = projects(tmp_path)
    project = mine.open(str(theirs.directory))
    assert "out" not in names(mine.snapshot(project))
    assert any("a link that leads out" in note and "out" in note for note in project.notes)


def test_head_is_read_as_git_reads_it(tmp_path: Path) -> None:
    """Taken for a repository before its first commit, it would get a branch with another history."""
    theirs = UserRepository(tmp_path / "repo")
    commit = theirs.commit("one", {"a": "1\n"})
    head = theirs.directory / ".git/HEAD"
    head.write_text("ref:\trefs/heads/main\n")
    assert projects(tmp_path).open(str(theirs.directory)).head == commit
    head.unlink()
    head.symlink_to("refs/heads/main")
    project = projects(tmp_path).open(str(theirs.directory))
    assert (project.kind, project.notes) == (
        "folder",
        ("its .git is no repository, so it is treated as a folder",),
    )


@contextmanager
def as_nobody() -> Generator[Path]:
    """A directory of an ordinary user, whom files can refuse."""
    place = Path(tempfile.mkdtemp(prefix="xclaw-test-"))
    is_root, usual = os.geteuid() == 0, tempfile.tempdir
    tempfile.tempdir = str(place)
    if is_root:
        os.chown(place, NOBODY, NOBODY)
        os.seteuid(NOBODY)
    try:
        yield place
    finally:
        tempfile.tempdir = usual
        if is_root:
            os.seteuid(0)
        shutil.rmtree(place)


def test_a_directory_that_cannot_be_read_is_said_and_never_lost() -> None:
    with as_nobody() as place:
        theirs = UserRepository(place / "repo")
        theirs.commit("one", {"a": "1\n", "shut/b": "1\n"})
        theirs.write({"closed/c": "1\n"})
        (theirs.directory / "closed").chmod(0)
        mine = projects(place)
        project = mine.open(str(theirs.directory))
        assert "left out (cannot be read): closed" in project.notes
        tree = tree_of(mine, project, place)
        Path(tree.directory, "new").mkdir()
        Path(tree.directory, "new/d").write_text("work")
        Path(tree.directory, "new").chmod(0)
        assert tree.commit("work", "coder", last=True) is None
        assert not tree.remove()
        Path(tree.directory, "new").chmod(0o700)
        assert Path(tree.directory, "new/d").read_text() == "work"
        for folder in (Path(tree.directory, "new"), Path(tree.directory)):
            folder.chmod(0)
        assert tree.remove(force=True)
        assert not Path(tree.directory).exists()


def test_uncommitted_changes_that_a_branch_of_ours_holds_already_can_be_begun_at(tmp_path: Path) -> None:
    """A workspace that is new, and a repository that has a branch out of another one."""
    theirs = UserRepository(tmp_path / "repo")
    theirs.commit("one", {"a": "1\n", "b": "1\n"})
    theirs.write({"a": "uncommitted\n"})
    mine, project, tree = changed(tmp_path / "first", theirs, b="2\n")
    first = mine.publish(project, tree.branch)
    mine, project, tree = changed(tmp_path / "second", theirs, b="3\n")
    second = mine.publish(project, tree.branch)
    assert theirs.git("merge-base", first, second) == theirs.git("rev-parse", f"{second}~1")
    assert theirs.git("show", f"{second}:a") == "uncommitted\n"


def test_uncommitted_changes_that_are_gone_meanwhile_are_not_left_out_unsaid(tmp_path: Path) -> None:
    theirs = UserRepository(tmp_path / "repo")
    theirs.commit("one", {"a": "1\n", "b": "1\n"})
    theirs.write({"a": "uncommitted\n"})
    mine, project, tree = changed(tmp_path / "first", theirs, b="2\n")
    first = mine.publish(project, tree.branch)
    mine, project, tree = changed(tmp_path / "second", theirs, b="3\n")
    theirs.git("branch", "-q", "-D", first)
    theirs.git("gc", "-q", "--prune=now")
    with pytest.raises(UsageError, match="any more"):
        mine.publish(project, tree.branch)


def test_what_a_git_left_that_found_the_disk_full_does_not_keep_it_full(tmp_path: Path) -> None:
    theirs = UserRepository(tmp_path / "repo")
    theirs.commit("one", {"a": "1\n"})
    mine = projects(tmp_path)
    mine.open(str(theirs.directory))
    (repository,) = (tmp_path / "workspace/projects").glob("*/repository.git")
    left = [
        repository / "objects/pack/tmp_pack_x",
        repository / "fast_import_crash_1",
        repository / "HEAD.lock",
    ]
    for path in left:
        path.write_text("x")
    mine.open(str(theirs.directory))
    assert not any(path.exists() for path in left)


def test_a_damaged_repository_of_ours_hides_no_other(tmp_path: Path) -> None:
    trees: list[str] = []
    for name in ("one", "two"):
        theirs = UserRepository(tmp_path / name)
        theirs.commit("one", {"a": "1\n"})
        mine = projects(tmp_path)
        tree = mine.worktree(mine.open(str(theirs.directory)), name, name, str(tmp_path / f"tree-{name}"))
        tree.prepare()
        Path(tree.directory, "a").write_text("2\n")
        tree.commit("work", "coder")
        trees.append(tree.branch)
    (damaged,) = (tmp_path / "workspace/projects").glob("one-*/repository.git")
    shutil.rmtree(damaged)
    listed = {each.record.branch: len(each.commits) for each in projects(tmp_path).trees()}
    assert listed == dict(zip(trees, (0, 1), strict=True))


def test_a_tree_of_any_depth_is_removed_and_what_is_too_deep_is_said(tmp_path: Path) -> None:
    theirs = UserRepository(tmp_path / "repo")
    theirs.commit("one", {"a": "1\n"})
    _, _, tree = changed(tmp_path, theirs)
    deeper = os.open(tree.directory, os.O_RDONLY)
    for number in range(1_500):
        os.mkdir("d", dir_fd=deeper)
        inner = os.open("d", os.O_RDONLY, dir_fd=deeper)
        os.close(deeper)
        deeper = inner
        if number in (100, 400):
            os.close(os.open("leaf", os.O_CREAT | os.O_WRONLY, dir_fd=deeper))
    os.close(deeper)
    commit = tree.commit("work", "coder")
    assert commit is not None
    assert [path.count("/") for path in commit.files] == [101]
    assert any("more than 200 directories deep" in note for note in commit.notes)
    assert not tree.remove()
    assert tree.remove(force=True)
    assert not Path(tree.directory).exists()


@pytest.mark.parametrize("branch", ["xclaw/t\0", "xclaw/\ud800", "xclaw/t\n", "-x", ""])
def test_a_name_that_no_branch_has_is_a_clear_error(tmp_path: Path, branch: str) -> None:
    theirs = UserRepository(tmp_path / "repo")
    theirs.commit("one", {"a": "1\n"})
    mine, project, _ = changed(tmp_path, theirs)
    with pytest.raises(ToolFailed, match="there is no branch"):
        mine.merge(project, (branch,), "all")


def test_a_conflict_that_has_no_common_text_says_what_it_is(tmp_path: Path) -> None:
    theirs = UserRepository(tmp_path / "repo")
    theirs.commit("one", {"dir/a": "1\n2\n3\n", "dir/b": "4\n5\n6\n"})
    mine = projects(tmp_path)
    project = mine.open(str(theirs.directory))
    one = mine.worktree(project, "run1", "one", str(tmp_path / "one"))
    two = mine.worktree(project, "run2", "two", str(tmp_path / "two"))
    one.prepare()
    two.prepare()
    Path(one.directory, "dir").rename(Path(one.directory, "moved"))
    Path(two.directory, "dir/new").write_text("x")
    one.commit("one", "coder")
    two.commit("two", "coder")
    (conflict,) = mine.merge(project, (one.branch, two.branch), "all").conflicts
    assert "inside a directory that was renamed" in conflict.detail


def test_a_patch_that_is_too_large_is_a_clear_error(tmp_path: Path) -> None:
    theirs = UserRepository(tmp_path / "repo")
    theirs.commit("one", {"a": "1\n"})
    _, _, tree = changed(tmp_path, theirs, a="2\n" * 1_000)
    with pytest.raises(UsageError, match="a patch of more than 1000 bytes, which was not made"):
        tree.patch(1_000)
    assert len(tree.patch()) > 1_000
