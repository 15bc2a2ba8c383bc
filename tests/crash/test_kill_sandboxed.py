"""`kill -9` of xclaw in the middle of a command in a sandbox, then resume (SPEC F3, K6)."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import yaml

from behaviour.full import call, handing_out, keepers, shell, worker
from sandbox.traces_of_sandboxes import Made, left_of, made_of
from xclaw.spawn.forked_keeper import descendants

TASK = "Write the module app.py with the constant X and deliver it."
SCRIPT = [
    handing_out(("coder", TASK)),
    worker(
        "coder",
        shell("echo 'X = 1' > app.py; if [ ! -e begun ]; then touch begun; setsid sleep 600 & sleep 600; fi"),
        call("deliver", path="app.py", from_file="app.py"),
    ),
]


@pytest.mark.parametrize("isolation", ["local", "forked"])
def test_nothing_of_a_sandbox_outlives_xclaw_and_the_run_goes_on_in_another(
    tmp_path: Path, isolation: str
) -> None:
    """F3, K6: the workspace is as it was, and the interrupted command is not run again by itself."""
    (tmp_path / "script.yaml").write_text(yaml.safe_dump(SCRIPT))
    if isolation == "forked":
        agents = tmp_path / "home" / "agents"
        agents.mkdir(parents=True)
        (agents / "coder.md").write_text(
            "---\nname: coder\ndescription: Writes.\nisolation: forked\n---\nYou write modules.\n"
        )
    sandboxed = ("--mode", "full", "--sandbox", "bubblewrap")
    with _xclaw(tmp_path, "run", "go", *sandboxed, "-m", "script:script.yaml") as running:
        agents = tmp_path / "home" / "workspace" / "agents"
        _until(lambda: bool(list(agents.glob("coder/*/begun"))))
        made = [made_of(pid) for above in (running.pid, *descendants(running.pid)) for pid in keepers(above)]
        running.kill()
        running.communicate()
    assert made
    _until_no_process_is_left(made)
    with _xclaw(tmp_path, "resume", *sandboxed, "-o", "json") as resumed:
        out, err = resumed.communicate(timeout=60)
    assert resumed.returncode == 0, err
    assert b"app.py" in out
    (artifact,) = (tmp_path / "home" / "workspace" / "shared").glob("*/app.py")
    assert artifact.read_text() == "X = 1\n"
    assert left_of(made) == []


def _until_no_process_is_left(made: Sequence[Made]) -> None:
    """What killed processes leave on the disk is removed by the next start."""
    _until(lambda: not [line for line in left_of(made) if not line.startswith("/")])


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        os.sched_yield()


def _xclaw(home: Path, *arguments: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "xclaw", *arguments],
        cwd=home,
        env={"PATH": os.environ["PATH"], "HOME": str(home), "XCLAW_HOME": str(home / "home")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
