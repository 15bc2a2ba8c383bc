"""What every SessionStore must do, as checks to run on an implementation.

A check is given `open_journal`, which opens the same, at first empty, journal with its sessions each
time it is called, the way several processes would:

    @pytest.mark.parametrize("check", SESSION_CHECKS)
    def test_it_keeps_the_contract(check, tmp_path):
        asyncio.run(check(lambda: SqliteJournal.open(StoreSettings(str(tmp_path / "journal.db")))))
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Protocol

from xclaw.contracts.errors import UsageError
from xclaw.contracts.events import Address, Entry, MessageAdded
from xclaw.contracts.journal import Journal
from xclaw.contracts.messages import Message
from xclaw.contracts.sessions import Inbound, SessionRow, SessionStore
from xclaw.contracts.users import OWNER
from xclaw.testing.journal_conformance import append_and_wait, ended, entries_of, root_address, started


class JournalWithSessions(Journal, Protocol):
    """A journal, and the sessions in the same file."""

    @property
    def sessions(self) -> SessionStore: ...


OpenJournal = Callable[[], Awaitable[JournalWithSessions]]
SessionCheck = Callable[[OpenJournal], Coroutine[object, None, None]]


def inbound(
    message_id: str,
    conversation: str = "talk",
    *,
    user: str = OWNER,
    client_id: str = "",
    text: str = "hello",
) -> Inbound:
    """A message as a channel would have it accepted."""
    return Inbound(Message(message_id, conversation, "web", text, 1_000.5), user, client_id)


def session(session_id: str, conversation: str, *, user: str = OWNER, used_at: float = 10.0) -> SessionRow:
    """The orchestrator's own session of a conversation, or a resident expert's."""
    role = session_id.split(":")[1] if session_id.startswith("team:") else ""
    return SessionRow(session_id, conversation, user, conversation, role, "", "web", 5.0, used_at)


async def answer(
    journal: Journal, run_id: str, session_id: str, message_id: str = "", at: float = 2_000.0
) -> list[Entry]:
    """A whole root run that answers a message."""
    first = replace(started(text=f"asked in {run_id}"), message_id=message_id, channel="web")
    entries = entries_of(root_address(run_id, session_id), first, ended(), at=at)
    return list(await append_and_wait(journal, *entries))


async def check_accepted_messages_come_back_as_they_were(open_journal: OpenJournal) -> None:
    """Field for field, also after a restart, pending in the order they were accepted."""
    parent = Message("m2", "other", "api", "你好 🎉 \0 '\"", -1.5, "command", "agent", "parent")
    full = Inbound(parent, "ann", "client-1", "interrupt", '{"agent": "coder"}')
    async with _opened(open_journal) as journal:
        _same(await journal.sessions.accept(inbound("m9")), inbound("m9"), "what is answered")
        _same(await journal.sessions.accept(full), full, "every field")
        await journal.sessions.accept(inbound("m1"))
    async with _opened(open_journal) as journal:
        store = journal.sessions
        _same(await store.inbound("m2"), full, "every field after a restart")
        _same(await store.inbound("m3"), None, "a message that does not exist")
        _same(await _ids(store.pending()), ["m9", "m2", "m1"], "all that are pending")
        _same(await _ids(store.pending("talk")), ["m9", "m1"], "the pending of a conversation")
        _same(await _ids(store.pending("tal%")), [], "the pending of one that does not exist")


async def check_a_client_id_is_one_message(open_journal: OpenJournal) -> None:
    """Sent again, the earlier one is answered as it is now; to others it means nothing."""
    async with _opened(open_journal) as journal:
        store = journal.sessions
        first = await store.accept(inbound("m1", client_id="c1"))
        again = await store.accept(inbound("m2", client_id="c1", text="changed"))
        _same(again, first, "the same client id again")
        await store.drop("m1", "cancelled")
        _same(
            await store.accept(inbound("m3", client_id="c1")),
            replace(first, dropped="cancelled"),
            "the same client id after it was dropped",
        )
        await store.accept(inbound("m4", client_id="c1", user="ann"))
        await store.accept(inbound("m5", "other", client_id="c1"))
        await store.accept(inbound("m6"))
        await store.accept(inbound("m7"))
        _same(await _ids(store.pending()), ["m4", "m5", "m6", "m7"], "users and conversations apart")


async def check_a_message_id_is_one_message(open_journal: OpenJournal) -> None:
    """Accepted again it is the same; nobody gets to see another's by its id."""
    async with _opened(open_journal) as journal:
        store = journal.sessions
        first = await store.accept(inbound("m1", text="secret"))
        _same(await store.accept(inbound("m1", text="changed")), first, "the same id again")
        await _expect_usage_error(store.accept(inbound("m1", user="ann")))
        await _expect_usage_error(store.accept(inbound("m1", "other", client_id="c1")))
        _same(await store.pending(), [first], "what was accepted")


