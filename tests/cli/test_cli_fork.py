"""`xclaw fork`: the real command on a real script."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from xclaw_command import Xclaw

SCRIPT = """
import sys
import xclaw.script as xclaw

xclaw.say(f"asked: {xclaw.task()}")
answer = xclaw.ask("What is the answer?")
xclaw.deliver("answer.md", answer)
xclaw.finish({"arguments": sys.argv[1:], "answer": answer}, f"It is {answer}.")
"""
RULES = [{"agent": "script-mine", "replies": [{"text": "forty-two"}]}]


def scene(directory: Path, script: str = SCRIPT) -> tuple[Xclaw, str, str]:
    file, model = directory / "mine.py", directory / "model.yaml"
    file.write_text(script, "utf-8")
    model.write_text(yaml.safe_dump(RULES), "utf-8")
    return Xclaw(directory), str(file), f"script:{model}"


def test_a_script_is_a_run_and_what_follows_its_name_is_its_own(tmp_path: Path) -> None:
    """G3, K5: `--mode debug` reaches the script; its model call and artifact are in the trace."""
    xclaw, file, model = scene(tmp_path)
    done = xclaw("fork", "--model", model, "--task", "find it", file, "--mode", "debug", "-o", "json")
    assert done.code == 0, done.err
    assert "asked: find it" in done.out
    assert "It is forty-two." in done.out
    trace = xclaw("trace", "last")
    assert "script-mine" in trace.out
    assert "1 model calls" in trace.out
    tree = xclaw("fork", "--model", model, "--output-format", "json", file, "--mode", "debug")
    result = json.loads(tree.out)
    assert result["summary_data"] == {"arguments": ["--mode", "debug"], "answer": "forty-two"}
    assert Path(result["artifacts"][0]["path"]).read_text() == "forty-two"


@pytest.mark.parametrize(
    ("script", "code", "said"),
    [
        ("raise SystemExit(3)", 1, "exit code 3"),
        ("import xclaw.script as x; x.fail('dry land')", 1, "dry land"),
        ("1 / 0", 1, "ZeroDivisionError"),
    ],
)
def test_a_script_that_fails_fails_the_command(tmp_path: Path, script: str, code: int, said: str) -> None:
    xclaw, file, model = scene(tmp_path, script)
    done = xclaw("fork", "--model", model, file)
    assert done.code == code
    assert said in done.err


def test_a_script_that_is_not_there_is_wrong_use(tmp_path: Path) -> None:
    xclaw, file, model = scene(tmp_path)
    done = xclaw("fork", "--model", model, f"{file}x")
    assert done.code == 2
    assert "there is no script" in done.err


def test_a_script_run_by_hand_says_how_to_run_it(tmp_path: Path) -> None:
    _, file, _ = scene(tmp_path)
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "xclaw fork SCRIPT" in done.stderr


def test_the_example_counts_and_asks(tmp_path: Path) -> None:
    examples = Path(__file__).parents[2] / "examples"
    xclaw, _, _ = scene(tmp_path)
    script, folder = str(examples / "forked_analysis.py"), str(examples.parent / "docs")
    model = f"script:{examples / 'forked_analysis_script.yaml'}"
    done = xclaw("fork", "--model", model, "--output-format", "json", script, folder, "--mode", "debug")
    assert done.code == 0, done.err
    result = json.loads(done.out)
    assert result["summary_data"]["subject"] == "a runtime for agents"
    assert result["summary_data"]["words"] > 1_000
    assert "| word | count |" in Path(result["artifacts"][0]["path"]).read_text()
