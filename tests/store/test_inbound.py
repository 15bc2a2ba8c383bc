"""Accepted messages: durable before anybody is told so, taken with the run that answers them."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from store.journals import locked, opened
from xclaw.contracts.errors import Fenced
from xclaw.testing.session_conformance import answer, inbound

CHILD = """
import asyncio, os, sys
from xclaw.store.journal import SqliteJournal
from xclaw.store.settings import StoreSettings
from xclaw.contracts.errors import Fenced
from xclaw.testing.session_conformance import answer, inbound

def tell(word, number):
    os.write(1, f"{word} {number}\\n".encode())

async def main():
    journal = await SqliteJournal.open(StoreSettings(sys.argv[1]))
    for number in range(1_000_000):
        await journal.sessions.accept(inbound(f"m{number}"))
        tell("accepted", number)
        await answer(journal, f"r{number}", "talk", f"m{number}")
        tell("started", number)

asyncio.run(main())
"""


@pytest.mark.parametrize("lines", [1, 2, 101])
def test_a_killed_process_leaves_a_message_pending_or_taken_and_never_both(
    lines: int, tmp_path: Path
) -> None:
    """Kill -9 between the acceptance and the start of the run, and after it."""
    path = tmp_path / "journal.db"
    told = _accept_and_be_killed(path, lines)

    async def main() -> None:
        async with opened(path) as journal:
            pending = {one.message.id for one in await journal.sessions.pending()}
            answered = {row.message_id: row.run_id for row in await journal.runs(limit=1_000_000)}
            for word, number in told:
                message = await journal.sessions.inbound(f"m{number}")
                assert message is not None, "what was told accepted is there"
                if word == "started":
                    assert message.run_id == f"r{number}"
            assert pending.isdisjoint(answered)
            assert len(pending) <= 1
            for message_id in pending:
                await answer(journal, "successor", "talk", message_id)
            assert await journal.sessions.pending() == []

    asyncio.run(main())


def _accept_and_be_killed(path: Path, lines: int) -> list[tuple[str, int]]:
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(path)], stdout=subprocess.PIPE)
    assert child.stdout is not None
    told: list[bytes] = [child.stdout.readline() for _ in range(lines)]
    child.kill()
    told.extend(child.stdout.read().splitlines(keepends=True))
    child.stdout.close()
    assert child.wait(30) == -9, "it must have been alive until it was killed"
    whole = [line.decode().split() for line in told if line.endswith(b"\n")]
    return [(word, int(number)) for word, number in whole]


def test_a_message_whose_acceptance_is_no_longer_waited_for_is_accepted(tmp_path: Path) -> None:
    """A client that hangs up at the wrong moment."""

    async def main() -> None:
        path = tmp_path / "journal.db"
        async with opened(path) as journal:
            blocker = locked(path)
            waiting = asyncio.ensure_future(journal.sessions.accept(inbound("m1")))
            more = asyncio.ensure_future(journal.sessions.accept(inbound("m2")))
            await asyncio.sleep(0)
            waiting.cancel()
            more.cancel()
            await asyncio.wait((waiting, more))
            assert waiting.cancelled()
            blocker.rollback()
            blocker.close()
            await journal.sessions.accept(inbound("m3"))
            pending = await journal.sessions.pending()
            assert [one.message.id for one in pending] == ["m1", "m2", "m3"]

    asyncio.run(main())


def test_a_batch_that_is_not_committed_takes_no_message(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path / "journal.db") as journal:
            await journal.sessions.accept(inbound("m1"))
            await answer(journal, "r1", "talk")
            with pytest.raises(Fenced):
                await answer(journal, "r1", "talk", "m1")
            assert [one.message.id for one in await journal.sessions.pending()] == ["m1"]
            row = await journal.run_row("r1")
            assert row is not None
            assert row.message_id == ""

    asyncio.run(main())