async def check_two_processes_accept_one_message(open_journal: OpenJournal) -> None:
    async with _opened(open_journal) as first, _opened(open_journal) as second:
        places = [(journal, number) for number in range(10) for journal in (first, second)]
        tries = [
            journal.sessions.accept(inbound(f"m{place}", client_id=f"c{number}"))
            for place, (journal, number) in enumerate(places)
        ]
        answers = await _together(tries)
        for number in range(10):
            _same(answers[2 * number], answers[2 * number + 1], f"the two answers for c{number}")
        _expect(len(await second.sessions.pending()) == 10, "each client id must be stored once")


async def check_the_run_that_names_a_message_takes_it(open_journal: OpenJournal) -> None:
    """The start of a root, or a steering message in any run of its tree; the first one counts."""
    async with _opened(open_journal) as journal:
        store = journal.sessions
        for message_id in ("m1", "m2", "m3", "m4"):
            await store.accept(inbound(message_id))
        await answer(journal, "r1", "talk", "m1")
        root, child = root_address("r2", "talk"), Address("c2", "r2", "r2", "talk:coder:abc123")
        await append_and_wait(journal, *entries_of(root, replace(started(), message_id="m2")))
        await append_and_wait(journal, *entries_of(child, replace(started(), message_id="m4")))
        await append_and_wait(
            journal,
            *entries_of(child, MessageAdded("wait", "user", "m3"), MessageAdded("x", "user"), first_seq=2),
        )
        await answer(journal, "r3", "talk", "m1")
        taken = {name: (await _found(store, name)).run_id for name in ("m1", "m2", "m3", "m4")}
        _same(taken, {"m1": "r1", "m2": "r2", "m3": "r2", "m4": ""}, "who took what")
        _same(await _ids(store.pending()), ["m4"], "what is pending")
        rows = {row.run_id: row.message_id for row in await journal.runs()}
        _same(rows, {"r1": "m1", "r2": "m2", "c2": "", "r3": "m1"}, "the messages of the runs")


async def check_a_pending_message_is_dropped_once(open_journal: OpenJournal) -> None:
    async with _opened(open_journal) as journal:
        store = journal.sessions
        await store.accept(inbound("m1"))
        await store.accept(inbound("m2"))
        await answer(journal, "r1", "talk", "m2")
        tries = [await store.drop(name, "stop") for name in ("m1", "m1", "m2", "m3")]
        _same(tries, [True, False, False, False], "dropping: pending, dropped, taken, unknown")
        _same((await _found(store, "m1")).dropped, "stop", "the reason")
        await store.accept(inbound("m4"))
        _expect(await store.drop("m4", ""), "a message is dropped without a reason, too")
        _same(await store.pending(), [], "what is pending")


async def check_dropped_messages_are_found_by_where_the_journal_was(open_journal: OpenJournal) -> None:
    async with _opened(open_journal) as journal:
        store = journal.sessions
        for name in ("m1", "m2", "m3"):
            await store.accept(inbound(name))
        await store.drop("m2", "too late")
        await answer(journal, "r1", "talk", "m1")
        newest = await store.last_id()
        await store.drop("m3", "stop")
        key = (await _found(store, "m2")).message.session_id
        _same(await _ids(store.dropped(key, 0)), ["m2", "m3"], "what was dropped since the beginning")
        _same(await _ids(store.dropped(key, newest)), ["m3"], "what was dropped at the end")
        _same(await store.dropped(key, newest + 1), [], "what was dropped later than that")
        _same(await store.dropped("another", 0), [], "what was dropped elsewhere")


async def check_sessions_are_opened_found_and_renamed(open_journal: OpenJournal) -> None:
    """The latest used first; opening one again changes nothing but its time."""
    async with _opened(open_journal) as journal:
        store = journal.sessions
        talk = session("talk", "talk", used_at=10.0)
        team = session("team:coder:talk", "talk", used_at=30.0)
        hers = session("ann/talk", "ann/talk", user="ann", used_at=20.0)
        for row in (talk, team, hers):
            _same(await store.open_session(row), row, "a new session")
        again = replace(talk, user="ann", name="x", title="x", used_at=40.0)
        talk = replace(talk, used_at=40.0)
        _same(await store.open_session(again), talk, "a session that is opened again")
        _same(await store.session("talk"), talk, "the session of an id")
        _same(await store.session("tal_"), None, "a session that does not exist")
        _same(await store.sessions(), [talk, team, hers], "all sessions")
        _same(await store.sessions(limit=1), [talk], "the latest one")
        _same(await store.sessions(limit=-1), [], "none of them")
        _same(await store.sessions(user="ann"), [hers], "those of a user")
        _same(await store.sessions(conversation="talk"), [talk, team], "those of a conversation")
        _same(await store.sessions(user="ann", conversation="talk"), [], "another user's conversation")
        _expect(await store.rename("talk", "A talk"), "a session must be renamed")
        _expect(not await store.rename("nobody", "A talk"), "a session that does not exist is not renamed")
        _same(await store.session("talk"), replace(talk, title="A talk"), "the renamed session")


