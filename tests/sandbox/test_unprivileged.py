"""Where the tests run as root, everything is run once more as a user who is nobody (SPEC F3)."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOBODY = 65_533
LEAST = 80
"""Results that there must be."""


def interpreter() -> str | None:
    """One that another user reaches, too."""
    for path in (sys.executable, "/usr/bin/python3"):
        line = [path, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
        try:
            done = subprocess.run(line, user=NOBODY, group=NOBODY, extra_groups=[], cwd="/", check=False)
        except OSError:
            continue
        if done.returncode == 0:
            return path
    return None


@pytest.mark.skipif(os.geteuid() != 0, reason="the tests run as an ordinary user anyway")
@pytest.mark.timeout(400)
def test_an_ordinary_user_has_the_same_sandbox() -> None:
    """SPEC F3: without root, without control groups."""
    python = interpreter()
    if python is None:
        pytest.skip("no Python from 3.11 that another user can start")
    reachable = Path(tempfile.mkdtemp(prefix="xclaw-unprivileged-"))  # pytest's own are its user's alone
    reachable.chmod(0o755)
    try:
        for name in ("src/xclaw", "tests/sandbox"):
            shutil.copytree(ROOT / name, reachable / name, ignore=shutil.ignore_patterns("__pycache__"))
        done = subprocess.run(
            [python, str(reachable / "tests/sandbox/unprivileged.py")],
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": f"{reachable}/src:{reachable}/tests"},
            cwd="/",
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        shutil.rmtree(reachable, ignore_errors=True)
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert {result["name"]: result["failure"] for result in results if result["failure"]} == {}
    assert {result["uid"] for result in results} == {NOBODY}
    assert len(results) >= LEAST
