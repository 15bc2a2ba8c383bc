"""All agents of an installation, by name."""

from collections.abc import Iterable, Iterator, Mapping

from xclaw.agents.names import agent_key, name_fault
from xclaw.contracts.agents import Agent
from xclaw.contracts.errors import UsageError


class AgentRegistry:
    """A fixed set of agents. Owns their names and nothing else; looking up never raises.

    Raises `UsageError` when it is made of two agents whose names fold to the same key, or of one whose
    name cannot be one.
    """

    def __init__(self, agents: Iterable[Agent]) -> None:
        self._agents: dict[str, Agent] = {}
        for agent in agents:
            fault = name_fault(agent.name)
            if fault:
                raise UsageError(f"The agent name {agent.name[:60]!r} ({agent.source}) {fault}; rename it.")
            key = agent_key(agent.name)
            other = self._agents.get(key)
            if other is not None:
                raise UsageError(
                    f"Two agents are called {agent.name!r}: one from {other.source}, one from "
                    f"{agent.source}; rename one of them."
                )
            self._agents[key] = agent

    def get(self, name: str) -> Agent | None:
        """The agent that `name` means after folding (`agent_key`), or None."""
        return self._agents.get(agent_key(name))

    def resolve(self, name: str) -> str | None:
        """The name of the agent that `name` means, as it was defined, or None."""
        agent = self.get(name)
        return agent.name if agent else None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(agent.name for agent in self)

    def roster(self) -> Mapping[str, str]:
        """The agents that work can be handed to, name to description: all but orchestrators."""
        return {agent.name: agent.description for agent in self if not agent.orchestrator}

    def with_agents(self, agents: Iterable[Agent]) -> "AgentRegistry":
        """A registry in which these agents are added, or stand in place of those of the same name."""
        added = AgentRegistry(agents)
        merged = {agent_key(agent.name): agent for agent in self}
        merged.update((agent_key(agent.name), agent) for agent in added)
        return AgentRegistry(merged.values())

    def __iter__(self) -> Iterator[Agent]:
        return iter(self._agents.values())

    def __len__(self) -> int:
        return len(self._agents)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None
