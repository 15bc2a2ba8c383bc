"""Verbs in other forms and places than in an order, and what is to be done first."""

import pytest

from gateway.routing.routing_agents import agent_of


@pytest.mark.parametrize(
    ("text", "agent"),
    [
        ("I'd like this code reviewed", "reviewer"),
        ("I need the README updated", "writer"),
        ("Can you get this query optimized?", "optimizer"),
        ("I need this loop sped up", "optimizer"),
        ("I need the bug fixed", "orchestrator"),
        ("We need a parser written", "orchestrator"),
        ("I'd like the docs translated", "orchestrator"),
        ("I need my car washed", "orchestrator"),
        ("Documentation needed for utils.py", "writer"),
        ("Is documentation needed for a visa?", "orchestrator"),
        ("A README for this project please", "writer"),
        ("The docs should be updated", "writer"),
        ("Could this class be documented?", "writer"),
        ("This function needs a docstring", "writer"),
        ("my patch needs reviewing", "reviewer"),
        ("This module needs tests", "orchestrator"),
        ("Can the comments be removed?", "orchestrator"),
        ("My plant needs water", "orchestrator"),
        ("users should be able to review products", "orchestrator"),
        ("我要一份部署手册", "writer"),
        ("我要写一个爬虫", "orchestrator"),
        ("我要删除文档", "orchestrator"),
    ],
)
def test_a_verb_behind_what_it_is_about_asks_like_one_before_it(text: str, agent: str) -> None:
    """SPEC B2, B3."""
    assert agent_of(text) == agent


@pytest.mark.parametrize(
    ("text", "agent"),
    [
        ("Once you have reviewed the code, write docs", "orchestrator"),
        ("After reviewing the code, write docs", "orchestrator"),
        ("Optimize the loop after you've documented it", "orchestrator"),
        ("After I write the code, review it", "reviewer"),
        ("After the upgrade, why is this query so slow?", "optimizer"),
        ("审查代码后修复问题", "orchestrator"),
        ("优化代码后写文档", "orchestrator"),
        ("写完代码后帮我审查", "reviewer"),
        ("升级后接口变慢了，帮我看看", "optimizer"),
        ("审查后台代码", "reviewer"),
    ],
)
def test_what_is_to_be_done_first_is_a_step_and_what_the_user_did_is_none(text: str, agent: str) -> None:
    """SPEC B3."""
    assert agent_of(text) == agent


@pytest.mark.parametrize(
    ("text", "agent"),
    [
        ("Turn my notes into a README", "writer"),
        ("把这些笔记整理成 README", "writer"),
        ("Explain this function in comments", "writer"),
        ("Turn this script into a documentation generator", "orchestrator"),
        ("Convert the README into HTML", "orchestrator"),
        ("Explain the code in English", "orchestrator"),
    ],
)
def test_what_something_is_turned_into_is_the_object(text: str, agent: str) -> None:
    """SPEC B2, B3."""
    assert agent_of(text) == agent


@pytest.mark.parametrize(
    ("text", "agent"),
    [
        ("把这个循环改得更快", "optimizer"),
        ("把这段代码改快一点", "optimizer"),
        ("把这个函数写得更高效", "optimizer"),
        ("把注释写得更清楚", "writer"),
        ("把标题改得更大", "orchestrator"),
        ("把循环改成递归", "orchestrator"),
    ],
)
def test_changing_how_fast_something_is_is_for_the_optimizer(text: str, agent: str) -> None:
    """SPEC B2."""
    assert agent_of(text) == agent


@pytest.mark.parametrize(
    ("text", "agent"),
    [
        ("The module has no documentation. Please add some.", "writer"),
        ("There is no rate limit. Please add one.", "orchestrator"),
        ("这个项目没有 README，帮我写一个", "writer"),
        ("这个函数没有测试，帮我写一个", "orchestrator"),
        ("没有文档，帮我写代码", "orchestrator"),
    ],
)
def test_one_and_some_mean_what_was_told_of(text: str, agent: str) -> None:
    """SPEC B2, B3."""
    assert agent_of(text) == agent