async def check_roots_keep_sessions_up_to_date(open_journal: OpenJournal) -> None:
    """A root makes the row that nobody made, the owner's; gives it its first title; a child does neither."""
    async with _opened(open_journal) as journal:
        store = journal.sessions
        await answer(journal, "r1", "talk", at=2_000.0)
        await append_and_wait(journal, *entries_of(Address("c1", "r1", "r1", "talk:coder:x"), started()))
        made = SessionRow("talk", "talk", OWNER, "talk", "", "asked in r1", "web", 2_001.0, 2_001.0)
        _same(await store.sessions(), [made], "the session that a root made")
        await answer(journal, "r2", "talk", at=3_000.0)
        _same(await store.session("talk"), replace(made, used_at=3_001.0), "after the second root")
        hers = await store.open_session(session("ann/x", "ann/x", user="ann"))
        await answer(journal, "r3", "ann/x", at=4_000.0)
        wanted = replace(hers, title="asked in r3", used_at=4_001.0)
        _same(await store.session("ann/x"), wanted, "an opened session after its first root")
        await store.rename("ann/x", "Mine")
        await answer(journal, "r4", "ann/x", at=5_000.0)
        wanted = replace(wanted, title="Mine", used_at=5_001.0)
        _same(await store.session("ann/x"), wanted, "a renamed session after the next root")


async def check_a_conversation_is_read_from_an_id_on(open_journal: OpenJournal) -> None:
    """All trees of all its sessions in commit order, nothing of others, in pages."""
    async with _opened(open_journal) as journal:
        store = journal.sessions
        _same(await store.last_id(), 0, "the newest id of an empty journal")
        await store.open_session(session("team:coder:talk", "talk"))
        stored: list[Entry] = []
        stored += await answer(journal, "r1", "talk")
        await answer(journal, "r2", "talk2")
        stored += await answer(journal, "r3", "team:coder:talk")
        child = Address("c3", "r3", "r3", "team:coder:talk:critic:abc123")
        stored += await append_and_wait(journal, *entries_of(child, started(), ended()))
        alien = Address("c2", "r2", "r2", "talk")
        await append_and_wait(journal, *entries_of(alien, started(), ended()))
        stored += await answer(journal, "r4", "talk")
        _same(await store.read_conversation("talk", 0, 100), stored, "the conversation")
        for place, entry in enumerate(stored):
            rest = await store.read_conversation("talk", entry.id, 3)
            _same(rest, stored[place + 1 : place + 4], f"three entries after entry {entry.id}")
        _same(await store.read_conversation("talk", -5, 2), stored[:2], "from before the beginning")
        _same(await store.read_conversation("talk", 10**30, 2), [], "from far beyond the end")
        _same(await store.read_conversation("talk", 0, 0), [], "no entries")
        _same(await store.read_conversation("nobody", 0, 9), [], "a conversation that does not exist")
        _same(await store.last_id(), stored[-1].id, "the newest id")


