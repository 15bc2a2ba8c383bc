"""What the interpreter of a script says is taken for what a stranger says."""

import time
from pathlib import Path

import pytest

from patterns.workflow_scene import Scene
from xclaw.contracts.errors import ToolFailed

CHECKED = (
    "import sys, json; order = json.loads(sys.stdin.readline());\n"
    "if order['only_check']: print(json.dumps({'checked': {'agents': ['coder'], 'most': 2}})); sys.exit()\n"
)


def says(code: str, scene: Scene, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """The report when the interpreter is this program instead of ours."""
    monkeypatch.setattr("xclaw.patterns.workflows.interpreter._START", CHECKED + code)
    return scene.run("1")


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("print('no json')", "no JSON"),
        ("print('[1]')", "no JSON"),
        ("print('{' * 100_000)", "no JSON"),
        (r"print('{\"done\": \"\\ud800\"}')", "no JSON"),
        ("print('{}')", "nobody understands"),
        ("print('{\"phase\": 1}')", "nobody understands"),
        ("print('x' * 10_000_000)", "at once"),
        ("pass", "ended with 0"),
        ("sys.exit(3)", "ended with 3"),
        ("import os; os.kill(os.getpid(), 11)", "signal 11"),
        ("print('{\"call\": 1}'); sys.stdout.flush(); input()", "ended with 0"),
        ('print(\'{"call": 1, "agent": 5, "task": [], "inputs": 7, "schema": "x"}\')', "ended with 0"),
        ('import time\nwhile True: print(\'{"log": "x"}\')', "said more than"),
    ],
)
def test_nonsense_is_a_failure_of_the_workflow(
    code: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = time.monotonic()
    record = says(code, Scene(tmp_path), monkeypatch)
    assert record["status"] == "error"
    assert reason in str(record["reason"]), record
    assert time.monotonic() - began < 30


def test_it_cannot_start_more_than_was_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "for n in range(500): print(json.dumps({'call': n, 'agent': 'coder', 'task': f'do {n}', 'inputs': [],"
        " 'schema': None}))\n"
        "sys.stdout.flush()\nfor n in range(500): sys.stdin.readline()\nprint(json.dumps({'done': 'all'}))"
    )
    scene = Scene(tmp_path)
    record = says(code, scene, monkeypatch)
    assert record["result"] == "all"
    assert len(scene.spawn.tasks) == record["agents_started"] == 2


def test_a_check_that_lies_still_meets_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "xclaw.patterns.workflows.interpreter._START",
        'print(\'{"checked": {"agents": [], "most": 100000}}\')',
    )
    with pytest.raises(ToolFailed, match="allows 64"):
        Scene(tmp_path).run("1")
