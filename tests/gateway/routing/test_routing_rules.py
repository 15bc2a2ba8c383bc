"""Rules alone, on labelled requests in English and Chinese."""

import asyncio
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.routing.routing_agents import REGISTRY, RULES, agent_of, decided, labelled, router
from xclaw.gateway.routing.router import Router
from xclaw.gateway.routing.rules import load_rules

SAMPLE = [
    "Review this function",
    "帮我审查一下 login.py",
    "write docs for the REST API",
    "为这个模块编写文档",
    "How can I speed up this SQL query?",
    "看看这个循环的性能瓶颈",
    "is there a SQL injection in this code?",
    "这段代码有没有漏洞",
    "Write a function that reverses a list",
    "先审查，再写文档",
    "What is a code review?",
    "hello",
]
TEMPTING = [
    "please review this",
    "审查这段代码",
    "don't review, write a README and then optimize it",
    "修复这个 SQL 注入漏洞",
    "def create(x): return x",
    "// implement and build the index",
    "what does it mean?",
    "- write tests",
    "1. 写文档",
    "@coder",
    "movie",
]


@pytest.mark.parametrize("name", ["cases.jsonl", "more.jsonl", "kinds.jsonl", "blind.jsonl"])
def test_every_labelled_request_goes_where_it_should_by_rules_alone(name: str) -> None:
    """SPEC B1, B2, B3."""
    misses = [(text, wanted, got) for text, wanted in labelled(name) if (got := agent_of(text)) != wanted]
    assert misses == []


def test_the_sets_have_every_expert_in_both_languages() -> None:
    for name in ("cases.jsonl", "more.jsonl"):
        chinese = {route for text, route in labelled(name) if re.search(r"[\u4e00-\u9fff]", text)}
        english = {route for text, route in labelled(name) if not re.search(r"[\u4e00-\u9fff]", text)}
        assert chinese == english == {"reviewer", "writer", "optimizer", "skeptic", "orchestrator"}


def test_no_rule_names_a_whole_request_of_the_sets() -> None:
    texts = {RULES.folded(text) for name in ("cases.jsonl", "more.jsonl") for text, _ in labelled(name)}
    for rule in RULES.rules:
        terms = [
            *rule.words,
            *rule.topics,
            *rule.weak_topics,
            *(verb for ask in rule.asks for verb in ask.verbs),
        ]
        longest = max(len(RULES.folded(term)) for term in terms)
        assert longest <= 6
        assert [term for term in terms if RULES.folded(term) in texts and len(RULES.folded(term)) > 4] == []


@given(
    st.sampled_from(SAMPLE),
    st.lists(
        st.sampled_from(TEMPTING) | st.text(st.characters(exclude_characters="`~"), max_size=30), max_size=4
    ),
)
def test_what_stands_in_a_code_block_never_changes_the_route(text: str, lines: list[str]) -> None:
    """SPEC B3."""
    block = "\n".join(lines)
    alone = agent_of(text)
    assert agent_of(f"{text}\n```python\n{block}\n```") == alone
    assert agent_of(f"```\n{block}\n```\n{text}") == alone
    assert agent_of(f"{text}\n~~~\n{block}\n~~~\n") == alone


@given(
    st.sampled_from(SAMPLE),
    st.sampled_from(["“{}”", "「{}」", "『{}』", '"{}"', "《{}》", "`{}`", "'{}'"]),
    st.data(),
)
def test_what_is_quoted_never_changes_the_route(text: str, marks: str, data: st.DataObject) -> None:
    """SPEC B3, in the quotation marks of both languages."""
    words = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=20)
    quoted = data.draw(st.sampled_from([line for line in TEMPTING if "'" not in line]) | words)
    assert agent_of(f"{text}\n\n{marks.format(quoted)}") == agent_of(text)
    framed = "{} – somebody wrote {} to me"
    assert agent_of(framed.format(text, marks.format(quoted))) == agent_of(
        framed.format(text, marks.format("x"))
    )


@pytest.mark.parametrize(
    "pasted",
    [
        'Traceback (most recent call last):\n  File "review.py", line 3, in optimize\n    create()\nError: XSS',
        "TypeError: cannot optimize\n    at review (/app/write.js:3:7)\n    at create (build.js:1:1)",
        "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-please review this\n+write a parser\n",
        "> please review this and write a parser",
        "function build() {\n  create(x); // write docs\n}",
        "2026-11-30 10:00:01 ERROR review failed: please write docs",
        "\n    please(review)\n    write a README\n",
    ],
)
def test_what_is_pasted_without_a_fence_is_not_asked_for(pasted: str) -> None:
    """SPEC B3: logs, traces, patches, quotations, indented code."""
    assert agent_of(f"What happened here?\n\n{pasted}") == "orchestrator"
    assert agent_of(f"Make this function faster:\n\n{pasted}") == "optimizer"


