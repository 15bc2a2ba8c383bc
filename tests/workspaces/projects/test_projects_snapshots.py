"""What workers see of a user's project (SPEC F4)."""

import os
from pathlib import Path

import pytest
from project_play import NUMBERS, UserRepository, names, projects

from xclaw.contracts.errors import UsageError


def test_a_snapshot_holds_what_is_there_now_committed_or_not(tmp_path: Path) -> None:
    repository = UserRepository(tmp_path / "repo")
    head = repository.commit(
        "one", {"a.txt": "1\n", "gone.txt": "x", "sub/b.txt": "2\n", ".gitignore": "*.log\n"}
    )
    repository.write({"a.txt": "changed\n", "new.txt": "n", "noise.log": "l"})
    (repository.directory / "gone.txt").unlink()
    project = projects(tmp_path).open(str(repository.directory))
    seen = projects(tmp_path).snapshot(project)
    assert names(seen) == {"a.txt", "sub/b.txt", ".gitignore", "new.txt"}
    assert Path(seen, "a.txt").read_text() == "changed\n"
    assert (project.kind, project.head, project.dirty) == ("git", head, True)


def test_a_clean_tree_is_told_from_one_with_changes(tmp_path: Path) -> None:
    repository = UserRepository(tmp_path / "repo")
    repository.commit("one", {"a.txt": "1\n", ".gitattributes": "*.txt text eol=crlf\n"})
    assert not projects(tmp_path).open(str(repository.directory)).dirty
    repository.write({"a.txt": "2\n"})
    assert projects(tmp_path).open(str(repository.directory)).dirty
    repository.git("add", "a.txt")
    assert projects(tmp_path).open(str(repository.directory)).dirty


def test_the_snapshot_is_read_only_and_the_same_files_are_the_same_snapshot(tmp_path: Path) -> None:
    repository = UserRepository(tmp_path / "repo")
    repository.commit("one", {"run.sh": "#!/bin/sh\n", "d/a": "x"})
    (repository.directory / "run.sh").chmod(0o755)
    first, second = (projects(tmp_path).open(str(repository.directory)) for _ in range(2))
    assert first.base == second.base
    seen = Path(projects(tmp_path).snapshot(first))
    bits = {
        path.name: path.stat().st_mode & 0o777 for path in (seen, seen / "d", seen / "run.sh", seen / "d/a")
    }
    assert list(bits.values()) == [0o555, 0o555, 0o555, 0o444]


SECRETS = (
    *(".env", ".env.production", "config/prod.env", "server.pem", "tls/site.key", "id_rsa", "id_ed25519"),
    *(".netrc", ".npmrc", ".pypirc", "credentials", "credentials.json", ".aws/config", ".ssh/known_hosts"),
    *(".gnupg/x", "secrets.yaml", "service-account-1.json", "terraform.tfstate", ".git-credentials", "A.PEM"),
    *("secrets/token", ".docker/config.json", ".Env", ".env~", "..env.swp", ".env.bak", "#.env#", ".env (1)"),
    *(
        "www.example.com.key",
        "my.district.pem",
        "id_rsa.example.org",
        "x.key.old",
        ".env-prod",
        "app.secrets.json",
    ),
)
NO_SECRETS = (
    *(
        ".env.example",
        ".env.sample",
        "id_rsa.pub",
        "credentials.py",
        "secrets/store.py",
        "keys.md",
        "id_map.py",
    ),
    *(
        "docs/env.md",
        ".docker/Dockerfile",
        "environment.yml",
        "credentials.example.json",
        "server.key.example",
    ),
    *(".env.example.local", "terraform.tfvars.example", "keys~", "monkey.bak"),
)


def test_secrets_are_left_out_and_said_also_when_they_are_tracked(tmp_path: Path) -> None:
    repository = UserRepository(tmp_path / "repo")
    repository.commit("all", dict.fromkeys((*SECRETS, *NO_SECRETS), "x"))
    project = projects(tmp_path).open(str(repository.directory))
    assert names(projects(tmp_path).snapshot(project)) == set(NO_SECRETS)
    assert any("may hold secrets" in note for note in project.notes)
    assert not project.dirty, "what is left out is no change"


def test_settings_add_to_the_deny_list_and_make_exceptions(tmp_path: Path) -> None:
    repository = UserRepository(tmp_path / "repo")
    repository.commit("all", {"internal/x.md": "", "b.secret": "", "public.pem": "", "c": ""})
    ours = projects(tmp_path, deny=("internal", "*.secret"), allow=("public.pem",))
    assert names(ours.snapshot(ours.open(str(repository.directory)))) == {"public.pem", "c"}


def test_links_stay_links_and_those_that_lead_out_are_left_out(tmp_path: Path) -> None:
    """Also of directories, and by way of `..`."""
    (tmp_path / "outside.txt").write_text("secret")
    (tmp_path / "outdir").mkdir()
    (tmp_path / "outdir/f").write_text("secret")
    repository = UserRepository(tmp_path / "repo")
    repository.commit("one", {"a.txt": "1", "d/b": "2"})
    links = {"in": "a.txt", "d/up": "../a.txt", "out": "../outside.txt", "abs": str(tmp_path / "outside.txt")}
    links |= {"outdir": "../outdir", "d/far": "../../outside.txt"}
    for name, target in links.items():
        (repository.directory / name).symlink_to(target)
    ours = projects(tmp_path)
    project = ours.open(str(repository.directory))
    seen = Path(ours.snapshot(project))
    assert names(seen) == {"a.txt", "d/b", "in", "d/up"}
    assert (seen / "d/up").readlink() == Path("../a.txt")
    assert any("leads out" in note for note in project.notes)