async def check_deleted_sessions_are_gone(open_journal: OpenJournal) -> None:
    """Rows, trees, events, messages; those of others stay; a run that goes on keeps all of it."""
    async with _opened(open_journal) as journal:
        store = journal.sessions
        await store.open_session(session("team:coder:talk", "talk"))
        await store.open_session(session("team:coder:other", "other"))
        for message_id, conversation in (("m1", "talk"), ("m2", "talk"), ("m3", "talk"), ("m4", "other")):
            await store.accept(inbound(message_id, conversation, client_id="c"))
            await store.accept(inbound(f"{message_id}x", conversation))
        await answer(journal, "r1", "talk", "m1")
        child = Address("c1", "r1", "r1", "talk:coder:abc123")
        await append_and_wait(journal, *entries_of(child, started()))
        team = await answer(journal, "r2", "team:coder:talk", "m2x")
        other = await answer(journal, "r3", "other", "m4")
        await _expect_usage_error(store.delete(("talk", "other")))
        _expect(len(await store.read_conversation("talk", 0, 99)) == 5, "a refused deletion deletes nothing")
        await append_and_wait(journal, *entries_of(child, ended(), first_seq=2))
        _same(await store.delete(("talk", "nobody")), 2, "runs that were deleted")
        _same(
            await journal.read_tree("r1") + await journal.read_run("c1"), [], "the events of a deleted tree"
        )
        _same(await journal.run_row("c1"), None, "the row of a deleted run")
        _same(await store.session("talk"), None, "the row of a deleted session")
        _same(await store.read_conversation("talk", 0, 99), team, "the conversation's other session")
        _same(await _ids(store.pending("talk")), [], "pending messages of the conversation")
        _same((await _found(store, "m2x")).run_id, "r2", "the message that another session took")
        _same(await store.inbound("m1"), None, "the message that a deleted run took")
        _same(await store.delete(("team:coder:talk", "team:coder:other")), 1, "runs of experts")
        _same(await store.inbound("m2x"), None, "its message")
        _same(await store.read_conversation("other", 0, 99), other, "another conversation")
        _same(await _ids(store.pending()), ["m4x"], "another conversation's pending message")
        _same(await store.delete(()), 0, "nothing")
        await answer(journal, "r5", "talk")
        _expect(len(await store.read_conversation("talk", 0, 99)) == 2, "the name can be used again")


async def check_any_text_can_be_stored_in_a_session(open_journal: OpenJournal) -> None:
    """What no file can hold is mended, the same way wherever it is asked for."""
    bad, mended = "a\ud800b", "a\ufffdb"
    async with _opened(open_journal) as journal:
        store = journal.sessions
        message = Message(bad, bad, bad, bad, 0.0, bad, "user", bad)
        stored = await store.accept(Inbound(message, bad, bad, "queue", bad))
        wanted = Message(mended, mended, mended, mended, 0.0, mended, "user", mended)
        _same(stored, Inbound(wanted, mended, mended, "queue", mended), "a message")
        _same(await store.accept(Inbound(replace(message, id="m2"), bad, bad)), stored, "the same client id")
        _same(await store.inbound(bad), stored, "the message of a bad id")
        _same(await store.pending(bad), [stored], "the pending of a bad conversation")
        row = await store.open_session(SessionRow(bad, bad, bad, bad, bad, bad, bad, 1.0, 1.0))
        _same(row.session_id, mended, "the id of a session")
        _expect(await store.rename(bad, "x" + bad), "a session of a bad id must be renamed")
        _same(await store.session(bad), replace(row, title="x" + mended), "the session")
        _same(
            await store.sessions(user=bad, conversation=bad), [replace(row, title="x" + mended)], "sessions"
        )
        await answer(journal, "r1", "talk", bad)
        _same((await _found(store, mended)).run_id, "r1", "who took it")
        _expect(not await store.drop(bad, bad), "a message that was taken is not dropped")
        _same(await store.delete((bad,)), 0, "runs that were deleted")
        _same(await store.read_conversation(bad, 0, 1), [], "the conversation")


SESSION_CHECKS: tuple[SessionCheck, ...] = (
    check_accepted_messages_come_back_as_they_were,
    check_a_client_id_is_one_message,
    check_a_message_id_is_one_message,
    check_two_processes_accept_one_message,
    check_the_run_that_names_a_message_takes_it,
    check_a_pending_message_is_dropped_once,
    check_dropped_messages_are_found_by_where_the_journal_was,
    check_sessions_are_opened_found_and_renamed,
    check_roots_keep_sessions_up_to_date,
    check_a_conversation_is_read_from_an_id_on,
    check_deleted_sessions_are_gone,
    check_any_text_can_be_stored_in_a_session,
)
"""All checks; each wants a journal of its own."""


@asynccontextmanager
async def _opened(open_journal: OpenJournal) -> AsyncGenerator[JournalWithSessions]:
    journal = await open_journal()
    try:
        yield journal
    finally:
        await journal.close()


async def _together(tries: Sequence[Coroutine[object, None, Inbound]]) -> list[Inbound]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one) for one in tries]
    return [task.result() for task in tasks]


async def _ids(found: Awaitable[Sequence[Inbound]]) -> list[str]:
    return [one.message.id for one in await found]


async def _found(store: SessionStore, message_id: str) -> Inbound:
    found = await store.inbound(message_id)
    if found is None:
        raise AssertionError(f"message {message_id!r} must be there")
    return found


def _expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise AssertionError(otherwise)


def _same(got: object, wanted: object, what: str) -> None:
    _expect(got == wanted, f"{what}: wanted {wanted!r}, got {got!r}")


async def _expect_usage_error(doing: Awaitable[object]) -> None:
    try:
        got = await doing
    except UsageError:
        return
    raise AssertionError(f"wanted UsageError, got {got!r}")
