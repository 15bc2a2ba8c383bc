"""Routes for who can be asked, and whom the router would ask."""

from pathlib import PurePath
from typing import Annotated

import msgspec

from xclaw.contracts.agents import Agent
from xclaw.contracts.routing import RoutedBy
from xclaw.gateway.channels.api_route import AnyRoute, ApiRoute, Call, Nothing
from xclaw.gateway.routing.router import Decision
from xclaw.gateway.routing.verdict import Considered

_NO_FILE = frozenset({"built-in", "python"})


class AgentAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An agent."""

    name: str
    description: str
    orchestrator: bool
    """Hands work out to the others."""
    models: tuple[str, ...]
    """Its fallback chain; empty: the configured one."""
    source: str
    """Where its definition came from: "built-in", "python" or the name of a file."""


class RouteBody(msgspec.Struct, frozen=True, kw_only=True):
    """What a user would say."""

    text: Annotated[str, msgspec.Meta(min_length=1)]


class RouteAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Whom the router would ask, and why. Nothing is asked but a router model, if one is set up."""

    agent: str
    by: RoutedBy
    reason: str
    rule: str
    text: str
    """What the agent would be asked."""
    considered: tuple[Considered, ...]
    """Every rule, in order: the words by which it took the request, or why it did not."""


async def list_agents(call: Call[Nothing, Nothing]) -> tuple[AgentAnswer, ...]:
    agents = call.gateway.agents
    found = (agents.get(name) for name in ("orchestrator", *agents.roster()))
    return tuple(_answer(agent) for agent in found if agent is not None)


async def explain_route(call: Call[RouteBody, Nothing]) -> RouteAnswer:
    decided = await call.gateway.router.route(call.body.text)
    route = decided.route
    return RouteAnswer(
        agent=route.agent,
        by=route.by,
        reason=route.reason,
        rule=route.rule,
        text=decided.text,
        considered=decided.considered if isinstance(decided, Decision) else (),
    )


def _answer(agent: Agent) -> AgentAnswer:
    source = agent.source if agent.source in _NO_FILE else PurePath(agent.source).name
    return AgentAnswer(
        name=agent.name,
        description=agent.description,
        orchestrator=agent.orchestrator,
        models=agent.models,
        source=source,
    )


AGENTS: tuple[AnyRoute, ...] = (
    ApiRoute(
        "GET",
        "/agents",
        list_agents,
        "agents",
        "Who can be asked",
        tuple[AgentAnswer, ...],
    ),
    ApiRoute(
        "POST",
        "/route",
        explain_route,
        "agents",
        "Whom the router would ask, and why",
        RouteAnswer,
        body=RouteBody,
    ),
)
