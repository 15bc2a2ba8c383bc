"""The ApprovalStore contract on the journal's file: what people were asked, and what they said."""

import sqlite3
import time
from collections.abc import Sequence

from xclaw.contracts.approvals import Approval, ApprovalStatus
from xclaw.contracts.errors import JournalError, UsageError
from xclaw.contracts.events import ApprovalAnswered, ApprovalAsked
from xclaw.contracts.users import OWNER
from xclaw.store.codec import decode_event, encode_event, well_formed
from xclaw.store.database import transaction
from xclaw.store.reader import Reader
from xclaw.store.writer import Writer

_APPROVALS = """
    SELECT events.body, runs.run, runs.root, runs.session, roots.session, events.at, runs.owner,
        runs.outcome, approval_answers.body
    FROM events JOIN runs ON runs.run = events.run JOIN runs AS roots ON roots.run = runs.root
        LEFT JOIN approval_answers ON approval_answers.approval = json_extract(events.body, '$.approval_id')
    WHERE events.kind = 'approval_asked'
"""
_ONE = f"{_APPROVALS} AND json_extract(events.body, '$.approval_id') = ?"
_PENDING = f"{_APPROVALS} AND runs.ended_at IS NULL AND approval_answers.approval IS NULL ORDER BY events.id"
_SETTLE = "INSERT INTO approval_answers VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_ANSWERED = "SELECT body FROM approval_answers WHERE approval = ?"
_RULES = """
    SELECT DISTINCT rule FROM approval_answers
    WHERE session = ? AND agent = ? AND decision IN ('session', 'always') AND rule <> ''
"""
_USER = "SELECT user FROM sessions WHERE session = ?"

_Row = tuple[str, str, str, str, str, float, str, str | None, str | None]


class SqliteApprovals:
    """Implements `ApprovalStore` with the threads of a `SqliteJournal`, whose property it is.

    The questions are the journal's own events; a deleted run takes its answers with it.
    """

    def __init__(self, writer: Writer, reader: Reader) -> None:
        self._writer = writer
        self._reader = reader

    async def approval(self, approval_id: str) -> Approval | None:
        key = well_formed(approval_id)
        return await self._reader.call(lambda connection: _one(connection, key))

    async def pending(self) -> list[Approval]:
        def work(connection: sqlite3.Connection) -> list[Approval]:
            return [_approval(row) for row in connection.execute(_PENDING)]

        return await self._reader.call(work)

    async def settle(self, answered: ApprovalAnswered) -> Approval:
        body = encode_event(answered)

        def work(connection: sqlite3.Connection) -> Approval:
            with transaction(connection):
                approval = _open(connection, answered.approval_id)
                values: Sequence[object] = (
                    approval.approval_id,
                    approval.run_id,
                    approval.root_session_id,
                    well_formed(approval.agent),
                    answered.decision,
                    well_formed(answered.rule),
                    body,
                    time.time(),
                )
                connection.execute(_SETTLE, values)
            return approval

        return await self._writer.finish(work)

    async def answered(self, approval_id: str) -> ApprovalAnswered | None:
        key = (well_formed(approval_id),)

        def work(connection: sqlite3.Connection) -> ApprovalAnswered | None:
            found: list[tuple[str]] = connection.execute(_ANSWERED, key).fetchall()
            return _answer(found[0][0]) if found else None

        return await self._reader.call(work)

    async def session_rules(self, root_session_id: str, agent: str) -> tuple[str, ...]:
        key = (root_session_id, well_formed(agent))
        return await self._reader.call(lambda connection: _texts(connection, _RULES, key))

    async def user_of(self, session_id: str) -> str:
        """The owner, for a session that nobody opened."""
        found = await self._reader.call(lambda connection: _texts(connection, _USER, (session_id,)))
        return found[0] if found else OWNER


def _texts(connection: sqlite3.Connection, query: str, values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(text for (text,) in connection.execute(query, values))


def _one(connection: sqlite3.Connection, approval_id: str) -> Approval | None:
    found: list[_Row] = connection.execute(_ONE, (approval_id,)).fetchall()
    return _approval(found[0]) if found else None


def _open(connection: sqlite3.Connection, approval_id: str) -> Approval:
    """The approval, which can still be answered. Raises `UsageError`."""
    approval = _one(connection, well_formed(approval_id))
    if approval is None:
        raise UsageError(
            f"there is no approval {approval_id[:80]!r}; `xclaw approve` lists those that wait for an answer"
        )
    if approval.status == "answered":
        found: list[tuple[str]] = connection.execute(_ANSWERED, (approval.approval_id,)).fetchall()
        earlier = _answer(found[0][0])
        raise UsageError(
            f"the approval {approval.approval_id} was answered already: {earlier.decision}, by {earlier.by}"
        )
    if approval.status == "void":
        raise UsageError(
            f"the approval {approval.approval_id} is void: the run of {approval.agent} ended before an answer"
        )
    return approval


def _approval(row: _Row) -> Approval:
    body, run, root, session, root_session, at, owner, outcome, answer = row
    asked = decode_event("approval_asked", body)
    if not isinstance(asked, ApprovalAsked):
        raise JournalError(f"an approval of run {run!r} cannot be read")
    status: ApprovalStatus = "answered" if answer is not None else "pending" if outcome is None else "void"
    return Approval(
        approval_id=asked.approval_id,
        call_id=asked.call_id,
        run_id=run,
        root_id=root,
        session_id=session,
        root_session_id=root_session,
        path=asked.path,
        tool=asked.tool,
        arguments=asked.arguments,
        why=asked.why,
        rule=asked.rule,
        asked_at=at,
        owner=owner,
        status=status,
    )


def _answer(body: str) -> ApprovalAnswered:
    answered = decode_event("approval_answered", body)
    if not isinstance(answered, ApprovalAnswered):
        raise JournalError("an answer to an approval cannot be read")
    return answered
