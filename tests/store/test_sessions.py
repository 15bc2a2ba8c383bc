"""The SessionStore contract on SQLite, and what the file adds to it."""

import asyncio
from pathlib import Path

import pytest

from xclaw.store.journal import SqliteJournal
from xclaw.store.settings import StoreSettings
from xclaw.testing.session_conformance import SESSION_CHECKS, SessionCheck


@pytest.mark.parametrize("check", SESSION_CHECKS, ids=lambda check: check.__name__)
def test_it_keeps_the_contract(check: SessionCheck, tmp_path: Path) -> None:
    asyncio.run(check(lambda: SqliteJournal.open(StoreSettings(str(tmp_path / "journal.db")))))
