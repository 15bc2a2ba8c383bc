"""The journal suite catches careless journals; that it passes a right one is tests/store's to show."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from xclaw.contracts.events import Entry, MessageAdded
from xclaw.contracts.journal import Committed, Journal, RunRow
from xclaw.store.journal import SqliteJournal
from xclaw.store.settings import StoreSettings
from xclaw.testing.journal_conformance import (
    JournalCheck,
    check_a_claim_is_won_once,
    check_an_existing_seq_is_fenced,
    check_any_text_can_be_stored,
    check_entries_come_back_as_they_were,
    check_ids_rise_in_append_order,
    check_run_rows_follow_the_events,
    check_trees_and_sessions_are_read_apart,
    check_two_writers_of_a_run_fence_each_other,
    check_what_was_told_survives_a_restart,
)


class _Passing:
    """Passes everything on to a right journal; its subclasses do one thing wrong."""

    def __init__(self, right: Journal) -> None:
        self.right = right

    def append(self, entries: Sequence[Entry], committed: Committed) -> None:
        self.right.append(entries, committed)

    async def read_run(self, run_id: str) -> list[Entry]:
        return await self.right.read_run(run_id)

    async def read_tree(self, root_id: str, after_id: int = 0) -> list[Entry]:
        return await self.right.read_tree(root_id, after_id)

    async def read_session(self, session_id: str) -> list[Entry]:
        return await self.right.read_session(session_id)

    async def run_row(self, run_id: str) -> RunRow | None:
        return await self.right.run_row(run_id)

    async def runs(
        self,
        *,
        session_id: str | None = None,
        root_id: str | None = None,
        roots_only: bool = False,
        open_only: bool = False,
        limit: int = 100,
    ) -> list[RunRow]:
        return await self.right.runs(
            session_id=session_id, root_id=root_id, roots_only=roots_only, open_only=open_only, limit=limit
        )

    async def claim(self, root_id: str, from_owner: str, to_owner: str) -> bool:
        return await self.right.claim(root_id, from_owner, to_owner)

    async def close(self) -> None:
        await self.right.close()


class _TellsTooEarly(_Passing):
    def append(self, entries: Sequence[Entry], committed: Committed) -> None:
        asyncio.get_running_loop().call_soon(committed, entries, None)
        self.right.append(entries, lambda _, __: None)


class _CallsBackInReverse(_Passing):
    """Keeps the callbacks of the first runs until the last one comes."""

    def __init__(self, right: Journal) -> None:
        super().__init__(right)
        self._kept: list[tuple[Committed, Sequence[Entry], BaseException | None]] = []

    def append(self, entries: Sequence[Entry], committed: Committed) -> None:
        def keep(stored: Sequence[Entry], error: BaseException | None) -> None:
            self._kept.append((committed, stored, error))
            if len(self._kept) == 60:
                for told, kept, failed in reversed(self._kept):
                    told(kept, failed)

        self.right.append(entries, keep)


class _ForgetsFailures(_Passing):
    """Swallows the failure of the batch that clashes, so that its run goes on with a hole."""

    def append(self, entries: Sequence[Entry], committed: Committed) -> None:
        self.right.append(entries, lambda stored, _: committed(stored, None))


class _SplitsBatches(_Passing):
    def append(self, entries: Sequence[Entry], committed: Committed) -> None:
        for entry in entries[:-1]:
            self.right.append([entry], lambda _, __: None)
        self.right.append(entries[-1:], committed)


class _ReadsPrefixes(_Passing):
    async def read_session(self, session_id: str) -> list[Entry]:
        found = [row.run_id for row in await self.right.runs() if row.session_id.startswith(session_id)]
        return [entry for run in sorted(found) for entry in await self.right.read_run(run)]


class _IgnoresAfterId(_Passing):
    async def read_tree(self, root_id: str, after_id: int = 0) -> list[Entry]:
        return await self.right.read_tree(root_id)


class _OldestFirst(_Passing):
    async def runs(
        self,
        *,
        session_id: str | None = None,
        root_id: str | None = None,
        roots_only: bool = False,
        open_only: bool = False,
        limit: int = 100,
    ) -> list[RunRow]:
        return list(reversed(await self.right.runs(root_id=root_id, open_only=open_only)))


class _LetsEverybodyClaim(_Passing):
    async def claim(self, root_id: str, from_owner: str, to_owner: str) -> bool:
        await self.right.claim(root_id, from_owner, to_owner)
        return True


class _DropsOnClose(_Passing):
    def append(self, entries: Sequence[Entry], committed: Committed) -> None:
        asyncio.get_running_loop().call_soon(lambda: self.right.append(entries, committed))


class _CutsText(_Passing):
    def append(self, entries: Sequence[Entry], committed: Committed) -> None:
        cut = [
            Entry(entry.address, entry.seq, entry.at, MessageAdded(entry.event.text[:1_000], "user"))
            if isinstance(entry.event, MessageAdded)
            else entry
            for entry in entries
        ]
        self.right.append(cut, committed)


@pytest.mark.parametrize(
    ("flawed", "check"),
    [
        (_TellsTooEarly, check_entries_come_back_as_they_were),
        (_TellsTooEarly, check_two_writers_of_a_run_fence_each_other),
        (_CallsBackInReverse, check_ids_rise_in_append_order),
        (_ForgetsFailures, check_an_existing_seq_is_fenced),
        (_SplitsBatches, check_an_existing_seq_is_fenced),
        (_ReadsPrefixes, check_trees_and_sessions_are_read_apart),
        (_IgnoresAfterId, check_trees_and_sessions_are_read_apart),
        (_OldestFirst, check_run_rows_follow_the_events),
        (_LetsEverybodyClaim, check_a_claim_is_won_once),
        (_DropsOnClose, check_what_was_told_survives_a_restart),
        (_CutsText, check_any_text_can_be_stored),
    ],
)
def test_careless_journals_are_caught(flawed: type[_Passing], check: JournalCheck, tmp_path: Path) -> None:
    settings = StoreSettings(str(tmp_path / "journal.db"))

    async def open_flawed() -> Journal:
        return flawed(await SqliteJournal.open(settings))

    with pytest.raises(AssertionError):
        asyncio.run(check(open_flawed))
