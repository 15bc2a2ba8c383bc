"""From a channel's message to the run that answers it: whose session, which agent, why."""

import secrets
import time
from dataclasses import replace

from xclaw.contracts.agents import Limits
from xclaw.contracts.channels import Wishes
from xclaw.contracts.errors import UsageError
from xclaw.contracts.ids import team_session
from xclaw.contracts.messages import Message
from xclaw.contracts.notifications import TASK_NOTIFICATION
from xclaw.contracts.routing import Route
from xclaw.contracts.sessions import SessionRow
from xclaw.gateway.names import MAX_CHARACTERS, conversation_key
from xclaw.gateway.services import GatewayServices, Routing
from xclaw.runtime.notified import parse
from xclaw.runtime.orders import Brought
from xclaw.runtime.runs import RunRequest
from xclaw.runtime.services import Agents

CHOSEN = "the client asked for this agent"
NOTHING_BROUGHT = Brought()


class Reception:
    """Checks messages and turns them into requests. Owns nothing."""

    def __init__(self, services: GatewayServices) -> None:
        self._services = services

    def admitted(
        self, message: Message, wishes: Wishes, key: str, brought: Brought = NOTHING_BROUGHT
    ) -> Message:
        """The message with an id, a time and the conversation's key as its session.

        Raises `UsageError` for what can never be answered: nothing is stored then. Without a text, what
        was brought along is to be gone on with.
        """
        if not message.content.strip() and not brought.history:
            raise UsageError("the message is empty")
        size, limit = (
            len(message.content.encode("utf-8", "replace")),
            self._services.settings.max_message_bytes,
        )
        if size > limit:
            raise UsageError(f"the message has {size} bytes; {limit} are allowed")
        if message.type == TASK_NOTIFICATION:
            parse(message.content)
        if len(wishes.client_id) > MAX_CHARACTERS:
            raise UsageError(f"a client_id has at most {MAX_CHARACTERS} characters")
        _check_limits(wishes.limits)
        request = RunRequest(message.content, key, models=wishes.models)
        if wishes.agent:
            request = replace(request, agent=chosen(wishes.agent, self._services.agents).agent)
        self._services.runs.check(request)
        return replace(
            message,
            id=message.id or new_message_id(),
            session_id=key,
            timestamp=message.timestamp or time.time(),
        )

    async def resolved(
        self, message: Message, wishes: Wishes, row: SessionRow, brought: Brought = NOTHING_BROUGHT
    ) -> tuple[RunRequest, SessionRow]:
        """The request for an admitted message, and its session; `row` is the conversation's own.

        A message without a text goes where the last thing that the user said in `brought` goes.
        """
        services = self._services
        asked = message.content if message.content.strip() else _last_asked(brought)
        route, text = await routed(asked, wishes.agent, services.router, services.agents)
        text = text if asked == message.content else message.content
        request, session_id, role = session_of(message, route, text, services.agents)
        request = replace(request, models=wishes.models, limits=wishes.limits, brought=brought)
        return request, replace(row, session_id=session_id, role=role)


def _check_limits(limits: Limits) -> None:
    """Raises `UsageError`: no limit is None, and one below anything possible is a mistake."""
    for name in ("max_turns", "timeout_s", "max_tokens", "max_usd"):
        limit: float | None = getattr(limits, name)
        if limit is not None and not limit > 0:
            raise UsageError(f"limits.{name} is {limit}; it has to be above 0, or left out")


def _last_asked(brought: Brought) -> str:
    return next((said.text for said in reversed(brought.history) if said.role == "user"), "")


def conversation_row(name: str, user: str, channel: str) -> SessionRow:
    """The orchestrator's session of a conversation, as it is when it is new. Raises `UsageError`."""
    key = conversation_key(name, user)
    now = time.time()
    return SessionRow(key, key, user, name, channel=channel, created_at=now, used_at=now)


async def routed(text: str, agent: str, router: Routing, agents: Agents) -> tuple[Route, str]:
    """Who answers, and what they are asked. Raises `UsageError` for an unknown agent."""
    if agent:
        return chosen(agent, agents), text
    decision = await router.route(text)
    return decision.route, decision.text


def chosen(agent: str, agents: Agents) -> Route:
    """The client's own choice. Raises `UsageError` that lists whom there is."""
    name = agents.resolve(agent)
    if name is None:
        known = ", ".join(["orchestrator", *agents.roster()])
        raise UsageError(f"unknown agent {agent[:80]!r}. Known: {known}")
    return Route(name, "client", CHOSEN)


def session_of(message: Message, route: Route, text: str, agents: Agents) -> tuple[RunRequest, str, str]:
    """The run request, its journal session, and the resident's role ("" for an orchestrator).

    A resident expert has a session of its own in each conversation, which it remembers (SPEC B5).
    """
    agent = agents.get(route.agent)
    role = "" if agent is None or agent.orchestrator else route.agent
    session_id = team_session(message.session_id, role) if role else message.session_id
    request = replace(
        RunRequest.from_message(message), text=text, session_id=session_id, agent=route.agent, route=route
    )
    return request, session_id, role


def new_message_id() -> str:
    """Sorts by time, cannot be guessed."""
    return f"m{time.time_ns() // 1_000_000:011x}{secrets.token_hex(5)}"
