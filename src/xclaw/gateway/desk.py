"""What can be seen of conversations and done with them, by the gateway's clients and by the command line.

Works on the journal alone: with a gateway or without one.
"""

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Protocol

from xclaw.contracts.agents import Agent
from xclaw.contracts.errors import SessionBusy, UsageError
from xclaw.contracts.journal import Journal, RunRow
from xclaw.contracts.messages import UserMessage
from xclaw.contracts.results import Outcome
from xclaw.contracts.sessions import Inbound, SessionRow, SessionStore
from xclaw.contracts.users import OWNER
from xclaw.gateway.export import ExportFormat, exported
from xclaw.loop.state import RunState, fold
from xclaw.runtime.tree import NodeEnd

MAX_TITLE = 200
"""Characters."""
_SEARCHED_ROWS = 10_000
_OPEN_ROOTS = 10_000
_SHOWN_CHARACTERS = 500
_DELETED = "its session was deleted"


class NoSuchSession(UsageError):
    """There is no such session or resident, or it is another user's: that is not told apart."""


class Agents(Protocol):
    """Whom a name means."""

    def get(self, name: str) -> Agent | None: ...


class Trees(Protocol):
    """What a crash left over; `Runs` knows."""

    async def interrupted(self) -> list[RunRow]: ...

    async def abandon(self, root_id: str, reason: str) -> list[NodeEnd]: ...


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """One conversation at a glance. Times are Unix seconds."""

    session: str
    """What its user calls it."""
    title: str
    channel: str
    created_at: float
    used_at: float
    running: bool
    residents: tuple[str, ...]
    """The experts that were asked in it and remember it."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One answer, given or on its way."""

    run: str
    agent: str
    title: str
    started_at: float
    ended_at: float | None
    outcome: Outcome | None
    """None while it goes on, or was interrupted."""
    request: str
    """The id of the message that it answers."""


@dataclass(frozen=True, slots=True)
class SessionView:
    """A conversation and the answers given in it, the newest first."""

    session: str
    title: str
    channel: str
    created_at: float
    used_at: float
    running: bool
    residents: tuple[str, ...]
    runs: tuple[RunSummary, ...]


@dataclass(frozen=True, slots=True)
class Remembered:
    """What an agent would see of the past if it were asked now."""

    turns: int
    """Messages to it that it still has word for word."""
    tokens: int
    """About; a summary of what is older included."""


@dataclass(frozen=True, slots=True)
class Resident:
    """An expert that stays with a conversation."""

    agent: str
    session_id: str
    """The journal's."""
    messages: int
    """How many it was sent."""
    last_at: float
    """When it was last asked; Unix time, seconds."""
    last_request: str
    last_answer: str
    """Both shortened."""
    running: bool
    remembers: Remembered


