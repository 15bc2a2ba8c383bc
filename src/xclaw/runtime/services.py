"""What the runtime works with; app.py wires it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from xclaw.contracts.agents import Agent, Isolation
from xclaw.contracts.coaching import Coaching
from xclaw.contracts.journal import Journal
from xclaw.contracts.memory import Memory
from xclaw.contracts.models import ModelSource
from xclaw.contracts.projects import Projects
from xclaw.contracts.sandbox import Sandboxes
from xclaw.contracts.spawn import Launcher
from xclaw.contracts.tools import Tool, ToolSet
from xclaw.contracts.workers import WorkerKind
from xclaw.contracts.workspaces import Workspaces
from xclaw.runtime.approvals import Approvals
from xclaw.runtime.settings import RuntimeSettings
from xclaw.runtime.stream import Receive


class Agents(Protocol):
    """The registry of agents, as far as the runtime needs it."""

    def get(self, name: str) -> Agent | None: ...

    def resolve(self, name: str) -> str | None: ...

    def roster(self) -> Mapping[str, str]: ...

    @property
    def names(self) -> tuple[str, ...]:
        """Of all of them, also those that the roster leaves out and that can be named all the same."""
        ...


class Tools(Protocol):
    """The registry of tools, as far as the runtime needs it."""

    def select(self, names: Sequence[str]) -> ToolSet:
        """The tools of these names that exist, in this order."""
        ...

    def resolve(self, written: str) -> Tool | None:
        """The tool that a model meant, or None."""
        ...


@dataclass(frozen=True, slots=True)
class Services:
    journal: Journal
    models: ModelSource
    agents: Agents
    tools: Tools
    workspaces: Workspaces
    launchers: Mapping[Isolation, Launcher]
    """By the kind of sub-agent that each starts."""
    coaching: Coaching
    settings: RuntimeSettings
    owner: str
    """This process, in the journal."""
    owner_alive: Callable[[str], bool]
    """Whether the process behind an owner still runs."""
    memory_root: str
    approvals: Approvals
    sandboxes: Sandboxes
    """Where commands are executed."""
    workers: Mapping[Isolation, WorkerKind] = field(default_factory=dict[Isolation, WorkerKind])
    """Of the kinds of sub-agent whose loop goes on in another process."""
    projects: Projects | None = None
    """Trees of users' own directories; None: there are none."""
    project_directory: str = ""
    """The directory that roots work on which name none; empty: none."""
    memory: Memory | None = None
    """What outlives a conversation; None: nothing does."""
    watchers: list[Receive] = field(default_factory=list[Receive])
    """Who is told of everything that happens in any tree."""
