"""Who drives a run, whether it lives, and how a process that lost its runs is stopped."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from store.journals import message_of, opened, start_of
from xclaw.contracts.errors import Fenced, JournalError
from xclaw.contracts.events import RunResumed
from xclaw.store.owners import OwnerLocks
from xclaw.testing.journal_conformance import append_and_wait, ended, entries_of, root_address

CHILD = """
import asyncio, os, sys
from xclaw.store.journal import SqliteJournal
from xclaw.store.settings import StoreSettings

async def main():
    journal = await SqliteJournal.open(StoreSettings(sys.argv[1]))
    await journal.register_owner(sys.argv[2], os.getpid(), "/tmp/socket")
    print("registered", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await journal.close()

asyncio.run(main())
"""


def _child(path: Path, owner: str) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path), owner],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "registered\n"
    return child


def _end(child: subprocess.Popen[str], *, kill: bool) -> None:
    if kill:
        child.send_signal(signal.SIGKILL)
    child.communicate(timeout=30)


@pytest.mark.parametrize("owner", ["p-1", "P-1", "进程/../1", "x" * 300])
def test_an_owner_lives_until_its_process_is_killed(owner: str, tmp_path: Path) -> None:
    """D01: the lock of a killed process holds nobody up; its row tells who it was."""
    path = tmp_path / "journal.db"

    async def main() -> None:
        child = await asyncio.to_thread(_child, path, owner)
        async with opened(path) as journal:
            assert journal.owner_alive(owner)
            row = await journal.owner_row(owner)
            assert row is not None
            assert (row.pid, row.socket) == (child.pid, "/tmp/socket")
            with pytest.raises(JournalError, match="held by a process that lives"):
                await journal.register_owner(owner, os.getpid(), "")
            _end(child, kill=True)
            assert not journal.owner_alive(owner)
            assert [row.owner for row in await journal.owners()] == [owner]
            await journal.remove_owner(owner)
            assert await journal.owner_row(owner) is None
            assert not journal.owner_alive(owner)

    asyncio.run(main())
    assert {item.name for item in tmp_path.iterdir()} == {"journal.db", "journal.db.owners"}
    assert list((tmp_path / "journal.db.owners").iterdir()) == []


def test_a_process_that_ends_well_takes_its_row_along(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"

    async def main() -> None:
        child = await asyncio.to_thread(_child, path, "p-1")
        _end(child, kill=False)
        async with opened(path) as journal:
            assert await journal.owners() == []
            assert not journal.owner_alive("p-1")
            await journal.register_owner("p-1", os.getpid(), "")
            assert journal.owner_alive("p-1")

    asyncio.run(main())


def test_removing_a_living_owner_does_not_make_it_look_dead(tmp_path: Path) -> None:
    async def main() -> None:
        path = tmp_path / "journal.db"
        async with opened(path) as first, opened(path) as second:
            await first.register_owner("p-1", os.getpid(), "")
            await second.remove_owner("p-1")
            assert second.owner_alive("p-1")

    asyncio.run(main())


def test_a_name_that_is_taken_and_dropped_in_turns_is_never_held_twice(tmp_path: Path) -> None:
    """The file goes with its holder; a lock on a file that has gone must not count."""
    database = str(tmp_path / "journal.db")
    inside = threading.Semaphore(1)

    def take_turns(_: int) -> int:
        locks = OwnerLocks(database)
        taken = 0
        for _ in range(2_500):
            try:
                locks.take("session")
            except JournalError:
                continue
            taken += 1
            assert inside.acquire(blocking=False), "two hold the same name"
            for _ in range(5):
                os.sched_yield()
            inside.release()
            locks.drop("session")
        return taken

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(take_turns, range(4))) > 0


def test_an_owner_that_nobody_registered_is_not_alive(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path / "journal.db") as journal:
            assert not journal.owner_alive("")
            assert not journal.owner_alive("nobody")
            assert await journal.owner_row("nobody") is None

    asyncio.run(main())


def test_runs_belong_to_the_registered_owner_and_follow_a_resume(tmp_path: Path) -> None:
    async def main() -> None:
        path = tmp_path / "journal.db"
        async with opened(path) as first, opened(path) as second:
            await first.register_owner("p-1", os.getpid(), "")
            await append_and_wait(first, start_of("r1"))
            assert await _owner(first.path, "r1") == "p-1"
            assert await second.claim("r1", "p-1", "p-2")
            resumed = entries_of(root_address("r1"), RunResumed("p-2"), first_seq=2)
            await append_and_wait(second, *resumed)
            assert await _owner(first.path, "r1") == "p-2"

    asyncio.run(main())


def test_a_process_that_lost_its_run_cannot_write_to_it_even_when_it_comes_first(tmp_path: Path) -> None:
    """The new owner has not written yet, so the seq is free: the claim alone must stop the old one."""

    async def main() -> None:
        path = tmp_path / "journal.db"
        async with opened(path) as zombie, opened(path) as successor:
            await zombie.register_owner("p-1", os.getpid(), "")
            await successor.register_owner("p-2", os.getpid(), "")
            for run_id in ("r1", "r2"):
                await append_and_wait(zombie, start_of(run_id))
                await append_and_wait(zombie, message_of(run_id, 2))
            assert await successor.claim("r1", "p-1", "p-2")
            with pytest.raises(Fenced, match="taken over"):
                await append_and_wait(zombie, message_of("r1", 3))
            assert len(await append_and_wait(zombie, message_of("r2", 3))) == 1, "its other run is its own"
            await append_and_wait(successor, message_of("r1", 3, "mine"))
            with pytest.raises(Fenced):
                await append_and_wait(zombie, message_of("r1", 4))

    asyncio.run(main())


def test_finished_work_is_not_claimed(tmp_path: Path) -> None:
    """D08(b): a run that ended before the crash is not open after it, however often we start."""

    async def main() -> None:
        path = tmp_path / "journal.db"
        async with opened(path) as journal:
            await journal.register_owner("p-1", os.getpid(), "")
            await append_and_wait(
                journal, start_of("r1"), *entries_of(root_address("r1"), ended(), first_seq=2)
            )
        for _ in range(3):
            async with opened(path) as journal:
                assert await journal.runs(open_only=True) == []
                assert await journal.read_open_trees() == {}
                assert not await journal.claim("r1", "p-1", "p-2")
                assert len(await journal.read_run("r1")) == 2

    asyncio.run(main())


async def _owner(path: str, run_id: str) -> str:
    async with opened(Path(path)) as journal:
        row = await journal.run_row(run_id)
        assert row is not None
        return row.owner
