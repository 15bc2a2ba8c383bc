"""How runs on a small model are set up: its brief, its tools, its examples, its schema."""

from collections.abc import Mapping, Sequence

from xclaw.contracts.agents import Agent
from xclaw.contracts.messages import ChatMessage
from xclaw.contracts.models import ToolSpec
from xclaw.models.embedded.schema import action_schema
from xclaw.models.embedded.shots import (
    ORCHESTRATOR_TOOLS,
    WORKER_TOOLS,
    orchestrator_brief,
    orchestrator_shots,
    progress_note,
    worker_brief,
    worker_shots,
)


class SmallModelCoaching:
    """The runtime's `Coaching` for models whose profile says `few_shots`. Stateless."""

    max_turns: int = 8
    """A small model that has not ended by then goes round in circles, and each turn takes a minute."""

    def brief(self, agent: Agent, roster: Mapping[str, str]) -> str:
        """The whole system prompt: a long one costs a small model more than it gives."""
        if agent.orchestrator:
            return orchestrator_brief(roster)
        role, _, _ = agent.instructions.strip().partition("\n\n")
        return worker_brief(" ".join(role.split()) or agent.description)

    def tools(self, agent: Agent, names: Sequence[str]) -> tuple[str, ...]:
        """Of the tools that the agent may use, those that a small model can choose between."""
        usable = ORCHESTRATOR_TOOLS if agent.orchestrator else WORKER_TOOLS
        return tuple(name for name in names if name in usable)

    def shots(self, agent: Agent) -> tuple[ChatMessage, ...]:
        return orchestrator_shots if agent.orchestrator else worker_shots

    def note(self, done: Sequence[str]) -> str:
        """What an orchestrator is shown after a tool output instead of the task state."""
        return progress_note(done)

    def schema(
        self,
        specs: Sequence[ToolSpec],
        final: Mapping[str, object] | None,
        agents: Sequence[str],
        delivered: Sequence[str],
    ) -> dict[str, object]:
        """What one reply may be; see `xclaw.models.embedded.schema`."""
        return action_schema(specs, final, agents=agents, delivered=delivered)
