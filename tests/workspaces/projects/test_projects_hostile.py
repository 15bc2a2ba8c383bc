"""A repository that was made to attack whoever looks at it: nothing of it runs, nothing beside it is read (SPEC F4).

Each attack would leave a file behind. What git itself does with it is shown once, so that a test cannot pass because
the attack is none.
"""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from project_play import UserRepository, names, projects

from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.projects import Project
from xclaw.workspaces.projects.denied import is_git_internal
from xclaw.workspaces.projects.projects import LocalProjects


def _whole_way(tmp_path: Path, directory: Path) -> tuple[LocalProjects, Project, str]:
    """Everything that is ever done with a project; answers the branch in the user's repository."""
    ours = projects(tmp_path)
    project = ours.open(str(directory))
    ours.snapshot(project)
    branches: list[str] = []
    for number in range(2):
        task = f"{number}" * 6
        tree = ours.worktree(project, f"run{number}", task, str(tmp_path / f"private{number}/project"))
        tree.prepare()
        Path(tree.directory, f"made{number}.txt").write_text("made\n")
        Path(tree.directory, "a.txt").write_text("changed\n" if number else "1\n")
        tree.commit("work", "coder")
        branches.append(tree.branch)
    merged = ours.merge(project, tuple(branches), "xclaw/merged")
    assert len(merged.taken) == 2
    ours.patch(project, merged.branch)
    return ours, project, ours.publish(project, merged.branch)


def _script(tmp_path: Path) -> tuple[str, Path]:
    canary = tmp_path / "canary"
    script = tmp_path / "attack.sh"
    script.write_text(f"#!/bin/sh\necho ran >> {canary}\ncat\n")
    script.chmod(0o755)
    return str(script), canary


HOOKS = (
    *(
        "pre-commit",
        "post-commit",
        "post-checkout",
        "post-merge",
        "pre-merge-commit",
        "reference-transaction",
    ),
    *(
        "post-index-change",
        "post-rewrite",
        "commit-msg",
        "prepare-commit-msg",
        "update",
        "post-update",
        "pre-push",
    ),
    "fsmonitor-watchman",
)


def _hooks(repository: UserRepository, script: str) -> None:
    for name in HOOKS:
        hook = repository.directory / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(Path(script).read_text())
        hook.chmod(0o755)


def _hooks_path(repository: UserRepository, script: str) -> None:
    for name in HOOKS:
        repository.write({f"hooks/{name}": Path(script).read_text()})
        (repository.directory / "hooks" / name).chmod(0o755)
    repository.git("config", "core.hooksPath", "hooks")


def _fsmonitor(repository: UserRepository, script: str) -> None:
    repository.git("config", "core.fsmonitor", script)


def _filters(repository: UserRepository, script: str) -> None:
    repository.write({".gitattributes": "* filter=evil diff=evil merge=evil\n"})
    for key in ("filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "diff.evil.command"):
        repository.git("config", key, script)
    for key in ("diff.evil.textconv", "merge.evil.driver", "diff.external", "core.editor", "core.pager"):
        repository.git("config", key, script)
    (repository.directory / ".git/info/attributes").write_text("* filter=evil diff=evil merge=evil\n")


def _include(repository: UserRepository, script: str) -> None:
    repository.write({"extra.config": f"[core]\n\tfsmonitor = {script}\n\tsshCommand = {script}\n"})
    repository.git("config", "include.path", "../extra.config")
    repository.git("config", "includeIf.gitdir:/**.path", "../extra.config")


def _aliases_and_helpers(repository: UserRepository, script: str) -> None:
    for key in ("alias.ls-files", "alias.rev-parse", "credential.helper", "gpg.program", "core.askPass"):
        repository.git("config", key, f"!{script}")
    repository.git("config", "commit.gpgSign", "true")
    repository.git("config", "trace2.eventTarget", "/dev/null")


def _promisor(repository: UserRepository, script: str) -> None:
    """Missing objects, to be had from a remote that is a command."""
    repository.git("config", "extensions.partialClone", "evil")
    repository.git("config", "core.repositoryFormatVersion", "1")
    repository.git("config", "remote.evil.url", f"ext::{script}")
    repository.git("config", "remote.evil.promisor", "true")
    repository.git("config", "remote.evil.uploadpack", script)
    repository.git("config", "protocol.ext.allow", "always")


ATTACKS = (_hooks, _hooks_path, _fsmonitor, _filters, _include, _aliases_and_helpers, _promisor)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__.strip("_"))
def test_nothing_that_a_repository_names_is_run(
    tmp_path: Path, attack: Callable[[UserRepository, str], None]
) -> None:
    script, canary = _script(tmp_path)
    repository = UserRepository(tmp_path / "repo")
    repository.commit("one", {"a.txt": "1\n", "b.txt": "2\n"})
    attack(repository, script)
    repository.write({"b.txt": "not committed\n"})
    os.utime(repository.directory / "a.txt", (1, 1))
    _, _, branch = _whole_way(tmp_path, repository.directory)
    assert not canary.exists()
    assert branch == "xclaw/merged"
    assert (repository.directory / ".git/refs/heads/xclaw/merged").is_file()


