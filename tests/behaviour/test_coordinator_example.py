"""The monorepo is refactored: a real git repository, real tests, one round that fails and one that passes."""

import os
import subprocess
import sys
from pathlib import Path

import yaml

EXAMPLE = Path(__file__).parents[2] / "examples" / "monorepo_refactor.py"


def play(tmp_path: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLE), *arguments],
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path), "XCLAW_HOME": str(tmp_path / "unused")},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_the_monorepo_is_refactored_and_its_tests_decide(tmp_path: Path) -> None:
    """H1: the first verification fails for a real reason, the second passes."""
    place = tmp_path / "place"
    done = play(tmp_path, "--keep", str(place))
    assert done.returncode == 0, done.stdout + done.stderr
    verdicts = [line.split(";")[0] for line in done.stdout.splitlines() if line.startswith("verification ")]
    assert [v for v in verdicts if "round" not in v] == ["verification failed", "verification passed"]
    repo = place / "monorepo"
    branch = subprocess.run(
        ["git", "-C", str(repo), "log", "--format=%s", "one-slugify"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert branch.stdout.splitlines() == ["One slugify", "Three packages"]
    sources = {file.name: file.read_text("utf-8") for file in repo.rglob("packages/*/*.py")}
    assert [name for name, text in sources.items() if "def slugify" in text] == ["textkit.py"]


def test_the_example_fails_when_nothing_was_verified(tmp_path: Path) -> None:
    script = tmp_path / "claims.yaml"
    script.write_text(yaml.safe_dump([{"agent": "coordinator", "replies": [{"text": "All tests pass."}]}]))
    done = play(tmp_path, "--model", f"script:{script}")
    assert done.returncode == 1, done.stdout
    assert "completed_unverified" in done.stdout
