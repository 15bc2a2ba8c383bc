"""When handing out work looks wasteful."""

import pytest

from xclaw.patterns.fanout import hint


@pytest.mark.parametrize(
    ("request_text", "tasks"),
    [
        ("What is the capital of France?", ["What is the capital of France?"]),
        ("17 * 23", ["Compute 17 * 23"]),
        ("Translate 'good morning' into German", ["Translate the words 'good morning' into German"]),
        ("什么是幂等性？", ["请解释：什么是幂等性？"]),
        ("你好", ["回复用户：你好"]),
        (
            "Build and review a parser for our config files.",
            ["Write the parser", "Review the output of the first task"],
        ),
        ("实现并审查解析器，然后写文档。", ["实现解析器", "审查第一个任务的结果"]),
    ],
)
def test_small_or_sequential_work_gets_a_hint(request_text: str, tasks: list[str]) -> None:
    assert hint(request_text, tasks) is not None


@pytest.mark.parametrize(
    ("request_text", "tasks"),
    [
        ("Write a JWT module, review it and document it.", ["Write a JWT module with sign and verify"]),
        ("What is wrong in src/app.py?", ["Find what is wrong in src/app.py"]),
        ("Compare three products", ["Research product A", "Research product B", "Research product C"]),
        ("实现一个 LRU 缓存", ["实现一个 LRU 缓存"]),
        (
            "What is the best database for us?\n" + "We have these numbers: " * 20,
            ["What is the best database?"],
        ),
        ("", []),
    ],
)
def test_other_work_gets_none(request_text: str, tasks: list[str]) -> None:
    assert hint(request_text, tasks) is None
