"""Which tasks stand alone (SPEC E6)."""

import json
import time
from pathlib import Path
from typing import cast

import pytest

from xclaw.patterns.selfcontained import check

LINES = (Path(__file__).parent / "data" / "selfcontained.jsonl").read_text("utf-8").splitlines()
LABELLED = [cast("dict[str, object]", json.loads(line)) for line in LINES]
GOOD = [str(item["task"]) for item in LABELLED if item["self_contained"]]
DANGLING = [str(item["task"]) for item in LABELLED if not item["self_contained"]]


@pytest.mark.parametrize("task", GOOD)
def test_a_task_that_stands_alone_is_never_turned_away(task: str) -> None:
    assert check(task) is None


@pytest.mark.parametrize("task", DANGLING)
def test_a_task_that_points_elsewhere_is_turned_away_with_the_reason(task: str) -> None:
    reason = check(task)
    assert reason is not None
    assert "cannot see" in reason


@pytest.mark.parametrize("task", DANGLING)
def test_what_is_handed_on_counts_as_content(task: str) -> None:
    assert check(task, has_inputs=True) is None
    assert check(f"{task}\n```python\nx = 1\n```") is None


def test_headers_of_the_runtime_are_no_content() -> None:
    headers = "[Task workspace: /w/agents/coder/a1b2c3]\n\n[Shared delivery dir: /w/shared/a1b2c3]\n\n"
    assert check(f"{headers}审查这段代码") is not None


@pytest.mark.parametrize(
    "task",
    [
        "please " * 80,
        "把它" + "翻译" * 280,
        "review the code " + "in english " * 50 + "x",
        "继续" * 290 + "x",
        "Review it for bugs" + " and bugs" * 60 + "!x",
        "这" * 590,
        "add " + "a " * 290,
    ],
)
def test_no_text_takes_long_to_judge(task: str) -> None:
    begin = time.perf_counter()
    check(task)
    assert time.perf_counter() - begin < 0.5
