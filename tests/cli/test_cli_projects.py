"""`--project` and `xclaw worktrees`, as a user meets them (SPEC F4)."""

import json
import os
import subprocess
import sys
from pathlib import Path

from workspaces.projects.project_play import UserRepository

EXAMPLE = Path(__file__).parents[2] / "examples/project"


class Shell:
    """A user's terminal: a home, a project, a workspace."""

    def __init__(self, tmp_path: Path) -> None:
        self.repository = UserRepository(tmp_path / "repo")
        self.repository.commit("one", {"read.me": "hello\n", ".env": "KEY=1\n"})
        self.home = tmp_path / "home"
        self.home.mkdir()
        (self.home / "config.toml").write_text("[project]\ndurable = false\n")
        self.workspace = tmp_path / "workspace"

    def xclaw(self, *arguments: str, typed: str = "") -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "XCLAW_HOME": str(self.home)}
        return subprocess.run(
            [sys.executable, "-m", "xclaw", *arguments, "--workspace", str(self.workspace)],
            env=environment,
            cwd=self.repository.directory,
            input=typed,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def run(self, *more: str) -> subprocess.CompletedProcess[str]:
        script = f"script:{EXAMPLE}/script.yaml"
        return self.xclaw("run", "--model", script, "--project", ".", *more, "Greet.")


def test_a_run_ends_by_saying_how_its_branch_is_taken(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    done = shell.run()
    assert done.returncode == 0, done.stderr
    (branch,) = shell.repository.git("branch", "--list", "xclaw/*", "--format=%(refname:short)").split()
    assert f"branch {branch} of {shell.repository.directory}" in done.stderr
    assert "xclaw:   greet(name) (greeting.py)\n" in done.stderr, "an id would be none of the user's"
    assert "not seen by workers: left out (may hold secrets): .env" in done.stderr
    take = next(line for line in done.stderr.splitlines() if "take them: " in line).partition("take them: ")[
        2
    ]
    subprocess.run(take, shell=True, check=True, env={**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"})
    assert (shell.repository.directory / "greeting.py").exists()


def test_a_chat_says_how_each_branch_is_taken_and_once_what_was_left_out(tmp_path: Path) -> None:
    """The gateway does the work; the client has only its events."""
    shell = Shell(tmp_path)
    script = f"script:{EXAMPLE}/script.yaml"
    done = shell.xclaw("chat", "--model", script, "--project", ".", typed="Greet.\nOnce more.\n")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("not seen by workers: left out (may hold secrets): .env") == 1
    branches = shell.repository.git("branch", "--list", "xclaw/*", "--format=%(refname:short)").split()
    assert len(branches) == 2
    directory = shell.repository.directory
    for branch in branches:
        assert f"branch {branch} of {directory}, your files are as they were\n" in done.stderr
        assert f"take them: git -C {directory} merge {branch}\n" in done.stderr
    assert done.stderr.count(f"or as they are: git -C {directory} apply ") == 2


def test_a_directory_inside_a_repository_is_said_to_mean_the_whole_of_it(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    inside = shell.repository.directory / "inside"
    inside.mkdir()
    script = f"script:{EXAMPLE}/script.yaml"
    done = shell.xclaw("run", "--model", script, "--project", "inside", "Greet.")
    told = f"xclaw: {inside} is inside {shell.repository.directory}, which workers see as a whole"
    assert told in done.stderr.splitlines()


def test_without_git_trees_are_not_said_to_be_none(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.run()
    (shell.home / "config.toml").write_text('[project]\ngit = "no-such-git"\n')
    listed = shell.xclaw("worktrees")
    assert (listed.returncode, listed.stdout) == (2, "")
    assert "no-such-git is not there" in listed.stderr


def test_json_names_the_branch(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    done = shell.run("-o", "json")
    result = json.loads(done.stdout)
    assert shell.repository.git("show", f"{result['branch']}:greeting.py").startswith("def greet")


def test_trees_are_listed_shown_and_removed(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    (shell.home / "config.toml").write_text("[project]\ndurable = false\nkeep = true\n")
    shell.run()
    listed = json.loads(shell.xclaw("worktrees", "--json").stdout)["worktrees"]
    assert sorted(commit["files"] for tree in listed for commit in tree["commits"]) == [
        ["GREETING.md"],
        ["greeting.py"],
    ]
    tree = listed[0]
    assert tree["commits"][0]["message"] in shell.xclaw("worktrees", "show", tree["branch"]).stdout
    assert shell.xclaw("worktrees", "patch", tree["run_id"]).stdout.startswith("diff --git")
    assert "branch xclaw/" in shell.xclaw("worktrees", "publish", tree["branch"]).stdout
    assert shell.repository.git("rev-parse", tree["branch"])
    Path(tree["directory"], "later.txt").write_text("not committed")
    refused = shell.xclaw("worktrees", "remove", tree["branch"])
    assert refused.returncode == 2
    assert "--force" in refused.stderr
    assert shell.xclaw("worktrees", "remove", tree["branch"], "--force").returncode == 0
    assert not Path(tree["directory"]).exists()
    unknown = shell.xclaw("worktrees", "show", "xclaw/nobody")
    assert unknown.returncode == 2
    assert "no worker's tree has the branch or the run 'xclaw/nobody'" in unknown.stderr
    several = shell.xclaw("worktrees", "show", "c")
    assert (several.returncode, "'c' means 2 trees" in several.stderr) == (2, True)


def test_a_tree_is_named_by_the_beginning_of_its_run_or_its_branch_without_the_folder(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.run()
    tree = json.loads(shell.xclaw("worktrees", "--json").stdout)["worktrees"][0]
    for name in (tree["branch"], tree["branch"].removeprefix("xclaw/"), tree["run_id"][:9]):
        shown = shell.xclaw("worktrees", "show", name)
        assert shown.stdout.startswith(f"{tree['branch']} of "), shown.stderr


def test_a_project_that_is_not_there_is_a_clear_error(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    script = f"script:{EXAMPLE}/script.yaml"
    done = shell.xclaw("run", "--model", script, "--project", "nowhere", "Greet.")
    assert done.returncode == 2
    assert "there is no such directory" in done.stderr
    done = shell.xclaw("run", "--model", script, "--project", "read.me", "Greet.")
    assert done.returncode == 2
    assert "read.me': that is no directory" in done.stderr


BINARY = """
- agent: orchestrator
  replies:
    - calls: [{name: delegate, arguments: {agent: coder, task: "Make a picture in the project's top directory."}}]
    - text: "Done."
- agent: coder
  replies:
    - calls: [{name: shell, arguments: {command: "cd project && rm old.bin && printf '\\\\0\\\\1' > new.bin"}}]
    - text: {status: success, summary_data: {files: [new.bin]}, artifact_pointers: {}}
"""


def test_changes_to_a_folder_are_taken_with_the_command_that_is_shown(tmp_path: Path) -> None:
    """Binary files too, and below a repository that the folder is no part of."""
    shell = Shell(tmp_path)
    folder = tmp_path / "above/a folder"
    folder.mkdir(parents=True)
    (folder / "old.bin").write_bytes(b"\0old")
    subprocess.run(["git", "init", "-q", "--object-format=sha256", folder.parent], check=True)
    (tmp_path / "binary.yaml").write_text(BINARY)
    script = f"script:{tmp_path}/binary.yaml"
    done = shell.xclaw("run", "--allow-shell", "--model", script, "--project", str(folder), "Draw.")
    assert done.returncode == 0, done.stderr
    take = next(line for line in done.stderr.splitlines() if "take them: " in line).partition("take them: ")
    subprocess.run(take[2], shell=True, check=True, env={**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"})
    assert [(path.name, path.read_bytes()) for path in folder.iterdir()] == [("new.bin", b"\0\1")]
    run = json.loads(shell.xclaw("worktrees", "--json").stdout)["worktrees"][0]["run_id"]
    published = shell.xclaw("worktrees", "publish", run)
    assert published.returncode == 2
    assert f"take the patch, xclaw worktrees patch {run}" in published.stderr


def test_changes_beside_uncommitted_ones_are_taken_with_the_command_that_is_shown_first(
    tmp_path: Path,
) -> None:
    shell = Shell(tmp_path)
    shell.repository.write({"read.me": "hello, not committed\n"})
    done = shell.run()
    lines = [line for line in done.stderr.splitlines() if "uncommitted changes" in line]
    assert lines[0].startswith("xclaw: take them beside your uncommitted changes: git -C ")
    take = lines[0].partition("changes: ")[2]
    subprocess.run(take, shell=True, check=True, env={**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"})
    assert (shell.repository.directory / "greeting.py").exists()
    assert (shell.repository.directory / "read.me").read_text() == "hello, not committed\n"


CONFLICT = """
- agent: orchestrator
  replies:
    - calls:
        - {name: delegate, arguments: {agent: coder, task: "Greet in read.me, in the project's top directory."}}
        - {name: delegate, arguments: {agent: writer, task: "Greet in read.me, in the project's top directory."}}
    - text: "Done."
- agent: coder
  replies:
    - calls: [{name: write_file, arguments: {path: project/read.me, content: "hello from coder"}}]
    - text: {status: success, summary_data: {files: [read.me]}, artifact_pointers: {}}
- agent: writer
  replies:
    - calls: [{name: write_file, arguments: {path: project/read.me, content: "hello from writer"}}]
    - text: {status: success, summary_data: {files: [read.me]}, artifact_pointers: {}}
"""


def test_what_is_not_in_the_branch_is_said_at_the_end(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    (tmp_path / "conflict.yaml").write_text(CONFLICT)
    done = shell.xclaw("run", "--model", f"script:{tmp_path}/conflict.yaml", "--project", ".", "Greet.")
    assert done.returncode == 0, done.stderr
    assert "xclaw: not in it: xclaw/" in done.stderr
    assert "conflicts with what was merged, in read.me; it was left out" in done.stderr
