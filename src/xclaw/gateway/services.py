"""What the gateway works with; app.py wires it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from xclaw.contracts.journal import Journal
from xclaw.contracts.routing import Route
from xclaw.contracts.sessions import SessionStore
from xclaw.gateway.metrics import Metrics
from xclaw.gateway.settings import GatewaySettings
from xclaw.runtime.approvals import Approvals
from xclaw.runtime.runs import Runs
from xclaw.runtime.services import Agents
from xclaw.runtime.tree import NodeEnd


class Decided(Protocol):
    """What a router made of a message."""

    @property
    def route(self) -> Route: ...

    @property
    def text(self) -> str:
        """What the agent is asked: the message, without a mention of its name."""
        ...


class Routing(Protocol):
    """A router, as far as the gateway needs it."""

    async def route(self, text: str) -> Decided: ...


@dataclass(frozen=True, slots=True)
class GatewayServices:
    runs: Runs
    journal: Journal
    sessions: SessionStore
    agents: Agents
    router: Routing
    metrics: Metrics
    approvals: Approvals
    settings: GatewaySettings
    cancel: Callable[[str, str], Awaitable[list[NodeEnd]]]
    """Ends a run (by id, with a reason) in whichever process it is. Raises `UsageError`."""
