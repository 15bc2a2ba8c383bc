"""`kill -9` at each change of a coordinator's phases, then resume: it goes on in its phase (SPEC H1, K6)."""

import asyncio
import json
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from behaviour.coordinated import call, checking, coordinator, delivered, planned, running, worker
from behaviour.harness import write_script
from behaviour.test_coordinator import EXPLORER, QUESTIONS
from crash.test_kill import Zygote
from xclaw.contracts.events import (
    ArtifactDelivered,
    ChildSpawned,
    Entry,
    ModelAnswered,
    PhaseChanged,
    RunEnded,
)
from xclaw.store.journal import SqliteJournal
from xclaw.store.settings import StoreSettings

THERE, MISSING = "test -f a.py", "test -f missing.py"
JOB = [
    coordinator(
        call("research", tasks=QUESTIONS),
        call("write_plan", plan=[planned("a"), planned("b", depends_on=["a"])]),
        call("implement"),
        checking(THERE, MISSING),
        call("write_plan", plan=[planned("missing")]),
        call("implement"),
        checking(THERE, MISSING),
        {"text": "Done."},
    ),
    EXPLORER,
    worker("coder", *delivered("a.py"), when="module a.py"),
    worker("coder", *delivered("b.py"), when="module b.py"),
    worker("coder", *delivered("missing.py"), when="module missing.py"),
    running(THERE, MISSING),
]


@dataclass
class Bench:
    """One job, on processes that are killed."""

    zygote: Zygote
    model: str

    def do(self, what: str, home: str, **more: Any) -> tuple[int, str]:
        return self.zygote.do(
            do=what,
            text="Rework it.",
            home=home,
            agent="coordinator",
            model=self.model,
            allow_shell=True,
            **more,
        )


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    zygote = Zygote()
    yield Bench(zygote, write_script(tmp_path_factory.mktemp("script"), JOB))
    zygote.stop()


def entries_in(home: str) -> list[Entry]:
    async def read() -> list[Entry]:
        journal = await SqliteJournal.open(StoreSettings(str(Path(home) / "workspace" / "xclaw.db")))
        try:
            rows = await journal.runs(roots_only=True)
            return await journal.read_tree(rows[0].root_id) if rows else []
        finally:
            await journal.close()

    return asyncio.run(read())


def changes(bench: Bench) -> list[int]:
    """The numbers of the events that change a phase, of a job that nobody kills."""
    with tempfile.TemporaryDirectory() as home:
        code, out = bench.do("run", home)
        assert (code, out) == (0, '[["success", ""]]')
        entries = entries_in(home)
    return [number for number, entry in enumerate(entries, 1) if isinstance(entry.event, PhaseChanged)]


def check(entries: list[Entry], before: list[Entry]) -> None:
    events = [entry.event for entry in entries]
    keys = Counter(e.task.key for e in events if isinstance(e, ChildSpawned))
    assert {key: n for key, n in keys.items() if not key.startswith("verify:")} == {
        "research:1": 1,
        "task:a": 1,
        "task:b": 1,
        "task:missing": 1,
    }
    ends = Counter(entry.address.run_id for entry in entries if isinstance(entry.event, RunEnded))
    assert set(ends.values()) == {1}
    files = sorted(e.name for e in events if isinstance(e, ArtifactDelivered))
    assert files == ["a.py", "b.py", "missing.py"]
    assert [e.verdict for e in events if isinstance(e, PhaseChanged) and e.verdict] == ["failed", "passed"]
    paid = [entry for entry in before if isinstance(entry.event, ModelAnswered)]
    turns = Counter(
        (entry.address.run_id, entry.event.turn)
        for entry in entries
        if isinstance(entry.event, ModelAnswered)
    )
    assert all(
        turns[(e.address.run_id, e.event.turn)] == 1 for e in paid if isinstance(e.event, ModelAnswered)
    )


@pytest.mark.timeout(600)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_coordinator_killed_at_any_change_of_its_phases_goes_on_there(bench: Bench, when: str) -> None:
    for number in changes(bench)[0 if when == "before" else 1 :: 2]:
        with tempfile.TemporaryDirectory() as home:
            code, out = bench.do("run", home, number=number, when=when)
            assert code == -signal.SIGKILL, f"event {number}: {out}"
            before = entries_in(home)
            if not before:  # the run's beginning was in the same batch: there is nothing to go on with
                continue
            code, out = bench.do("resume", home)
            assert code == 0, out
            if any(isinstance(e.event, RunEnded) and not e.address.parent_id for e in before):
                assert out == "[]"  # its end was in the same batch
                continue
            assert json.loads(out) == [["success", ""]], f"event {number}"
            check(entries_in(home), before)
            assert bench.do("resume", home) == (0, "[]")
