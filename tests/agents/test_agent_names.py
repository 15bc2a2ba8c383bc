"""How written names are matched with agents."""

import pytest

from xclaw.agents.names import agent_key
from xclaw.agents.registry import AgentRegistry
from xclaw.contracts.agents import Agent
from xclaw.contracts.errors import UsageError


def agent(name: str, description: str = "does it", *, orchestrator: bool = False, source: str = "x") -> Agent:
    return Agent(name, description, "Do it.", orchestrator=orchestrator, source=source)


@pytest.mark.parametrize(
    "written",
    [
        "Coder",
        " coder\n",
        '"coder"',
        "['coder']",
        '["coder"]',
        "`coder`",
        "@coder",
        "ｃｏｄｅｒ",
        "CODER.",
        "**coder**",
        "- coder",
        "Role: coder",
        "agent = 'coder'",
        "角色：coder",
        '{"agent": "coder"}',
        "<coder>",
        "“coder”",
        "「coder」",
        "cod\u200ber",
        "\ufeffcoder",
    ],
)
def test_a_name_reaches_its_agent_however_it_is_dressed(written: str) -> None:
    """N02."""
    registry = AgentRegistry([agent("coder"), agent("researcher")])
    assert registry.resolve(written) == "coder"


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("Senior_Engineer", r"Senior\_Engineer"),
        ("Senior Engineer", "senior-engineer"),
        ("规划师", "@规划师"),
        ("Web Scraper", "web_scraper"),
        ("a.b", "A.B"),
        ("C++ expert", "c++ Expert"),
        ("résumé", "re\u0301sume\u0301"),
        ("straße", "STRASSE"),
        ("x" * 90, "X" * 90),
        ("Role: Critic", "critic"),
    ],
)
def test_names_of_any_script_are_found_in_other_spellings(name: str, written: str) -> None:
    """N02, N04, F07."""
    assert AgentRegistry([agent(name)]).resolve(written) == name


@pytest.mark.parametrize(
    "written", ["", "  ", "[]", "coder, researcher", "code", "coder2", "x" * 100_000, "\x00"]
)
def test_what_is_no_name_or_several_finds_nobody(written: str) -> None:
    assert AgentRegistry([agent("coder"), agent("researcher")]).get(written) is None


def test_folding_a_folded_name_changes_nothing() -> None:
    for name in ("Role: Agent: Coder", "ＣＯＤＥＲ－２", "['@a_b']", "ﬁne", "İstanbul"):
        assert agent_key(agent_key(name)) == agent_key(name)


@pytest.mark.parametrize("name", ["", ".", "...", "@", "x\u0000y", "a\nb", "\ud800x", "n" * 121])
def test_a_name_that_cannot_be_one_is_refused(name: str) -> None:
    """F04."""
    with pytest.raises(UsageError, match="The agent name"):
        AgentRegistry([agent(name)])


def test_two_agents_of_one_folded_name_are_refused_with_both_sources() -> None:
    with pytest.raises(UsageError, match=r"one from a\.md, one from b\.md"):
        AgentRegistry([agent("code_reviewer", source="a.md"), agent("Code Reviewer", source="b.md")])


def test_the_roster_leaves_out_orchestrators() -> None:
    registry = AgentRegistry([agent("boss", orchestrator=True), agent("coder", "codes")])
    assert registry.roster() == {"coder": "codes"}
    assert registry.names == ("boss", "coder")
    assert "Coder" in registry
    assert 3 not in registry
    assert len(registry) == 2


def test_agents_defined_in_python_replace_those_of_the_same_name() -> None:
    """SPEC C1."""
    first = AgentRegistry([agent("coder", "old"), agent("writer")])
    second = first.with_agents([agent("Coder", "new")])
    assert [(item.name, item.description) for item in second] == [("Coder", "new"), ("writer", "does it")]
    assert first.roster()["coder"] == "old"
