"""The examples do what their README says, on their scripts."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from harness import Seen, ask, settings_for

from xclaw.app import open_app
from xclaw.contracts.events import ArtifactDelivered, ChildSpawned, RunStarted, ToolCallEnded
from xclaw.settings import Overrides, load_settings

EXAMPLES = Path(__file__).parents[2] / "examples"


def play(name: str, home: Path) -> Seen:
    async def main() -> Seen:
        async with asyncio.timeout(30):
            settings = settings_for(home, f"script:{EXAMPLES / name / 'script.yaml'}")
            async with open_app(settings) as app:
                return await ask(app, (EXAMPLES / name / "request.txt").read_text("utf-8"))

    return asyncio.run(main())


def test_the_jwt_request_is_coded_reviewed_by_pointer_and_documented(tmp_path: Path) -> None:
    seen = play("jwt", tmp_path)
    assert seen.result.outcome == "success"
    assert [e.agent for e in seen.events(RunStarted)] == ["orchestrator", "coder", "reviewer", "writer"]
    files = {Path(e.pointer.path).name: e.pointer for e in seen.events(ArtifactDelivered)}
    assert set(files) == {"jwt.js", "jwt_documented.js"}
    reads = [e for e in seen.events(ToolCallEnded) if e.name == "view_file"]
    assert len(reads) == 2
    assert all("createHmac" in e.content for e in reads)
    tasks = [e.task for e in seen.events(ChildSpawned)]
    assert all("createHmac" not in task.text for task in tasks), "contents travelled, not pointers"
    assert [task.inputs for task in tasks[1:]] == [(files["jwt.js"],)] * 2


def test_redis_or_sqlite_is_debated_blind_with_a_vote_and_the_dissent_kept(tmp_path: Path) -> None:
    seen = play("redis_or_sqlite", tmp_path)
    assert seen.result.outcome == "success"
    [debate] = [e for e in seen.events(ToolCallEnded) if e.name == "debate"]
    assert [debate.content.index(f"[{name}]\n") for name in ("coder", "skeptic", "optimizer")] == sorted(
        debate.content.index(f"[{name}]\n") for name in ("coder", "skeptic", "optimizer")
    )
    assert debate.content.count("\n\n---\n\n") >= 2
    assert "Redis" in debate.content
    assert "SQLite" in debate.content


def test_an_article_goes_through_three_steps_each_fed_by_the_one_before(tmp_path: Path) -> None:
    seen = play("article", tmp_path)
    assert seen.result.outcome == "success"
    inputs = [e.input for e in seen.events(RunStarted)]
    assert "1. LLM agents need persistent memory" in inputs[2]
    assert "1. LLM Agent 需要持久化记忆" in inputs[3]
    assert not any("{{input}}" in text for text in inputs)


def test_an_agent_from_a_markdown_file_works_beside_the_built_in_ones(tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(EXAMPLES / "own_agent", project)

    async def main() -> Seen:
        settings = load_settings(
            cwd=project,
            env={"XCLAW_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)},
            overrides=Overrides(models=(f"script:{project / 'script.yaml'}",)),
        )
        async with asyncio.timeout(30), open_app(settings) as app:
            return await ask(app, (project / "request.txt").read_text("utf-8"))

    seen = asyncio.run(main())
    assert seen.result.outcome == "success"
    assert [e.agent for e in seen.events(RunStarted)] == ["orchestrator", "namer"]


@pytest.mark.parametrize("name", sorted(p.name for p in EXAMPLES.iterdir() if p.is_dir()))
def test_every_example_has_a_request_a_script_and_a_line_in_the_readme(name: str) -> None:
    assert (EXAMPLES / name / "request.txt").is_file()
    assert (EXAMPLES / name / "script.yaml").is_file()
    assert f"| `{name}` |" in (EXAMPLES / "README.md").read_text("utf-8")


def test_the_research_squad_writes_to_one_another_and_delivers_a_report() -> None:
    """G5."""
    command = [sys.executable, str(EXAMPLES / "research_squad.py")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "explorer to all: Facts" in ran.stdout
    assert "board: explorer has completed t1" in ran.stdout
    assert "# SQLite or JSON lines?" in ran.stdout


def test_the_review_workflow_reports_what_three_reviews_at_once_found(tmp_path: Path) -> None:
    model = f"script:{EXAMPLES / 'workflow_review_script.yaml'}"
    command = [sys.executable, "-m", "xclaw", "workflow", "run", str(EXAMPLES / "workflow_review.py")]

    def run(*options: str) -> str:
        done = subprocess.run(
            [*command, *options],
            env={**os.environ, "XCLAW_HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return done.stdout

    assert "at most 4 agents (counted in the script): reviewer, writer" in run("--dry-run")
    assert not (tmp_path / "workspace").exists()
    answer = json.loads(run("--model", model, "--yes", "--quiet"))
    assert set(answer["problems"]) == {"errors", "resources"}
    assert "with block" in answer["report"]["review"]
