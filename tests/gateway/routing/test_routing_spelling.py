"""Slips of the keyboard."""

import pytest

from gateway.routing.routing_agents import RULES, agent_of, decided


@pytest.mark.parametrize(
    ("text", "agent"),
    [
        ("Please reveiw this function", "reviewer"),
        ("wirte a README", "writer"),
        ("add commnets to utils.py", "writer"),
        ("Optimze this loop", "optimizer"),
        ("What's the complexty of this function?", "optimizer"),
        ("Any vulnerabilties in this handler?", "skeptic"),
        ("reveiw it and fix it", "orchestrator"),
    ],
)
def test_a_slip_in_a_word_of_a_rule_is_read_as_the_word(text: str, agent: str) -> None:
    assert agent_of(text) == agent


def test_the_explanation_has_the_word_that_was_meant() -> None:
    assert decided("reveiw this").considered[0].words == ("review",)


def test_no_word_of_the_rules_and_no_word_of_its_own_is_a_slip() -> None:
    """SPEC B3: words inside or beside other words."""
    assert not RULES.spelling.keys() & RULES.terms.words
    own = {
        "crate",
        "treat",
        "preview",
        "optimism",
        "optimist",
        "string",
        "form",
        "writer",
        "reviews",
        "trail",
    }
    assert not RULES.spelling.keys() & own
    assert agent_of("Is this crate any good?") == "orchestrator"
    assert agent_of("preview the page") == "orchestrator"
