"""Routes for who can be asked."""

from pathlib import PurePath

import msgspec

from xclaw.contracts.agents import Agent
from xclaw.gateway.channels.api_route import Call, Nothing

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


async def list_agents(call: Call[Nothing, Nothing]) -> tuple[AgentAnswer, ...]:
    agents = call.gateway.agents
    found = (agents.get(name) for name in ("orchestrator", *agents.roster()))
    return tuple(_answer(agent) for agent in found if agent is not None)


def _answer(agent: Agent) -> AgentAnswer:
    source = agent.source if agent.source in _NO_FILE else PurePath(agent.source).name
    return AgentAnswer(
        name=agent.name,
        description=agent.description,
        orchestrator=agent.orchestrator,
        models=agent.models,
        source=source,
    )
