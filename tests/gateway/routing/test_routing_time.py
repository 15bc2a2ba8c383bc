"""A megabyte of anything is routed at once."""

import time

import pytest

from gateway.routing.routing_agents import agent_of

SIZE = 1_000_000
UNITS = [
    "a", " ", "\n", "@", "的", "审查", ",", "。", "/", ".", "_", "\u200b", "ﷺ", "😀", "“", '"a ', "'a ", "```", "```a", "```\n", "~~~\n",
    "` `` ", "review ", "and ", "quickly ", "don't ", "the read and write ", "帮我审查,然后写文档、", "please review and then write a README, ",
    "@coder ", "a@b.", "aB", "a(", "<a", "1. ", "    x\n", "a=b\n", "diff --git a b\n+x\n", "SELECT x ", "Error", "Traceback (most recent call last)\n",
    "```\nabc\n```js x\n", "review\n", "审查。", "写一个的", "把", "\ufffc\ufffb", "\x00", "e\u0301", "\u0301\u0316", "->", "https://", "a-b-", "(((", "- write\n",
    "审查后", "后", "改得更", "把它改快一点", "I need it reviewed ", "this needs ", "can this be ", "① 审查", "once you have ", "review needed ", "revew ", "O(n ",
]  # fmt: skip
LIMIT_S = 0.2


@pytest.mark.parametrize("unit", UNITS, ids=repr)
def test_a_megabyte_takes_less_than_a_fifth_of_a_second(unit: str) -> None:
    text = unit * (SIZE // len(unit))
    agent_of("warm up")
    # Processor time, the best of three: what else the machine does is not the router's.
    took = min(_seconds(text) for _ in range(3))
    assert took < LIMIT_S


def _seconds(text: str) -> float:
    begun = time.process_time()
    agent_of(text)
    return time.process_time() - begun


def test_a_request_at_either_end_of_a_megabyte_of_code_is_found() -> None:
    code = "```python\n" + "create(write(build(x)))\n" * 40_000 + "```\n"
    assert agent_of(f"Review this:\n{code}") == "reviewer"
    assert agent_of(f"{code}make this function faster") == "optimizer"
    assert (
        agent_of(f"{'def f(x): return {x};' + chr(10)}{'f(1);' + chr(10)}" * 40_000 + "审查这段代码")
        == "reviewer"
    )
