"""What people were asked and what they said, in the journal's file."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from journals import nobody, opened, start_of

from xclaw.contracts.errors import UsageError
from xclaw.contracts.events import Address, ApprovalAnswered, ApprovalAsked, RunEnded
from xclaw.contracts.results import Result
from xclaw.store.journal import SqliteJournal
from xclaw.testing.journal_conformance import entries_of, root_address, started


def run(main: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(20):
            await main()

    asyncio.run(bounded())


def asked(approval_id: str, call_id: str = "c", agent: str = "worker") -> ApprovalAsked:
    return ApprovalAsked(
        approval_id, call_id, "shell", '{"command": "ls"}', "why", "shell(ls)", ("lead", agent)
    )


async def settled(journal: SqliteJournal) -> None:
    """Return once everything that was appended is committed."""
    await journal.claim("nobody", "x", "y")


def test_questions_of_open_runs_wait_in_the_order_they_were_asked(tmp_path: Path) -> None:
    """J2: with the root's session, also for a run far below it."""

    async def main() -> None:
        async with opened(tmp_path / "x.db") as journal:
            journal.append([start_of("r1"), start_of("r2")], nobody)
            child = Address("c1", "r1", "r1", "session-of-child")
            journal.append(entries_of(child, started("worker"), asked("a1")), nobody)
            journal.append(entries_of(root_address("r2"), asked("a2"), asked("a3", "d"), first_seq=2), nobody)
            await settled(journal)
            found = await journal.approvals.pending()
            assert [each.approval_id for each in found] == ["a1", "a2", "a3"]
            assert found[0].session_id == "session-of-child"
            assert found[0].root_session_id == root_address("r1").session_id
            assert (found[0].run_id, found[0].root_id, found[0].agent) == ("c1", "r1", "worker")
            assert await journal.approvals.approval("a2") == found[1]
            assert await journal.approvals.approval("a") is None
            await journal.approvals.settle(ApprovalAnswered("a2", "once", "ann"))
            assert [each.approval_id for each in await journal.approvals.pending()] == ["a1", "a3"]
            known = await journal.approvals.approval("a2")
            assert known is not None
            assert known.status == "answered"

    run(main)


def test_an_answer_is_taken_once_and_kept_word_for_word(tmp_path: Path) -> None:
    """A04: also by another process, and after a restart."""
    answer = ApprovalAnswered("a1", "edit", "ann", 'because "x"\n', '{"command": "é\\u0000"}', "")

    async def main() -> None:
        async with opened(tmp_path / "x.db") as journal:
            journal.append([start_of("r1")], nobody)
            journal.append(entries_of(root_address("r1"), asked("a1"), first_seq=2), nobody)
            await settled(journal)
            assert await journal.approvals.answered("a1") is None
            taken = await journal.approvals.settle(answer)
            assert taken.approval_id == "a1"
        async with opened(tmp_path / "x.db") as journal:
            assert await journal.approvals.answered("a1") == answer
            with pytest.raises(UsageError, match="answered already: edit, by ann"):
                await journal.approvals.settle(ApprovalAnswered("a1", "deny", "bob"))
            assert await journal.approvals.answered("a1") == answer
            with pytest.raises(UsageError, match="there is no approval 'a9'"):
                await journal.approvals.settle(ApprovalAnswered("a9", "deny", "bob"))

    run(main)


def test_what_was_asked_by_a_run_that_has_ended_is_void(tmp_path: Path) -> None:
    """A04: late answers are told so; one that was answered stays answered."""

    async def main() -> None:
        async with opened(tmp_path / "x.db") as journal:
            journal.append([start_of("r1")], nobody)
            address = root_address("r1")
            journal.append(entries_of(address, asked("a1"), asked("a2", "d"), first_seq=2), nobody)
            await settled(journal)
            await journal.approvals.settle(ApprovalAnswered("a1", "once", "ann"))
            journal.append(
                entries_of(address, RunEnded(Result("cancelled"), "cancelled", 1), first_seq=4), nobody
            )
            await settled(journal)
            assert await journal.approvals.pending() == []
            with pytest.raises(UsageError, match="is void: the run of worker ended"):
                await journal.approvals.settle(ApprovalAnswered("a2", "once", "ann"))
            statuses = [await journal.approvals.approval(name) for name in ("a1", "a2")]
            assert [each.status if each else "" for each in statuses] == ["answered", "void"]

    run(main)


def test_rules_of_a_conversation_are_one_agent_s(tmp_path: Path) -> None:
    """A03: not those of `once`, of other agents, or of other conversations."""

    async def main() -> None:
        async with opened(tmp_path / "x.db") as journal:
            journal.append([start_of("r1")], nobody)
            questions = [asked("a1"), asked("a2", "d"), asked("a3", "e"), asked("a4", "f", "other")]
            journal.append(entries_of(root_address("r1"), *questions, first_seq=2), nobody)
            await settled(journal)
            for answer in (
                ApprovalAnswered("a1", "once", "ann", rule="shell(once)"),
                ApprovalAnswered("a2", "session", "ann", rule="shell(ls)"),
                ApprovalAnswered("a3", "always", "ann", rule="shell(ls)"),
                ApprovalAnswered("a4", "session", "ann", rule="shell(rm)"),
            ):
                await journal.approvals.settle(answer)
            session = root_address("r1").session_id
            assert await journal.approvals.session_rules(session, "worker") == ("shell(ls)",)
            assert await journal.approvals.session_rules(session, "other") == ("shell(rm)",)
            assert await journal.approvals.session_rules("elsewhere", "worker") == ()
            assert await journal.approvals.user_of("elsewhere") == "owner"

    run(main)