@pytest.mark.parametrize(
    "attack", [_hooks, _fsmonitor, _filters, _include], ids=lambda attack: attack.__name__
)
def test_the_attacks_are_attacks(tmp_path: Path, attack: Callable[[UserRepository, str], None]) -> None:
    script, canary = _script(tmp_path)
    repository = UserRepository(tmp_path / "repo")
    repository.commit("one", {"a.txt": "1\n"})
    attack(repository, script)
    repository.write({"a.txt": "2\n"})
    os.utime(repository.directory / "a.txt", (1, 1))
    try:
        repository.git("status")
        repository.git("commit", "-q", "-am", "x")
    except AssertionError:
        pass  # a broken filter makes git fail, once it has run
    assert canary.exists()


def test_the_environment_of_whoever_runs_xclaw_means_nothing_to_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, canary = _script(tmp_path)
    repository = UserRepository(tmp_path / "repo")
    repository.commit("one", {"a.txt": "1\n"})
    other = UserRepository(tmp_path / "other")
    other.commit("other", {"other.txt": "1"})
    for name in ("GIT_EXTERNAL_DIFF", "GIT_SSH_COMMAND", "GIT_EDITOR", "GIT_PAGER", "GIT_ASKPASS"):
        monkeypatch.setenv(name, script)
    monkeypatch.setenv("GIT_DIR", str(other.directory / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.directory))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.fsmonitor")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", script)
    ours, project, _ = _whole_way(tmp_path, repository.directory)
    assert names(ours.snapshot(project)) == {"a.txt"}
    assert not canary.exists()
    assert not (other.directory / ".git/refs/heads/xclaw").exists()


def test_a_git_file_that_leads_to_anothers_repository_is_not_followed(tmp_path: Path) -> None:
    private = UserRepository(tmp_path / "private")
    private.commit("secret", {"secret.txt": "s"})
    bait = tmp_path / "bait"
    bait.mkdir()
    (bait / "a.txt").write_text("1\n")
    (bait / ".git").write_text(f"gitdir: {private.directory}/.git\n")
    ours, project, branch = _whole_way(tmp_path, bait)
    assert (project.kind, branch) == ("folder", "")
    assert names(ours.snapshot(project)) == {"a.txt"}
    assert any("does not know of it" in note for note in project.notes)
    assert not (private.directory / ".git/refs/heads/xclaw").exists()


def test_a_git_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    private = UserRepository(tmp_path / "private")
    private.commit("secret", {"secret.txt": "s"})
    bait = tmp_path / "bait"
    bait.mkdir()
    (bait / "a.txt").write_text("1\n")
    (bait / ".git").symlink_to(private.directory / ".git")
    _, project, branch = _whole_way(tmp_path, bait)
    assert (project.kind, branch) == ("folder", "")
    assert not (private.directory / ".git/refs/heads/xclaw").exists()