@pytest.mark.parametrize(
    "request_text",
    [
        "我有一篇英文技术博客，帮我：提取核心观点 → 翻译成中文 → 生成摘要\n\n{english}",
        "把下面的文章翻译成中文：\n\n{english}\n\n{english}",
        "Translate this into English, please:\n\n{chinese}",
    ],
)
def test_an_article_in_another_language_than_the_request_is_not_asked_for(request_text: str) -> None:
    english = (
        "LLM agents need persistent memory. Tools must be few and fast.\nReview this code for SQL injection."
    )
    chinese = "请审查这段代码有没有漏洞。" * 6
    route = decided(request_text.format(english=english, chinese=chinese)).route
    assert (route.by, route.reason) == ("default", "no rule fits")


def test_a_request_below_a_text_in_another_language_counts() -> None:
    shown = "A loop over all rows of the table. " * 4
    assert agent_of(f"{shown}\n\n看看这段的性能瓶颈") == "optimizer"


def test_width_case_and_traditional_characters_do_not_matter() -> None:
    assert agent_of("ＰＬＥＡＳＥ　ＲＥＶＩＥＷ　ＴＨＩＳ") == "reviewer"
    assert agent_of("請審查這段程式碼") == "reviewer"
    assert agent_of("為這個模組編寫文檔") == "writer"


def test_words_inside_other_words_do_not_count() -> None:
    """SPEC B3: "rewrite", "builder", and Chinese words that only share a character."""
    assert agent_of("Review the rewriter and the builder") == "reviewer"
    assert agent_of("Is the previewer safe?") == "orchestrator"
    assert agent_of("我需要开发票") == "orchestrator"
    assert decided("我需要开发票").considered[0].words == ()


def test_latin_words_are_found_between_chinese_characters(tmp_path: Path) -> None:
    """N08."""
    file = tmp_path / "rules.toml"
    file.write_text(
        '[[rules]]\nname = "code"\nagent = "coder"\nwords = ["python", "代码"]\n'
        '[[rules]]\nname = "money"\nagent = "finance"\nwords = ["invoice", "发票"]\n',
        "utf-8",
    )
    asked = Router(load_rules([file]), {"coder": "", "finance": ""}, str.strip)
    wanted = {
        "用python写函数": "coder",
        "我需要开发票": "finance",
        "帮我看看这段代码有什么问题": "coder",
        "USE PYTHON3": "coder",
        "pythonic": "orchestrator",
        "monty_python": "orchestrator",
    }
    assert {text: agent_of(text, asked) for text in wanted} == wanted


def test_a_decision_says_which_words_and_why_no_other_rule() -> None:
    decision = decided("Review this PR, then merge it")
    assert decision.route.by == "default"
    assert "'review', 'merge'" in decision.route.reason
    first = decision.considered[0]
    assert (first.rule, first.matched, first.words) == ("review", False, ("review",))
    assert "several steps" in first.why_not
    chosen = decided("帮我找出这个接口的安全漏洞")
    assert (chosen.route.by, chosen.route.rule) == ("rule", "security")
    assert [considered.matched for considered in chosen.considered] == [False, False, False, True]
    assert chosen.considered[3].words == ("安全漏洞",)


def test_an_expert_that_is_not_there_is_not_routed_to() -> None:
    asked = router(agents={"coder": "codes"})
    decision = decided("Review this function", asked)
    assert decision.route.agent == "orchestrator"
    assert decision.route.reason == "there is no agent 'reviewer' here"


def test_requests_are_routed_concurrently() -> None:
    async def main() -> list[str]:
        asked = router()
        async with asyncio.timeout(5), asyncio.TaskGroup() as group:
            tasks = [group.create_task(asked.route(text)) for text in SAMPLE * 3]
        return [task.result().route.agent for task in tasks]

    assert asyncio.run(main()) == [agent_of(text) for text in SAMPLE] * 3


def test_every_expert_of_the_built_in_rules_is_built_in() -> None:
    assert {rule.agent for rule in RULES.rules} <= set(REGISTRY.names)
