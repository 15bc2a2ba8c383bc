"""`kill -9` around a question to a person: asked once, answered once, and the call runs at most once (SPEC J2)."""

import signal
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_kill import Provider, Zygote, count, entries_in

from xclaw.contracts.events import (
    ApprovalAnswered,
    ApprovalAsked,
    Entry,
    RunEnded,
    ToolCallEnded,
    ToolCallStarted,
)
from xclaw.loop.state import INTERRUPTED

RUNNER = "---\nname: runner\ndescription: runs\ntools: shell\n---\nYou are the runner.\n"
COMMANDS = ("echo one >> log.txt", "echo two >> log.txt")
JOB: list[dict[str, object]] = [
    {
        "agent": "you are the orchestrator",
        "replies": [
            {"calls": [{"name": "delegate", "arguments": {"agent": "runner", "task": "RUN-IT: both"}}]},
            {"text": "All done."},
        ],
    },
    {
        "agent": "you are the runner",
        "when": "RUN-IT",
        "replies": [
            *({"calls": [{"name": "shell", "arguments": {"command": command}}]} for command in COMMANDS),
            {"text": {"status": "success", "summary_data": {"did": "both"}, "artifact_pointers": {}}},
        ],
    },
]


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    provider = Provider(tmp_path_factory.mktemp("provider"), JOB)
    yield provider
    provider.stop()


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    zygote = Zygote()
    yield zygote
    zygote.stop()


def order_for(home: Path, provider: Provider, **more: object) -> dict[str, Any]:
    (home / "agents").mkdir(exist_ok=True)
    (home / "agents" / "runner.md").write_text(RUNNER)
    return {"text": "Run both", "home": str(home), "url": provider.url, "answer": "once", **more}


def check(entries: list[Entry], home: Path) -> str:
    """Each command ran once, or its call says that it is not known whether it did."""
    calls = [e.event for e in entries if isinstance(e.event, ToolCallEnded) and e.event.name == "shell"]
    assert len(calls) == 2
    lost = sum(call.content == INTERRUPTED for call in calls)
    assert lost <= 1
    logs = list((home / "workspace").rglob("log.txt"))
    ran = Counter(logs[0].read_text().split()) if logs else Counter[str]()
    assert set(ran.values()) <= {1}, "a call ran twice"
    assert sum(ran.values()) >= 2 - lost
    assert count(entries, ApprovalAsked) == 2
    assert count(entries, ApprovalAnswered) == 2
    assert sum(isinstance(e.event, ToolCallStarted) and e.event.name == "shell" for e in entries) == 2
    assert count(entries, RunEnded) == 2
    return "unknown" if lost else "ran"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_process_killed_around_a_question_asks_it_once_and_runs_the_call_once(
    zygote: Zygote, provider: Provider, when: str
) -> None:
    with tempfile.TemporaryDirectory() as home:
        assert zygote.do(do="run", **order_for(Path(home), provider)) == (0, '[["success", ""]]')
        entries = entries_in(Path(home))
        assert check(entries, Path(home)) == "ran"
    outcomes: Counter[str] = Counter()
    for number in range(1, len(entries) + 1):
        with tempfile.TemporaryDirectory() as place:
            home = Path(place)
            code, out = zygote.do(do="run", number=number, when=when, **order_for(home, provider))
            assert code == -signal.SIGKILL, f"event {number}: {out}"
            if not entries_in(home):
                continue
            ended = count([e for e in entries_in(home) if not e.address.parent_id], RunEnded)
            code, out = zygote.do(do="resume", **order_for(home, provider))
            assert code == 0, f"event {number}: {out}"
            assert ended or out == '[["success", ""]]', f"event {number}: {out}"
            outcomes[check(entries_in(home), home)] += 1
    assert outcomes["ran"] > outcomes["unknown"] > 0


@pytest.mark.timeout(120)
def test_a_parked_question_survives_process_after_process(zygote: Zygote, provider: Provider) -> None:
    """J2: killed while it waits, again and again; one id, and one answer that nobody has to repeat."""
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        order = order_for(home, provider, answer="")
        zygote.do(do="run", after_s=1.0, **order)
        for _ in range(3):
            code, _out = zygote.do(do="resume", after_s=1.0, **order)
            assert code == -signal.SIGKILL
        [asked] = [e.event for e in entries_in(home) if isinstance(e.event, ApprovalAsked)]
        assert asked.path == ("orchestrator", "runner")
        assert zygote.do(do="resume", **order_for(home, provider)) == (0, '[["success", ""]]')
        check(entries_in(home), home)
