"""Routers over the agents that are built in, for the tests of routing."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

from xclaw.agents.loader import load_agents
from xclaw.agents.settings import AgentSettings
from xclaw.gateway.routing.router import Decision, LabelRouter, Router, Step
from xclaw.gateway.routing.rules import RuleBook, load_rules

HERE = Path(__file__).parent
REGISTRY, _ = load_agents(AgentSettings())
RULES = load_rules()


def router(
    rules: RuleBook = RULES,
    agents: Mapping[str, str] | None = None,
    order: tuple[Step, ...] = ("rules",),
    model: LabelRouter | None = None,
) -> Router:
    return Router(rules, REGISTRY.roster() if agents is None else agents, REGISTRY.resolve, order, model)


def decided(text: str, asked: Router | None = None) -> Decision:
    return asyncio.run((asked or router()).route(text))


def agent_of(text: str, asked: Router | None = None) -> str:
    return decided(text, asked).route.agent


def labelled(name: str) -> Iterator[tuple[str, str]]:
    for line in (HERE / name).read_text("utf-8").splitlines():
        case = cast("dict[str, str]", json.loads(line))
        yield case["text"], case["route"]
