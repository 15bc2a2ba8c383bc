"""What every Journal must do, as checks to run on an implementation.

A check is given `open_journal`, which opens the same, at first empty, journal each time it is
called, the way several processes would:

    @pytest.mark.parametrize("check", JOURNAL_CHECKS)
    def test_it_keeps_the_contract(check, tmp_path):
        asyncio.run(check(lambda: SqliteJournal.open(StoreSettings(str(tmp_path / "journal.db")))))
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager

from xclaw.contracts.agents import Limits
from xclaw.contracts.errors import Fenced, JournalError
from xclaw.contracts.events import Address, Entry, Event, MessageAdded, RunEnded, RunStarted
from xclaw.contracts.journal import Journal, RunRow
from xclaw.contracts.results import Outcome, Result
from xclaw.testing.sample_events import sample_events

OpenJournal = Callable[[], Awaitable[Journal]]
JournalCheck = Callable[[OpenJournal], Coroutine[object, None, None]]
PATIENCE_S = 30.0


async def append_and_wait(journal: Journal, *entries: Entry) -> tuple[Entry, ...]:
    """Append as one batch; answer the entries with their ids once durable. Raises what they failed with."""
    told: asyncio.Future[tuple[Entry, ...]] = asyncio.get_running_loop().create_future()

    def committed(stored: Sequence[Entry], error: BaseException | None) -> None:
        if error is not None:
            told.set_exception(error)
        else:
            told.set_result(tuple(stored))

    journal.append(entries, committed)
    async with asyncio.timeout(PATIENCE_S):
        return await told


def started(agent: str = "coder", text: str = "do it") -> RunStarted:
    return RunStarted(agent, text, "user", 0, "be brief", ("shell",), ("script:x",), "native", Limits())


def ended(outcome: Outcome = "success") -> RunEnded:
    return RunEnded(Result(outcome, "done"), outcome, turns=1)


def root_address(run_id: str, session_id: str = "cli") -> Address:
    return Address(run_id, run_id, "", session_id)


def entries_of(address: Address, *events: Event, first_seq: int = 1, at: float = 1_000.0) -> list[Entry]:
    """The events as entries that follow each other in one run."""
    return [Entry(address, seq, at + seq, event) for seq, event in enumerate(events, first_seq)]


async def check_entries_come_back_as_they_were(open_journal: OpenJournal) -> None:
    """Every kind of event, field for field, in order, with the ids that were told."""
    async with _opened(open_journal) as journal:
        entries = entries_of(root_address("r1"), *sample_events())
        stored = await append_and_wait(journal, *entries)
        _same([_without_id(entry) for entry in stored], entries, "the callback's entries")
        _same(await journal.read_run("r1"), list(stored), "the entries that were read")


async def check_ids_rise_in_append_order(open_journal: OpenJournal) -> None:
    """Over all runs of the process, and the callbacks come in that order."""
    async with _opened(open_journal) as journal:
        told: list[Entry] = []
        appended = [
            entry
            for seq in range(1, 21)
            for run in ("r1", "r2", "r3")
            for entry in entries_of(root_address(run), _event(seq), first_seq=seq)
        ]
        for entry in appended[:-1]:
            journal.append([entry], lambda stored, _: told.extend(stored))
        told.extend(await append_and_wait(journal, appended[-1]))
        _same([_without_id(entry) for entry in told], appended, "the order of the callbacks")
        ids = [entry.id for entry in told]
        _expect(ids[0] > 0 and ids == sorted(set(ids)), f"ids must rise from above 0, were {ids}")


async def check_an_existing_seq_is_fenced(open_journal: OpenJournal) -> None:
    """Nothing of the batch is stored, the run fails for good, other runs do not notice."""
    async with _opened(open_journal) as journal:
        address = root_address("r1")
        kept = await append_and_wait(journal, *entries_of(address, started(), _event(2)))
        clash = [*entries_of(address, _event(3), first_seq=3), *entries_of(address, _event(2), first_seq=2)]
        later = entries_of(address, _event(3), first_seq=3)
        other = entries_of(root_address("r2"), started())
        failures: list[BaseException | None] = []
        journal.append(clash, lambda _, error: failures.append(error))
        journal.append(later, lambda _, error: failures.append(error))
        _expect(len(await append_and_wait(journal, *other)) == 1, "another run must be stored")
        _expect(
            [type(failure) for failure in failures] == [Fenced, Fenced],
            f"a batch with an existing seq, and the next of the run, must be Fenced, were {failures}",
        )
        _same(await journal.read_run("r1"), list(kept), "the run after a fenced batch")


async def check_two_writers_of_a_run_fence_each_other(open_journal: OpenJournal) -> None:
    """Exactly one of two processes gets a seq."""
    async with _opened(open_journal) as first, _opened(open_journal) as second:
        address = root_address("r1")
        await append_and_wait(first, *entries_of(address, started()))
        await append_and_wait(second, *entries_of(address, MessageAdded("second", "user"), first_seq=2))
        await _expect_error(
            Fenced, append_and_wait(first, *entries_of(address, MessageAdded("first", "user"), first_seq=2))
        )
        texts = [entry.event for entry in await first.read_run("r1")][1:]
        _same(texts, [MessageAdded("second", "user")], "the events after the start")


async def check_trees_and_sessions_are_read_apart(open_journal: OpenJournal) -> None:
    """A tree by its root and from an id on; a session by its exact name."""
    async with _opened(open_journal) as journal:
        root = root_address("r1", "web-1")
        child = Address("c1", "r1", "r1", "web-1:coder:abc123")
        stored: list[Entry] = []
        for entry in (
            *entries_of(root, started()),
            *entries_of(child, started()),
            *entries_of(root_address("r2", "web-1"), started()),
            *entries_of(root_address("r3", "web-10"), started()),
            *entries_of(child, ended(), first_seq=2),
            *entries_of(root, ended(), first_seq=2),
        ):
            stored.extend(await append_and_wait(journal, entry))
        tree = [entry for entry in stored if entry.address.root_id == "r1"]
        _same(await journal.read_tree("r1"), tree, "the tree")
        _same(await journal.read_tree("r1", tree[1].id), tree[2:], "the tree after its second entry")
        _same(await journal.read_tree("r1", tree[-1].id), [], "the tree after its last entry")
        session = [entry for entry in stored if entry.address.session_id == "web-1"]
        _same(await journal.read_session("web-1"), session, "the session")
        _same(await journal.read_session("web-%"), [], "a session that does not exist")
        _same(await journal.read_run("nobody"), [], "a run that does not exist")


async def check_run_rows_follow_the_events(open_journal: OpenJournal) -> None:
    """Rows say what RunStarted and RunEnded said, newest first, filtered and limited."""
    async with _opened(open_journal) as journal:
        long_input = "first line " + "x" * 200 + "\nsecond line"
        await append_and_wait(journal, *entries_of(root_address("r1", "s1"), started("coder", long_input)))
        await append_and_wait(journal, *entries_of(Address("c1", "r1", "r1", "s1:x"), started("critic")))
        await append_and_wait(journal, *entries_of(root_address("r2", "s2"), started(), at=2_000.0))
        await append_and_wait(
            journal, *entries_of(root_address("r2", "s2"), ended("stuck"), first_seq=2, at=2_000.0)
        )
        row = await _row(journal, "r1")
        _same((row.agent, row.title), ("coder", long_input[:120]), "agent and title")
        _same((row.started_at, row.ended_at, row.outcome), (1_001.0, None, None), "times of an open run")
        done = await _row(journal, "r2")
        _same((done.started_at, done.ended_at, done.outcome), (2_001.0, 2_002.0, "stuck"), "times at the end")
        _same(await journal.run_row("nobody"), None, "the row of a run that does not exist")
        _same(await _run_ids(journal.runs()), ["r2", "c1", "r1"], "all runs")
        _same(await _run_ids(journal.runs(roots_only=True)), ["r2", "r1"], "roots")
        _same(await _run_ids(journal.runs(open_only=True)), ["c1", "r1"], "open runs")
        _same(await _run_ids(journal.runs(root_id="r1", roots_only=True)), ["r1"], "the root of a tree")
        _same(await _run_ids(journal.runs(session_id="s2")), ["r2"], "runs of a session")
        _same(await _run_ids(journal.runs(limit=1)), ["r2"], "the newest run")


async def check_a_claim_is_won_once(open_journal: OpenJournal) -> None:
    """Of many claims from the same owner one wins; ended runs keep theirs."""
    async with _opened(open_journal) as first, _opened(open_journal) as second:
        await append_and_wait(first, *entries_of(root_address("r1"), started()))
        child = Address("c1", "r1", "r1", "cli:coder:abc123")
        await append_and_wait(first, *entries_of(child, started(), ended()))
        row = await _row(first, "r1")
        async with asyncio.TaskGroup() as group:
            tries = [
                group.create_task(journal.claim("r1", row.owner, f"claimer-{number}"))
                for number, journal in enumerate([first, second] * 5)
            ]
        winners = [number for number, task in enumerate(tries) if task.result()]
        _expect(len(winners) == 1, f"one of ten claims must win, {len(winners)} did")
        rows = {row.run_id: row.owner for row in await second.runs(root_id="r1")}
        _same(rows, {"r1": f"claimer-{winners[0]}", "c1": row.owner}, "owners")
        _expect(not await first.claim("r1", "somebody", "me"), "a claim from a wrong owner must lose")


async def check_what_was_told_survives_a_restart(open_journal: OpenJournal) -> None:
    """Closing commits what is queued; ended runs are not open when it is opened again, other runs are."""
    journal = await open_journal()
    told: list[Entry] = []
    for entry in (
        *entries_of(root_address("r1"), started(), _event(2), ended()),
        *entries_of(root_address("r2"), started()),
    ):
        journal.append([entry], lambda stored, _: told.extend(stored))
    await journal.close()
    await asyncio.sleep(0)
    await _expect_error(JournalError, append_and_wait(journal, *entries_of(root_address("r3"), started())))
    await journal.close()
    _expect(len(told) == 4, f"closing must commit all 4 queued batches, told of {len(told)}")
    async with _opened(open_journal) as again:
        _same(await again.read_run("r1") + await again.read_run("r2"), told, "the entries after a restart")
        _same(await _run_ids(again.runs(open_only=True)), ["r2"], "the open runs after a restart")
        more = await append_and_wait(again, *entries_of(root_address("r2"), _event(2), first_seq=2))
        _expect(more[0].id > told[-1].id, "ids must go on rising after a restart")


async def check_any_text_can_be_stored(open_journal: OpenJournal) -> None:
    """Models and tools write anything; what no file can hold is mended, and never fails a run."""
    async with _opened(open_journal) as journal:
        address = root_address("r1", "会话 'a\"b")
        texts = ["", "\0", "你好 🎉", "'; DROP TABLE events; --", '"\\\n\r\u2028', "x" * 1_000_000]
        events = [MessageAdded(text, "user") for text in texts]
        await append_and_wait(journal, *entries_of(address, started(), *events))
        read = [entry.event for entry in await journal.read_session(address.session_id)]
        _same(read[1:], list[object](events), "the texts")
        await append_and_wait(
            journal, *entries_of(address, MessageAdded("a\ud800b", "user"), first_seq=len(texts) + 2)
        )
        _same((await journal.read_run("r1"))[-1].event, MessageAdded("a\ufffdb", "user"), "a lone surrogate")


JOURNAL_CHECKS: tuple[JournalCheck, ...] = (
    check_entries_come_back_as_they_were,
    check_ids_rise_in_append_order,
    check_an_existing_seq_is_fenced,
    check_two_writers_of_a_run_fence_each_other,
    check_trees_and_sessions_are_read_apart,
    check_run_rows_follow_the_events,
    check_a_claim_is_won_once,
    check_what_was_told_survives_a_restart,
    check_any_text_can_be_stored,
)
"""All checks; each wants a journal of its own."""


@asynccontextmanager
async def _opened(open_journal: OpenJournal) -> AsyncGenerator[Journal]:
    journal = await open_journal()
    try:
        yield journal
    finally:
        await journal.close()


def _event(number: int) -> Event:
    return MessageAdded(f"message {number}", "user")


def _without_id(entry: Entry) -> Entry:
    return Entry(entry.address, entry.seq, entry.at, entry.event)


async def _row(journal: Journal, run_id: str) -> RunRow:
    row = await journal.run_row(run_id)
    if row is None:
        raise AssertionError(f"run {run_id!r} must have a row")
    return row


async def _run_ids(rows: Awaitable[Sequence[RunRow]]) -> list[str]:
    return [row.run_id for row in await rows]


def _expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise AssertionError(otherwise)


def _same(got: object, wanted: object, what: str) -> None:
    _expect(got == wanted, f"{what}: wanted {wanted!r}, got {got!r}")


async def _expect_error(wanted: type[BaseException], doing: Awaitable[object]) -> None:
    try:
        got = await doing
    except wanted:
        return
    raise AssertionError(f"wanted {wanted.__name__}, got {got!r}")