def test_pipes_and_files_that_are_too_large_are_left_out(tmp_path: Path) -> None:
    repository = UserRepository(tmp_path / "repo")
    repository.commit("one", {"a": "1", "big": "x" * 2_000})
    os.mkfifo(repository.directory / "pipe")
    ours = projects(tmp_path, max_file_bytes=1_000)
    project = ours.open(str(repository.directory))
    assert names(ours.snapshot(project)) == {"a"}
    assert any("larger than 1000 bytes" in note and "big" in note for note in project.notes)
    assert not project.dirty


def test_more_than_may_be_read_is_a_clear_error(tmp_path: Path) -> None:
    repository = UserRepository(tmp_path / "repo")
    repository.write({f"{number}": "x" * 100 for number in range(20)})
    with pytest.raises(UsageError, match=r"project\.max_files"):
        projects(tmp_path, max_files=10).open(str(repository.directory))
    with pytest.raises(UsageError, match=r"project\.max_bytes"):
        projects(tmp_path, max_bytes=1_000).open(str(repository.directory))
    with pytest.raises(UsageError, match="no such directory"):
        projects(tmp_path).open(str(tmp_path / "nothing"))


def test_a_folder_without_a_repository_honours_ignore_files(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "node_modules/x").mkdir(parents=True)
    for name in ("a.py", "b.log", ".env", "node_modules/x/i.js"):
        (folder / name).write_text(name)
    (folder / ".gitignore").write_text("*.log\n")
    ours = projects(tmp_path)
    project = ours.open(str(folder))
    assert (project.kind, project.head) == ("folder", "")
    assert names(ours.snapshot(project)) == {"a.py", ".gitignore"}


def test_repositories_inside_are_left_out_and_said(tmp_path: Path) -> None:
    """Submodules, and repositories that happen to lie there, also those without a commit."""
    library = UserRepository(tmp_path / "library")
    library.commit("lib", {"l.txt": "1"})
    repository = UserRepository(tmp_path / "repo")
    repository.commit("one", {"a": "1"})
    repository.git(
        "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.directory), "lib"
    )
    repository.git("commit", "-q", "-m", "with a submodule")
    UserRepository(repository.directory / "inner").commit("inner", {"i": "1"})
    UserRepository(repository.directory / "fresh").write({"f": "1"})
    ours = projects(tmp_path)
    project = ours.open(str(repository.directory))
    assert names(ours.snapshot(project)) == {"a", ".gitmodules"}
    said = " ".join(project.notes)
    assert all(name in said for name in ("lib", "inner", "fresh"))


def test_names_that_need_quoting_are_names(tmp_path: Path) -> None:
    odd = (
        'two\nlines "q".txt',
        "back\\slash",
        " leading",
        "-rf",
        "tab\there",
        "ünï/çode",
        ":colon",
        "a\x01b",
    )
    repository = UserRepository(tmp_path / "repo")
    repository.commit("odd", dict.fromkeys(odd, "x"))
    (repository.directory / os.fsdecode(b"raw\xff")).write_text("x")
    ours = projects(tmp_path)
    seen = names(ours.snapshot(ours.open(str(repository.directory))))
    assert seen == {*odd, os.fsdecode(b"raw\xff")}


def test_a_directory_inside_a_repository_means_the_whole(tmp_path: Path) -> None:
    repository = UserRepository(tmp_path / "repo")
    repository.commit("one", {"src/a": "1", "b": "2"})
    project = projects(tmp_path).open(str(repository.directory / "src"))
    assert project.directory == str(repository.directory)
    assert any("as a whole" in note for note in project.notes)


def test_a_linked_working_directory_is_one_of_its_repository(tmp_path: Path) -> None:
    repository = UserRepository(tmp_path / "repo")
    repository.commit("one", {"a": "1"})
    repository.git("worktree", "add", "-q", str(tmp_path / "second"))
    project = projects(tmp_path).open(str(tmp_path / "second"))
    assert project.kind == "git"
    ours = projects(tmp_path)
    tree = ours.worktree(project, "r1", "aaaaaa", str(tmp_path / "w/project"))
    tree.prepare()
    Path(tree.directory, "a").write_text("2")
    tree.commit("change", "coder")
    assert ours.publish(project, tree.branch) == "xclaw/aaaaaa"
    assert repository.git("show", "xclaw/aaaaaa:a") == "2"


def test_xclaws_own_files_inside_a_project_are_nobodys_to_read(tmp_path: Path) -> None:
    repository = UserRepository(tmp_path / "repo")
    repository.commit("one", {"a": NUMBERS})
    ours = projects(repository.directory)
    ours.snapshot(ours.open(str(repository.directory)))
    assert names(ours.snapshot(ours.open(str(repository.directory)))) == {"a"}


def test_snapshots_that_nobody_uses_are_removed_when_another_is_made(tmp_path: Path) -> None:
    repository = UserRepository(tmp_path / "repo")
    repository.commit("one", {"a": "1"})
    first, second = projects(tmp_path), projects(tmp_path)
    old = Path(first.snapshot(first.open(str(repository.directory))))
    repository.write({"a": "2"})
    second.snapshot(second.open(str(repository.directory)))
    assert old.exists(), "the first still uses it"
    first.close()
    repository.write({"a": "3"})
    second.snapshot(second.open(str(repository.directory)))
    assert not old.exists()
