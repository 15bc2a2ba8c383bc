"""Every route of the HTTP API."""

from xclaw.gateway.channels.api_agents import AGENTS
from xclaw.gateway.channels.api_approvals import APPROVALS
from xclaw.gateway.channels.api_messages import MESSAGES
from xclaw.gateway.channels.api_route import AnyRoute
from xclaw.gateway.channels.api_runs import RUNS
from xclaw.gateway.channels.api_sessions import SESSIONS
from xclaw.gateway.channels.api_streams import STREAMS

ROUTES: tuple[AnyRoute, ...] = (*MESSAGES, *SESSIONS, *RUNS, *STREAMS, *APPROVALS, *AGENTS)
