"""`xclaw workflow run`: the real command on a real file."""

import json
from pathlib import Path

import yaml
from xclaw_command import Xclaw

CODER: list[object] = [
    {
        "agent": "coder",
        "replies": [
            {"text": '{"status": "success", "summary_data": {"said": "x"}, "artifact_pointers": {}}'}
        ],
    }
]
SCRIPT = (
    "phase('write')\nparallel([agent('coder', f'Write about {t}.')['said'] for t in ['alpha', 'beta']])\n"
)


def scene(directory: Path, script: str = SCRIPT) -> tuple[Xclaw, str, str]:
    file, model = directory / "wf.py", directory / "model.yaml"
    file.write_text(script, "utf-8")
    model.write_text(yaml.safe_dump(CODER), "utf-8")
    return Xclaw(directory), str(file), f"script:{model}"


def test_a_dry_run_tells_the_quote_and_starts_nothing(tmp_path: Path) -> None:
    xclaw, file, _ = scene(tmp_path)
    told = xclaw("workflow", "run", file, "--dry-run", "--max-usd", "0.5", "--budget-tokens", "9000")
    assert told.code == 0
    assert told.out.startswith(
        "it starts at most 2 agents (counted in the script): coder; at most $0.5 together"
    )
    assert "(the run has left: 9,000 tokens)" in told.out
    assert "no runs yet" in xclaw("trace", "last").err


def test_a_script_that_cannot_run_is_wrong_use(tmp_path: Path) -> None:
    xclaw, file, _ = scene(tmp_path, "import os\n")
    told = xclaw("workflow", "run", file, "--dry-run")
    assert (told.code, told.out) == (2, "")
    assert "line 1: os cannot be imported" in told.err
    assert xclaw("workflow", "run", str(tmp_path / "none.py"), "--dry-run").code == 2


def test_without_a_terminal_and_without_yes_nothing_starts(tmp_path: Path) -> None:
    """What is said names the tool, not a rule with the whole script."""
    xclaw, file, model = scene(tmp_path, f"# {'about ' * 40}\n{SCRIPT}")
    told = xclaw("workflow", "run", file, "-m", model)
    assert told.code == 1
    assert "needs the user's permission" in told.err
    assert "a rule such as workflow in `permissions.allow` or `xclaw workflow run --yes`." in told.err
    assert "could not do. Details: xclaw trace r" in told.err
    assert "coder" not in told.out


def test_the_answer_goes_to_standard_output_once_and_an_edited_file_goes_on(tmp_path: Path) -> None:
    xclaw, file, model = scene(tmp_path)
    first = xclaw("workflow", "run", file, "-m", model, "--yes", "-q")
    assert (first.code, json.loads(first.out)) == (0, ["x", "x"])
    assert "workflow phase: write" in first.err
    Path(file).write_text(SCRIPT.replace("beta", "gamma"), "utf-8")
    second = xclaw("workflow", "run", file, "-m", model, "--yes", "-q", "--resume", "last")
    assert (second.code, json.loads(second.out)) == (0, ["x", "x"])
    assert "taken from the earlier run: coder: Write about alpha." in second.err
    assert second.err.count("[coder] working") == 1


def test_more_than_was_quoted_fails_the_run(tmp_path: Path) -> None:
    xclaw, file, model = scene(tmp_path)
    told = xclaw("workflow", "run", file, "-m", model, "--yes", "--max-agents", "1")
    assert told.code == 1
    assert "1 agents were quoted" in told.err
