"""Reading: in bulk, exactly, and with clear words about what cannot be read."""

import asyncio
import time
from contextlib import closing
from pathlib import Path

import pytest

from store.journals import message_of, opened, start_of
from xclaw.contracts.errors import JournalError
from xclaw.contracts.events import Address, Entry, MessageAdded
from xclaw.contracts.tasks import Task
from xclaw.store.database import connect
from xclaw.testing.journal_conformance import append_and_wait, ended, entries_of, root_address, started


def test_open_trees_are_read_whole_in_one_go(tmp_path: Path) -> None:
    """A tree is open while any run of it is; runs of it that have ended are part of it."""

    async def main() -> None:
        async with opened(tmp_path / "journal.db") as journal:
            await append_and_wait(journal, start_of("r0"), *_end_of("r0"))
            child = Address("c1", "r1", "r1", "cli:coder:abc123")
            await append_and_wait(journal, start_of("r1"), *entries_of(child, started()), *_end_of("r1"))
            await journal.register_owner("p-2", 1, "")
            await append_and_wait(journal, start_of("r2"), message_of("r2", 2))
            trees = await journal.read_open_trees()
            assert {root: _places(tree) for root, tree in trees.items()} == {
                "r1": [("r1", 1), ("c1", 1), ("r1", 2)],
                "r2": [("r2", 1), ("r2", 2)],
            }
            assert trees["r1"] == await journal.read_tree("r1")
            assert list(await journal.read_open_trees("p-2")) == ["r2"]
            assert await journal.read_open_trees("nobody") == {}

    asyncio.run(main())


def test_a_thousand_interrupted_runs_are_read_in_under_two_seconds(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"

    async def main() -> None:
        async with opened(path) as journal:
            for number in range(1_000):
                run = f"r{number}"
                messages = [message_of(run, seq, "x" * 200) for seq in range(2, 61)]
                journal.append([start_of(run), *messages], lambda _, __: None)
        async with opened(path) as journal:
            began = time.process_time()  # of all threads, and whatever else the machine does
            trees = await journal.read_open_trees()
            assert time.process_time() - began < 2
            assert sum(len(_places(tree)) for tree in trees.values()) == 60_000

    asyncio.run(main())


def test_the_title_of_a_task_is_its_text_and_not_its_headers(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path / "journal.db") as journal:
            task = Task("coder", "\n  Fix the parser.\nThen test it.", "delegate", "0")
            plain = started("coder", "[Task workspace: /w]\n\nFix the parser.")
            event = type(plain)(
                plain.agent,
                plain.input,
                plain.caller,
                1,
                plain.instructions,
                plain.tools,
                plain.models,
                plain.dialect,
                plain.limits,
                task=task,
            )
            await append_and_wait(journal, *entries_of(root_address("c1"), event))
            await append_and_wait(journal, *entries_of(root_address("r2"), started("coder", " \n\ud800")))
            assert [row.title for row in await journal.runs()] == ["\ufffd", "Fix the parser."]

    asyncio.run(main())


def test_fields_of_a_newer_xclaw_are_left_out(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path / "journal.db") as journal:
            await append_and_wait(journal, start_of("r1"), message_of("r1", 2, "kept"))
            _rewrite(tmp_path / "journal.db", "body = json_set(body, '$.mood', json('{\"of\": 1}'))")
            assert (await journal.read_run("r1"))[1].event == MessageAdded("kept", "user")

    asyncio.run(main())


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("kind = 'telepathy'", "'telepathy' are unknown to this xclaw: a newer one wrote them"),
        ("body = '{\"text\": 7}'", "a 'message_added' event cannot be read"),
        ("body = '{\"text\": '", "a 'message_added' event cannot be read"),
        ("body = ''", "a 'message_added' event cannot be read"),
        ("body = '\"\\ud800\"'", "a 'message_added' event cannot be read"),
    ],
)
def test_an_event_that_cannot_be_read_is_named(change: str, says: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path / "journal.db") as journal:
            await append_and_wait(journal, start_of("r1"), message_of("r1", 2))
            await append_and_wait(journal, start_of("r2"))
            _rewrite(tmp_path / "journal.db", change)
            with pytest.raises(JournalError) as caught:
                await journal.read_run("r1")
            assert str(caught.value).startswith("event 2 (run 'r1', seq 2): ")
            assert says in str(caught.value)
            assert len(await journal.read_run("r2")) == 1, "other runs can be read"
            trees = await journal.read_open_trees()
            assert isinstance(trees["r1"], JournalError)
            assert _places(trees["r2"]) == [("r2", 1)]

    asyncio.run(main())


def test_a_closed_journal_says_so(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path / "journal.db") as journal:
            pass
        for reading in (journal.read_run("r1"), journal.runs(), journal.claim("r1", "a", "b")):
            with pytest.raises(JournalError, match="closed"):
                await reading

    asyncio.run(main())


def test_a_limit_below_one_reads_no_runs(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path / "journal.db") as journal:
            await append_and_wait(journal, start_of("r1"))
            assert await journal.runs(limit=0) == []
            assert await journal.runs(limit=-1) == []
            assert len(await journal.runs(limit=10**30)) == 1

    asyncio.run(main())


def test_what_no_file_can_hold_is_found_nowhere(tmp_path: Path) -> None:
    """Ids and numbers come from clients."""

    async def main() -> None:
        async with opened(tmp_path / "journal.db") as journal:
            await append_and_wait(journal, start_of("r1"))
            assert await journal.read_run("\ud800") == []
            assert await journal.read_session("\ud800") == []
            assert await journal.run_row("\ud800") is None
            assert await journal.runs(session_id="\ud800", root_id="\udfff") == []
            assert await journal.read_tree("\ud800", -(10**30)) == []
            assert await journal.read_tree("r1", 10**30) == []
            assert len(await journal.read_tree("r1", -(10**30))) == 1

    asyncio.run(main())


def _places(tree: list[Entry] | JournalError) -> list[tuple[str, int]]:
    assert not isinstance(tree, JournalError)
    return [(entry.address.run_id, entry.seq) for entry in tree]


def _end_of(run_id: str) -> list[Entry]:
    return entries_of(root_address(run_id), ended(), first_seq=2)


def _rewrite(path: Path, change: str) -> None:
    with closing(connect(path)) as connection:
        connection.execute(f"UPDATE events SET {change} WHERE seq = 2")