@pytest.mark.parametrize("inner", ["refs/heads/xclaw", "refs/heads"])
def test_links_inside_of_a_repository_are_not_written_through(tmp_path: Path, inner: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    repository = UserRepository(tmp_path / "repo")
    repository.commit("one", {"a.txt": "1\n"})
    place = repository.directory / ".git" / inner
    if inner == "refs/heads":
        repository.git("pack-refs", "--all")
        place.rmdir()
    place.symlink_to(outside)
    with pytest.raises(Exception, match=r"cannot be (written|made)"):
        _whole_way(tmp_path, repository.directory)
    assert not list(outside.iterdir())


def test_objects_that_lie_elsewhere_give_workers_nothing(tmp_path: Path) -> None:
    private = UserRepository(tmp_path / "private")
    head = private.commit("secret", {"secret.txt": "s"})
    repository = UserRepository(tmp_path / "repo")
    repository.write({"a.txt": "1\n"})
    (repository.directory / ".git/objects/info/alternates").write_text(f"{private.directory}/.git/objects\n")
    (repository.directory / ".git/refs/heads/main").write_text(f"{head}\n")
    ours = projects(tmp_path)
    project = ours.open(str(repository.directory))
    assert names(ours.snapshot(project)) == {"a.txt"}


LOOKALIKES = (
    *(".git", ".GIT", ".Git", "git~1", "GIT~1", ".git.", ".git ", ".git. .", ".git::$INDEX_ALLOCATION"),
    *(".g\u200cit", ".gi\ufefft", ".git\\config", "x\\.git\\config"),
)


@pytest.mark.parametrize("name", LOOKALIKES)
def test_what_some_disk_takes_for_git_is_known(name: str) -> None:
    assert is_git_internal(name)


@pytest.mark.parametrize(
    "name", [".gitignore", ".gitattributes", ".github", "git", "a.git", "git~10", ".gitx"]
)
def test_other_names_are_left_alone(name: str) -> None:
    assert not is_git_internal(name)


@pytest.mark.parametrize(
    "name", [".GIT/config", "git~1/config", "sub/.git./hooks/post-checkout", ".g\u200cit/x"]
)
def test_lookalikes_of_git_neither_get_in_nor_out(tmp_path: Path, name: str) -> None:
    repository = UserRepository(tmp_path / "repo")
    repository.commit("one", {"a.txt": "1\n"})
    repository.write({name: "evil"})
    ours = projects(tmp_path)
    project = ours.open(str(repository.directory))
    assert names(ours.snapshot(project)) == {"a.txt"}
    tree = ours.worktree(project, "r", "aaaaaa", str(tmp_path / "p/project"))
    tree.prepare()
    place = Path(tree.directory, name)
    place.parent.mkdir(parents=True)
    place.write_text("evil")
    assert tree.commit("evil", "coder") is None
    assert not tree.remove()
    assert place.exists()


@pytest.mark.parametrize("has_commit", [True, False])
def test_a_repository_inside_a_private_tree_is_refused_and_nothing_is_lost(
    tmp_path: Path, *, has_commit: bool
) -> None:
    repository = UserRepository(tmp_path / "repo")
    repository.commit("one", {"a.txt": "1\n"})
    ours = projects(tmp_path)
    project = ours.open(str(repository.directory))
    tree = ours.worktree(project, "r", "aaaaaa", str(tmp_path / "p/project"))
    tree.prepare()
    inner = UserRepository(Path(tree.directory, "inner"))
    inner.write({"i.txt": "1"})
    if has_commit:
        inner.commit("inner")
    Path(tree.directory, "b.txt").write_text("b")
    with pytest.raises(ToolFailed, match=r"'inner' holds a repository of its own"):
        tree.commit("all", "coder")
    last = tree.commit("the rest", "coder", last=True)
    assert last is not None
    assert last.files == ("b.txt",)
    assert any("inner" in note for note in last.notes)
    assert not tree.remove()
    assert Path(tree.directory, "inner/i.txt").exists()


def test_a_repository_at_the_top_of_a_private_tree_is_left_out_and_runs_nothing(tmp_path: Path) -> None:
    """Workers like to call `git init` and `git commit`."""
    script, canary = _script(tmp_path)
    repository = UserRepository(tmp_path / "repo")
    repository.commit("one", {"a.txt": "1\n"})
    ours = projects(tmp_path)
    project = ours.open(str(repository.directory))
    tree = ours.worktree(project, "r", "aaaaaa", str(tmp_path / "p/project"))
    tree.prepare()
    inner = UserRepository(Path(tree.directory))
    for attack in (_hooks, _filters, _fsmonitor):
        attack(inner, script)
    commit = tree.commit("work", "coder")
    assert commit is not None
    assert commit.files == (".gitattributes",)
    assert not canary.exists()


def test_a_tree_that_became_a_link_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret.txt").write_text("s")
    repository = UserRepository(tmp_path / "repo")
    repository.commit("one", {"a.txt": "1\n", "d/b.txt": "2\n"})
    ours = projects(tmp_path)
    project = ours.open(str(repository.directory))
    tree = ours.worktree(project, "r", "aaaaaa", str(tmp_path / "p/project"))
    tree.prepare()
    Path(tree.directory, "d/b.txt").unlink()
    Path(tree.directory, "d").rmdir()
    Path(tree.directory, "d").symlink_to(tmp_path / "outside")
    commit = tree.commit("a link out", "coder", last=True)
    assert commit is None or "secret.txt" not in str(commit.files)
    Path(tree.directory).rename(tmp_path / "p/moved")
    Path(tree.directory).symlink_to(tmp_path / "outside")
    with pytest.raises(ToolFailed, match="cannot be read"):
        tree.commit("stolen", "coder")
    assert (tmp_path / "outside/secret.txt").exists()
