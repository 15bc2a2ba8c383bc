"""A context for tools under test: a real workspace, and a record of the events."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from xclaw.contracts.events import Event
from xclaw.contracts.results import Result
from xclaw.contracts.sandbox import Sandboxes
from xclaw.contracts.spawn import AgentState, Child
from xclaw.contracts.tasks import Context, Task
from xclaw.contracts.teams import Membership, TeamLead
from xclaw.contracts.tools import ToolContext
from xclaw.runtime.sandboxing import RunSandbox
from xclaw.sandbox.host import HostSandboxes
from xclaw.workspaces.local import LocalWorkspaces
from xclaw.workspaces.settings import WorkspaceSettings


class NoSpawn:
    """Nobody can be started from here."""

    def agents(self) -> Mapping[str, str]:
        return {}

    def resolve(self, name: str) -> str | None:
        return None

    def model_of(self, agent: str) -> str:
        return ""

    async def start(self, task: Task, *, background: bool = False) -> Child:
        raise AssertionError("a file tool started an agent")

    async def run(self, task: Task) -> Result:
        raise AssertionError("a file tool started an agent")

    def listing(self) -> list[AgentState]:
        return []

    async def send(self, to: str, text: str) -> str:
        raise AssertionError("a file tool wrote to an agent")

    async def stop(self, to: str, reason: str) -> tuple[str, Result]:
        raise AssertionError("a file tool stopped an agent")

    def membership(self) -> Membership:
        raise AssertionError("a file tool asked for a team")

    def team(self) -> TeamLead:
        raise AssertionError("a file tool asked for a team")

    def context_tokens(self, context: Context) -> int:
        return 0

    def children(self) -> Mapping[str, Child]:
        return {}

    async def wait(self, run_ids: tuple[str, ...] = (), timeout_s: float | None = None) -> dict[str, Result]:
        return {}


@dataclass
class Setup:
    context: ToolContext
    events: list[Event] = field(default_factory=list[Event])

    @property
    def private(self) -> Path:
        return Path(self.context.workspace.private_dir)

    @property
    def delivery(self) -> Path:
        return Path(self.context.workspace.delivery_dir)


def make_setup(root: Path, *, mode: str = "host", host: Sandboxes | None = None) -> Setup:
    """Commands are executed as in host mode, by `host`."""
    settings = WorkspaceSettings(str(root), mode="full" if mode == "full" else "host", durable=False)
    workspace = LocalWorkspaces(settings).open("coder", "abc123", "run-1")
    workspace.prepare()
    events: list[Event] = []
    sandbox = RunSandbox(host or HostSandboxes(), workspace, "abc123")
    context = ToolContext(
        "run-1",
        "cli",
        "coder",
        "call-1",
        "do it",
        workspace,
        NoSpawn(),
        events.append,
        sandbox=sandbox.open,
    )
    return Setup(context, events)
