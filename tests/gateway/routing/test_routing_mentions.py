"""`@coder …` addresses one agent (SPEC B5)."""

import pytest

from gateway.routing.routing_agents import REGISTRY, agent_of, decided
from xclaw.gateway.routing.mentions import Mention, find_mention


@pytest.mark.parametrize(
    ("text", "agent", "rest"),
    [
        ("@coder review this", "coder", "review this"),
        ("  @Coder: review this", "coder", "review this"),
        ("@coder，写个函数", "coder", "写个函数"),
        ("@coder帮我写一个函数", "coder", "帮我写一个函数"),
        ("＠ｃｏｄｅｒ 写个函数", "coder", "写个函数"),
        ("＠coder写个函数", "coder", "写个函数"),
        ("write a function @coder", "coder", "write a function"),
        ("写个函数 ＠coder。", "coder", "写个函数"),
        ("帮我看看这段代码@skeptic", "skeptic", "帮我看看这段代码"),
        ("@orchestrator review this", "orchestrator", "review this"),
        ("@coder", "coder", "@coder"),
        ("@coder\nfirst line\nsecond line", "coder", "first line\nsecond line"),
    ],
)
def test_a_mention_addresses_its_agent_and_is_taken_out(text: str, agent: str, rest: str) -> None:
    decision = decided(text)
    assert (decision.route.agent, decision.route.by, decision.text) == (agent, "mention", rest)


@pytest.mark.parametrize(
    "text",
    [
        "@nobody review this function",
        "@coder2 hello",
        "@coder_old hello",
        "@dataclass class Foo",
        "mail me at joe@coder",
        "mail me at joe@coder.com",
        "what does @coder do here",
        "see ```@coder```",
        "look:\n```\n@coder\n```",
        "he said “@coder”",
        "@",
        "@ coder",
        "`@coder`",
    ],
)
def test_what_only_looks_like_a_mention_is_none(text: str) -> None:
    decision = decided(text)
    assert decision.route.by != "mention"
    assert decision.text == text


def test_an_unknown_name_leaves_the_request_to_the_rules() -> None:
    assert agent_of("@nobody review this function") == "orchestrator"
    assert agent_of("Please review this function @nobody") == "reviewer"


def test_several_names_are_for_the_orchestrator() -> None:
    decision = decided("@coder @reviewer build it and check it")
    assert (decision.route.agent, decision.route.by) == ("orchestrator", "default")
    assert decision.text == "@coder @reviewer build it and check it"
    assert "@coder, @reviewer" in decision.route.reason
    assert agent_of("@coder @coder build it") == "coder"


def test_names_in_chinese_and_of_several_words_are_found() -> None:
    names = {"规划师": "规划师", "规划": "规划", "web scraper": "Web Scraper"}

    def resolve(name: str) -> str | None:
        return names.get(name.casefold())

    assert find_mention("@规划师帮我安排", resolve) == Mention(("规划师",), "帮我安排")
    assert find_mention("@规划 帮我安排", resolve) == Mention(("规划",), "帮我安排")
    assert find_mention("@Web Scraper get it", resolve) == Mention(("Web Scraper",), "get it")
    assert find_mention("@web get it", resolve) is None


def test_every_agent_that_answers_here_can_be_mentioned() -> None:
    for name in (*REGISTRY.roster(), "orchestrator"):
        assert agent_of(f"@{name} do it") == name