class SessionDesk:
    """Conversations by their key (`names.conversation_key`): the caller says whose.

    Raises `NoSuchSession`, `SessionBusy` and `JournalError`. Cancelling a wait lets a write finish.
    """

    def __init__(self, sessions: SessionStore, journal: Journal, runs: Trees, agents: Agents) -> None:
        self._sessions = sessions
        self._journal = journal
        self._runs = runs
        self._agents = agents

    async def list(
        self, user: str = OWNER, *, limit: int = 100, before: float | None = None
    ) -> tuple[SessionSummary, ...]:
        """The latest used first; `before`: used before that time, to go on after the last one of a page.

        Conversations that a client keeps itself, each of whose messages has a session of its own, are not
        listed.
        """
        rows = await self._sessions.sessions(user=user, without_channel="openai", limit=_SEARCHED_ROWS)
        running = await self._running_sessions()
        found = [_summary(rows, running) for rows in _by_conversation(rows).values()]
        found.sort(key=lambda summary: summary.used_at, reverse=True)
        return tuple(s for s in found if before is None or s.used_at < before)[:limit]

    async def show(self, conversation: str, *, runs: int = 100) -> SessionView:
        """One conversation with its newest `runs` answers."""
        rows = await self._rows(conversation)
        answers = [
            row
            for session in rows
            for row in await self._journal.runs(session_id=session.session_id, roots_only=True, limit=runs)
        ]
        answers.sort(key=lambda row: row.started_at, reverse=True)
        head = _summary(rows, await self._running_sessions())
        return SessionView(
            head.session,
            head.title,
            head.channel,
            head.created_at,
            head.used_at,
            head.running,
            head.residents,
            tuple(_run_summary(row) for row in answers[:runs]),
        )

    async def rename(self, conversation: str, title: str) -> SessionView:
        """Give it another title, on one line and without what nobody sees. Raises `UsageError` for one that
        says nothing or too much."""
        title = "".join(letter for letter in " ".join(title.split()) if letter.isprintable())
        if not title or len(title) > MAX_TITLE:
            raise UsageError(f"a title has 1 to {MAX_TITLE} characters that can be seen")
        main = _main(await self._rows(conversation))
        await self._sessions.rename(main.session_id, title)
        return await self.show(conversation)

    async def delete(self, conversation: str) -> int:
        """Forget it for good, with its residents; answers how many runs that were. Delivered files stay."""
        rows = await self._rows(conversation)
        return await self._delete(tuple(row.session_id for row in rows))

    async def export(self, conversation: str, form: ExportFormat = "markdown") -> AsyncIterator[str]:
        """The whole conversation in pieces, once it is clear that there is one."""
        return exported(self._sessions, _main(await self._rows(conversation)), form)

    async def team(self, conversation: str) -> tuple[Resident, ...]:
        """Its residents, the last asked first."""
        residents = [row for row in await self._rows(conversation) if row.role]
        running = await self._running_sessions()
        return tuple([await self._resident(row, running) for row in residents])

    async def reset(self, conversation: str, agent: str) -> int:
        """Let a resident forget; answers how many runs that were."""
        known = self._agents.get(agent)
        names = {agent, known.name if known else agent}
        found = [row for row in await self._rows(conversation) if row.role and row.role in names]
        if not found:
            raise NoSuchSession(f"{agent[:80]!r} is no resident of this session; it has nothing to forget")
        return await self._delete(tuple(row.session_id for row in found))

    async def _rows(self, conversation: str) -> tuple[SessionRow, ...]:
        rows = await self._sessions.sessions(conversation=conversation, limit=_SEARCHED_ROWS)
        rows = rows or [_begun(inbound) for inbound in (await self._sessions.pending(conversation))[:1]]
        if not rows:
            raise NoSuchSession(f"there is no session {client_name(conversation)[:80]!r}")
        return tuple(rows)

    async def _running_sessions(self) -> frozenset[str]:
        rows = await self._journal.runs(roots_only=True, open_only=True, limit=_OPEN_ROOTS)
        interrupted = {row.run_id for row in await self._runs.interrupted()} if rows else frozenset[str]()
        return frozenset(row.session_id for row in rows if row.run_id not in interrupted)

    async def _delete(self, session_ids: tuple[str, ...]) -> int:
        """A run whose process is dead holds nothing up: it is closed first."""
        for row in await self._runs.interrupted():
            if row.session_id in session_ids:
                await self._runs.abandon(row.root_id, _DELETED)
        try:
            return await self._sessions.delete(session_ids)
        except UsageError as refused:
            raise SessionBusy(str(refused)) from None

    async def _resident(self, row: SessionRow, running: frozenset[str]) -> Resident:
        runs = await self._journal.runs(session_id=row.session_id, roots_only=True, limit=_SEARCHED_ROWS)
        state = fold(await self._journal.read_session(row.session_id))
        ended = state.ended
        return Resident(
            row.role,
            row.session_id,
            len(runs),
            runs[0].started_at if runs else row.used_at,
            _shortened(state.request),
            _shortened(ended.result.text if ended else state.last_text()),
            row.session_id in running,
            _remembered(state),
        )


def _by_conversation(rows: Iterable[SessionRow]) -> dict[str, list[SessionRow]]:
    found: dict[str, list[SessionRow]] = {}
    for row in rows:
        found.setdefault(row.conversation, []).append(row)
    return found


def _main(rows: Iterable[SessionRow]) -> SessionRow:
    """The row that speaks for a conversation: the orchestrator's, or the first resident's where only
    residents were ever asked."""
    return min(rows, key=lambda row: (row.role != "", row.created_at))


def _summary(rows: Iterable[SessionRow], running: frozenset[str]) -> SessionSummary:
    rows = tuple(rows)
    main = _main(rows)
    return SessionSummary(
        main.name,
        main.title,
        main.channel,
        min(row.created_at for row in rows),
        max(row.used_at for row in rows),
        any(row.session_id in running for row in rows),
        tuple(sorted(row.role for row in rows if row.role)),
    )


def _run_summary(row: RunRow) -> RunSummary:
    return RunSummary(
        row.run_id, row.agent, row.title, row.started_at, row.ended_at, row.outcome, row.message_id
    )


def _remembered(state: RunState) -> Remembered:
    asked = (
        message
        for message in state.view()
        if isinstance(message, UserMessage) and message.origin in ("user", "agent")
    )
    return Remembered(sum(1 for _ in asked), state.tokens)


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def _begun(inbound: Inbound) -> SessionRow:
    """Of a conversation whose first message still waits."""
    message = inbound.message
    return SessionRow(
        message.session_id,
        message.session_id,
        inbound.user,
        client_name(message.session_id),
        channel=message.channel,
        created_at=message.timestamp,
        used_at=message.timestamp,
    )


def client_name(conversation: str) -> str:
    """What its user calls the conversation of a key."""
    return conversation.rpartition(":")[2]
