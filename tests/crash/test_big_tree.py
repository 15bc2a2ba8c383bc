"""A tree of 50 agents of every kind, killed and cancelled at random instants (SPEC G1, K3, K6).

A few of what `python -m tests.crash.big_tree` does hundreds of times: docs/reliability.md says with what result.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SEED = os.environ.get("XCLAW_TEST_SEED", "50")


def study(*options: str) -> dict[str, Any]:
    """What happened. The seed is in it; a fault comes with the home of its tree, which is kept."""
    command = [sys.executable, "-m", "tests.crash.big_tree", "--seed", SEED, *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr[-4_000:]
    said = json.loads(done.stdout)
    assert (done.returncode, said["faults"]) == (0, []), f"{said}\n{done.stderr[-4_000:]}"
    return said


@pytest.mark.timeout(600)
def test_a_big_tree_whose_processes_are_killed_ends_with_nothing_lost_doubled_or_left() -> None:
    said = study("--kills", "10", "--again", "0.9")
    assert sum(said["kills"].values()) == 10
    assert said["ends"]["success"] > 50


@pytest.mark.timeout(600)
def test_a_big_tree_that_is_cancelled_has_ended_within_five_seconds() -> None:
    said = study("--cancels", "4")
    assert said["cancels"] == {"in process": 2, "from another process": 2}
    assert 0 < said["slowest_confirm_s"] < 5
    assert said["ends"]["cancelled"] > 4
