"""The SQLite journal keeps the Journal contract."""

import asyncio
from pathlib import Path
from typing import Literal

import pytest

from xclaw.contracts.events import EVENT_TYPES
from xclaw.store.journal import SqliteJournal
from xclaw.store.settings import StoreSettings
from xclaw.testing.journal_conformance import JOURNAL_CHECKS, JournalCheck
from xclaw.testing.sample_events import sample_events


@pytest.mark.parametrize("synchronous", ["normal", "full"])
@pytest.mark.parametrize("check", JOURNAL_CHECKS)
def test_the_sqlite_journal_keeps_the_contract(
    check: JournalCheck, synchronous: Literal["normal", "full"], tmp_path: Path
) -> None:
    settings = StoreSettings(str(tmp_path / "journal.db"), synchronous)
    asyncio.run(check(lambda: SqliteJournal.open(settings)))


def test_the_samples_have_every_kind_that_is_stored() -> None:
    assert {event.kind for event in sample_events()} == set(EVENT_TYPES) - {"text_delta"}
