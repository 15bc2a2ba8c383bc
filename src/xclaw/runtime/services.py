"""What the runtime works with; app.py wires it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from xclaw.contracts.agents import Agent
from xclaw.contracts.journal import Journal
from xclaw.contracts.messages import ChatMessage
from xclaw.contracts.models import ModelSource, ToolSpec
from xclaw.contracts.spawn import Launcher
from xclaw.contracts.tools import Tool, ToolSet
from xclaw.contracts.workspaces import Workspaces
from xclaw.runtime.settings import RuntimeSettings


class Agents(Protocol):
    """The registry of agents, as far as the runtime needs it."""

    def get(self, name: str) -> Agent | None: ...

    def resolve(self, name: str) -> str | None: ...

    def roster(self) -> Mapping[str, str]: ...


class Tools(Protocol):
    """The registry of tools, as far as the runtime needs it."""

    def select(self, names: Sequence[str]) -> ToolSet:
        """The tools of these names that exist, in this order."""
        ...

    def resolve(self, written: str) -> Tool | None:
        """The tool that a model meant, or None."""
        ...


class Coaching(Protocol):
    """What a model that needs worked examples (`ModelProfile.few_shots`) is given instead of the
    instructions, tools and schemas of stronger ones."""

    max_turns: int
    """Of a run that sets no limit of its own."""

    def brief(self, agent: Agent, roster: Mapping[str, str]) -> str: ...

    def note(self, agent: Agent, done: Sequence[str], delivered: Sequence[str]) -> str:
        """What stands in the last tool output instead of the task state: the agents whose results are
        in, the files that this run has delivered."""
        ...

    def tools(self, agent: Agent, names: Sequence[str], request: str) -> tuple[str, ...]: ...

    def shots(self, agent: Agent) -> tuple[ChatMessage, ...]: ...

    def schema(
        self,
        specs: Sequence[ToolSpec],
        final: Mapping[str, object] | None,
        agents: Sequence[str],
        delivered: Sequence[str],
    ) -> dict[str, object]: ...


@dataclass(frozen=True, slots=True)
class Services:
    journal: Journal
    models: ModelSource
    agents: Agents
    tools: Tools
    workspaces: Workspaces
    launcher: Launcher
    coaching: Coaching
    settings: RuntimeSettings
    owner: str
    """This process, in the journal."""
    owner_alive: Callable[[str], bool]
    """Whether the process behind an owner still runs."""
    memory_root: str
