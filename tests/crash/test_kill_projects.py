"""`kill -9` while two workers change one repository of a user's, then resume: both results, history intact (SPEC F4).

The program that is called as git is a script that kills xclaw before or after a chosen call of git, so that a crash
falls between any two steps: before and after a commit, between commit and merge, before and after the branch is
handed over.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

from ready_command import run_ready
from workspaces.projects.project_play import NUMBERS, UserRepository

KILLER = """#!/bin/sh
# Kills its parent at one call: {directory}/kill holds "COMMAND OCCURRENCE before|after".
real=$(command -v git)
for word in "$@"; do
  case "$word" in
    fast-import|merge-tree|commit-tree|update-ref|write-tree|pack-objects|unpack-objects|ls-files|read-tree)
      command=$word; break ;;
  esac
done
if [ -n "$command" ] && [ -f {directory}/kill ]; then
  read wanted number when < {directory}/kill
  if [ "$command" = "$wanted" ]; then
    echo x >> {directory}/count
    if [ "$(wc -l < {directory}/count)" -eq "$number" ]; then
      rm -f {directory}/kill {directory}/count
      [ "$when" = after ] && "$real" "$@"
      touch {directory}/killed
      kill -9 $PPID
      exit 1
    fi
  fi
fi
exec "$real" "$@"
"""
TOP = NUMBERS.replace("1\n2\n", "one\n2\n", 1)
END = NUMBERS.replace("30\n", "thirty\n")


def _worker(agent: str, text: str, own: str) -> dict[str, object]:
    def write(path: str, content: str) -> dict[str, object]:
        return {"name": "write_file", "arguments": {"path": f"project/{path}", "content": content}}

    result = {"status": "success", "summary_data": {"did": own}, "artifact_pointers": {}}
    return {
        "agent": agent,
        "replies": [
            {"calls": [write("numbers.txt", text)]},
            {"calls": [{"name": "commit", "arguments": {"message": f"Numbers by {agent}"}}]},
            {"calls": [write(own, f"by {agent}\n")]},
            {"text": json.dumps(result)},
        ],
    }


SCRIPT = [
    {
        "agent": "orchestrator",
        "replies": [
            {
                "calls": [
                    {
                        "name": "delegate",
                        "arguments": {"agent": name, "task": f"Write the {name} part of numbers.txt."},
                    }
                    for name in ("coder", "writer")
                ]
            },
            {"text": "Both are done."},
        ],
    },
    _worker("coder", TOP, "coder.txt"),
    _worker("writer", END, "writer.txt"),
]


class Scene:
    def __init__(self, tmp_path: Path) -> None:
        self.repository = UserRepository(tmp_path / "repo")
        self.repository.commit("one", {"numbers.txt": NUMBERS, "other.txt": "other\n", ".env": "KEY=1"})
        self.repository.write({"not-committed.txt": "mine"})
        self.control = tmp_path / "control"
        self.control.mkdir()
        git = self.control / "git"
        git.write_text(KILLER.format(directory=self.control))
        git.chmod(0o755)
        self.home = tmp_path / "home"
        self.home.mkdir()
        (self.home / "config.toml").write_text(f'[project]\ngit = "{git}"\ndurable = false\n')
        self.script = tmp_path / "script.json"
        self.script.write_text(json.dumps(SCRIPT))
        self.workspace = tmp_path / "workspace"

    def xclaw(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "XCLAW_HOME": str(self.home), "PYTHONFAULTHANDLER": "1"}
        arguments = (*arguments, "--workspace", str(self.workspace))
        done = run_ready(arguments, stdin=b"", directory=Path.cwd(), env=environment, timeout_s=100)
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
        )

    def run(self) -> subprocess.CompletedProcess[str]:
        return self.xclaw(
            "run",
            "-m",
            f"script:{self.script}",
            "--project",
            str(self.repository.directory),
            "Change the numbers.",
        )

    def check(self) -> None:
        git = self.repository.git
        (branch,) = git("branch", "--list", "xclaw/*", "--format=%(refname:short)").split()
        numbers = git("show", f"{branch}:numbers.txt")
        assert numbers.startswith("one\n"), "the first worker's change of the file that both rewrote"
        assert numbers.endswith("thirty\n"), "the second's"
        assert git("show", f"{branch}:coder.txt") == "by coder\n"
        assert git("show", f"{branch}:writer.txt") == "by writer\n"
        assert git("show", f"{branch}:.env") == "KEY=1", "what workers were not shown stays as it was"
        authors = git("log", "--no-merges", "--format=%an: %s", f"main..{branch}").splitlines()
        assert sorted(line for line in authors if "Numbers" in line) == [
            "coder: Numbers by coder",
            "writer: Numbers by writer",
        ], "each commit once"
        assert git("merge-base", "main", branch).strip() == git("rev-parse", "main").strip()
        git("fsck", "--strict", "--no-dangling")


POINTS = (
    *("fast-import 1 before", "fast-import 1 after", "fast-import 2 before", "fast-import 2 after"),
    *("fast-import 3 after", "fast-import 5 before", "fast-import 5 after", "merge-tree 1 before"),
    *("merge-tree 1 after", "commit-tree 2 after", "update-ref 4 before", "update-ref 6 before"),
    *("write-tree 2 after", "pack-objects 1 before", "unpack-objects 1 before", "unpack-objects 1 after"),
)


def test_without_a_crash_both_results_are_there(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    before = scene.repository.fingerprint()
    done = scene.run()
    assert done.returncode == 0, done.stderr
    scene.check()
    assert scene.repository.fingerprint() == before


@pytest.mark.parametrize("point", POINTS)
def test_a_crash_at_any_step_loses_nothing(tmp_path: Path, point: str) -> None:
    scene = Scene(tmp_path)
    before = scene.repository.fingerprint()
    (scene.control / "kill").write_text(f"{point}\n")
    killed = scene.run()
    assert (scene.control / "killed").exists(), f"there was no such call: {killed.stderr[-500:]}"
    assert killed.returncode == -9
    resumed = scene.xclaw("resume")
    if "nothing to resume" in resumed.stderr + resumed.stdout or point.startswith("fast-import 1"):
        resumed = scene.run()  # it was killed before there was a run
    assert resumed.returncode == 0, resumed.stderr
    scene.check()
    assert scene.repository.fingerprint() == before
