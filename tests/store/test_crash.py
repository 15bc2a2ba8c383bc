"""A process is killed while it writes; what it was told is durable must be."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from store.journals import message_of, opened
from xclaw.contracts.errors import JournalError
from xclaw.contracts.events import Entry, MessageAdded, RunResumed, RunStarted
from xclaw.testing.journal_conformance import append_and_wait, entries_of, root_address

RUNS = 8
BATCH = 3

CHILD = f"""
import asyncio, os, sys
from xclaw.contracts.events import MessageAdded
from xclaw.store.journal import SqliteJournal
from xclaw.store.settings import StoreSettings
from xclaw.testing.journal_conformance import entries_of, root_address, started

def tell(stored, error):
    assert error is None
    text = "".join(f"{{entry.id}} {{entry.address.run_id}} {{entry.seq}}\\n" for entry in stored)
    os.write(1, text.encode())

async def write(journal, run_id):
    seq = 1
    while True:
        events = [MessageAdded(f"{{run_id}} {{seq + n}} " + "x" * 500, "user") for n in range({BATCH})]
        if seq == 1:
            events[0] = started()
        done = asyncio.Event()
        def committed(stored, error):
            tell(stored, error)
            done.set()
        journal.append(entries_of(root_address(run_id), *events, first_seq=seq), committed)
        # Every other batch is not waited for, so that some are always queued.
        if seq % 2:
            await done.wait()
        seq += {BATCH}

async def main():
    journal = await SqliteJournal.open(StoreSettings(sys.argv[1]))
    await journal.register_owner("victim", os.getpid(), "")
    async with asyncio.TaskGroup() as group:
        for number in range({RUNS}):
            group.create_task(write(journal, f"r{{number}}"))

asyncio.run(main())
"""


def _write_and_be_killed(path: Path, after: int) -> dict[int, tuple[str, int]]:
    """What the child was told is durable, by id, up to its death."""
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(path)], stdout=subprocess.PIPE)
    assert child.stdout is not None
    lines: list[bytes] = [child.stdout.readline() for _ in range(after)]
    child.kill()
    lines.extend(child.stdout.read().splitlines(keepends=True))
    child.stdout.close()
    assert child.wait(30) == -9, "it must have been alive until it was killed"
    told: dict[int, tuple[str, int]] = {}
    for line in lines:
        if line.endswith(b"\n"):
            number, run_id, seq = line.decode().split()
            told[int(number)] = (run_id, int(seq))
    return told


@pytest.mark.parametrize("after", [1, 50, 2_000])
def test_everything_that_was_told_durable_survives_a_kill_and_nothing_is_torn(
    after: int, tmp_path: Path
) -> None:
    """D06, D08: kill -9 in the middle of group commits."""
    path = tmp_path / "journal.db"
    told = _write_and_be_killed(path, after)
    assert len(told) >= after

    async def main() -> None:
        async with opened(path) as journal:
            trees = {root: _read(tree) for root, tree in (await journal.read_open_trees("victim")).items()}
            stored = {entry.id: entry for entries in trees.values() for entry in entries}
            for number, (run_id, seq) in told.items():
                assert (stored[number].address.run_id, stored[number].seq) == (run_id, seq)
            for run_id, entries in trees.items():
                assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
                assert len(entries) % BATCH == 0, "a batch is in or out"
                assert isinstance(entries[0].event, RunStarted)
                for entry in entries[1:]:
                    wanted = MessageAdded(f"{run_id} {entry.seq} " + "x" * 500, "user")
                    assert entry.event == wanted
            assert {row.run_id for row in await journal.runs(open_only=True)} == set(trees)

    asyncio.run(main())


def test_a_killed_process_leaves_runs_that_another_takes_over(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    _write_and_be_killed(path, 100)

    async def main() -> None:
        async with opened(path) as journal:
            assert [row.owner for row in await journal.owners()] == ["victim"]
            assert not journal.owner_alive("victim")
            for root_id, tree in (await journal.read_open_trees("victim")).items():
                assert await journal.claim(root_id, "victim", "successor")
                seq = len(_read(tree)) + 1
                await append_and_wait(
                    journal, *entries_of(root_address(root_id), RunResumed("successor"), first_seq=seq)
                )
                await append_and_wait(journal, message_of(root_id, seq + 1))
            assert await journal.read_open_trees("victim") == {}

    asyncio.run(main())


def _read(tree: list[Entry] | JournalError) -> list[Entry]:
    assert not isinstance(tree, JournalError)
    return tree
