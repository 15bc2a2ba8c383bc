"""What docs/routing.md shows is so."""

import re
import tomllib
from pathlib import Path

from gateway.routing.routing_agents import REGISTRY, RULES, agent_of, decided
from xclaw.gateway.routing.router import Router
from xclaw.gateway.routing.rules import load_rules

PAGE = (Path(__file__).parents[3] / "docs" / "routing.md").read_text("utf-8")
EXAMPLES = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)


def test_the_rules_of_the_page_work(tmp_path: Path) -> None:
    (text,) = (example for example in EXAMPLES if "[[rules]]" in example)
    (tmp_path / "rules.toml").write_text(text, "utf-8")
    agents = {"coder": "", "finance": "", "reviewer": ""}
    asked = Router(load_rules([tmp_path / "rules.toml"]), agents, agents.get)
    assert agent_of("我需要开发票", asked) == "finance"
    assert agent_of("please draw the schema", asked) == "coder"
    assert agent_of("画一下表结构", asked) == "coder"
    assert agent_of("what is wrong with our data model?", asked) == "coder"
    assert agent_of("turn this class into an ER diagram", asked) == "coder"
    assert (
        agent_of("check the archive", asked) == agent_of("is the archive of the API full?", asked) == "coder"
    )
    assert agent_of("is there an archive in the cellar?", asked) == "orchestrator"
    assert agent_of("a unit test for the invoice", asked) == "orchestrator"


def test_the_settings_of_the_page_exist() -> None:
    settings = [tomllib.loads(example) for example in EXAMPLES if "[router]" in example]
    assert {key for table in settings for key in table["router"]} == {"rules_files", "order", "model"}


def test_the_requests_of_the_page_go_where_it_says() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| (.*) \|$", PAGE, re.MULTILINE)
    assert [(rule, agent) for rule, agent, _ in rows] == [(rule.name, rule.agent) for rule in RULES.rules]
    for rule, agent, asks in rows:
        quoted = re.findall(r'"([^"]+)"', asks)
        assert len(quoted) == 2
        for text in quoted:
            assert (decided(text).route.rule, agent_of(text)) == (rule, agent)


def test_the_explanation_of_the_page_is_the_real_one() -> None:
    decision = decided("Review this PR, then merge it")
    assert decision.route.reason in PAGE
    assert "reviewer" in REGISTRY.names
