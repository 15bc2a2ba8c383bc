"""`kill -9` at any point, then resume: nothing lost, nothing done or paid for twice (SPEC K6).

Real processes are killed at every event boundary of a job with three workers (two delegated, one in
the background) and at random instants, while a provider in another process counts requests.
`XCLAW_TEST_KILLS=200` has as many instants instead of 60.
"""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast
from urllib.request import Request, urlopen

import pytest

from xclaw.contracts.events import ArtifactDelivered, ChildEnded, ChildSpawned, Entry, ModelAnswered, RunEnded
from xclaw.store.journal import SqliteJournal
from xclaw.store.settings import StoreSettings

INSTANTS = int(os.environ.get("XCLAW_TEST_KILLS", "60"))
CALLS = 11
"""Model calls of the job: 3 of the orchestrator, 3 workers with 2 each, and 2 more of the first."""


def _worker(name: str, task: str, extra: int) -> dict[str, object]:
    file = f"{name}.md"
    steps: list[dict[str, object]] = [
        {"calls": [{"name": "write_file", "arguments": {"path": f"draft{n}.md", "content": task}}]}
        for n in range(extra)
    ]
    return {
        "agent": "another agent called you",
        "when": task,
        "replies": [
            *steps,
            {"calls": [{"name": "deliver", "arguments": {"path": file, "content": f"# {task}"}}]},
            {
                "text": {
                    "status": "success",
                    "summary_data": {"did": task},
                    "artifact_pointers": {"file": file},
                }
            },
        ],
    }


RULES: list[dict[str, object]] = [
    {
        "agent": "you are the orchestrator",
        "replies": [
            {
                "calls": [
                    {"name": "delegate", "arguments": {"agent": "coder", "task": "PART-A: write the letter A"}},
                    {"name": "delegate", "arguments": {"agent": "writer", "task": "PART-B: write the letter B"}},
                    {"name": "spawn", "arguments": {"agent": "reviewer", "prompt": "PART-C: write the letter C"}},
                ]
            },
            {"calls": [{"name": "wait", "arguments": {}}]},
            {"text": "All three parts are delivered."},
        ],
    },
    _worker("a", "PART-A", 2),
    _worker("b", "PART-B", 0),
    _worker("c", "PART-C", 0),
]  # fmt: skip


class Provider:
    """The fake provider as a process of its own."""

    def __init__(self, directory: Path, job: list[dict[str, object]], latency_ms: int = 2) -> None:
        rules = directory / "rules.json"
        rules.write_text(json.dumps(job), "utf-8")
        command = [
            sys.executable,
            "-m",
            "xclaw.testing.fake_provider",
            "--rules",
            str(rules),
            "--latency-ms",
            str(latency_ms),
        ]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        self.url = json.loads(self.process.stdout.readline())["url"]

    def requests(self) -> int:
        return self.stats()["requests"]

    def stats(self) -> dict[str, Any]:
        with urlopen(self.url.removesuffix("/v1") + "/stats") as answer:
            return json.load(answer)

    def reset(self) -> None:
        urlopen(Request(self.url.removesuffix("/v1") + "/reset", method="POST")).close()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(10)
        assert self.process.stdout is not None
        self.process.stdout.close()


class Zygote:
    def __init__(self) -> None:
        script = str(Path(__file__).with_name("zygote.py"))
        self.process = subprocess.Popen(
            [sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def do(self, **order: object) -> tuple[int, str]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        self.last_pid: int = answer["pid"]
        return answer["code"], answer["out"]

    def stop(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    provider = Provider(tmp_path_factory.mktemp("provider"), RULES)
    yield provider
    provider.stop()


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    zygote = Zygote()
    yield zygote
    zygote.stop()


def entries_in(home: Path) -> list[Entry]:
    async def read() -> list[Entry]:
        journal = await SqliteJournal.open(StoreSettings(str(home / "workspace" / "xclaw.db")))
        try:
            roots = await journal.runs(roots_only=True)
            return [entry for row in roots for entry in await journal.read_tree(row.root_id)]
        finally:
            await journal.close()

    if not (home / "workspace" / "xclaw.db").exists():
        return []
    return asyncio.run(read())


def count(entries: list[Entry], kind: type[object]) -> int:
    return sum(isinstance(entry.event, kind) for entry in entries)


def check_after_kill(zygote: Zygote, provider: Provider, home: Path) -> str:
    """Resume, then hold the journal, the provider's count and the files against one another."""
    at_kill = entries_in(home)
    paid = count(at_kill, ModelAnswered)
    ended = any(isinstance(e.event, RunEnded) and not e.address.parent_id for e in at_kill)
    provider.reset()
    code, out = zygote.do(do="resume", home=str(home), url=provider.url)
    assert code == 0, out
    results = cast("list[list[str]]", json.loads(out))
    if not at_kill or ended:
        assert results == []
        assert provider.requests() == 0
        return "nothing to resume"
    assert results == [["success", ""]]
    assert provider.requests() == CALLS - paid, "a finished call was paid for again, or one was lost"
    after = entries_in(home)
    check_tree(after)
    assert zygote.do(do="resume", home=str(home), url=provider.url) == (0, "[]")
    return "resumed"


def check_tree(entries: list[Entry]) -> None:
    assert count(entries, ModelAnswered) == CALLS
    spawned = Counter(e.event.child_run_id for e in entries if isinstance(e.event, ChildSpawned))
    taken = Counter(e.event.child_run_id for e in entries if isinstance(e.event, ChildEnded))
    ends = Counter(e.address.run_id for e in entries if isinstance(e.event, RunEnded))
    assert spawned == taken
    assert set(spawned.values()) == {1}
    assert len(spawned) == 3
    assert len(ends) == 4
    assert set(ends.values()) == {1}
    files = {e.event.pointer.path for e in entries if isinstance(e.event, ArtifactDelivered)}
    assert sorted(Path(file).name for file in files) == ["a.md", "b.md", "c.md"]
    assert all(Path(file).stat().st_size for file in files)
    sequences: dict[str, list[int]] = {}
    for entry in entries:
        sequences.setdefault(entry.address.run_id, []).append(entry.seq)
    assert all(seqs == list(range(1, len(seqs) + 1)) for seqs in sequences.values())


def job_seconds(zygote: Zygote, provider: Provider) -> float:
    """How long the job takes here and now, from its journal."""
    with tempfile.TemporaryDirectory() as home:
        zygote.do(do="run", text="Write three letters", home=home, url=provider.url)
        entries = entries_in(Path(home))
        return entries[-1].at - entries[0].at


def recorded_events(zygote: Zygote, provider: Provider) -> int:
    """How many events the job has when nothing goes wrong."""
    with tempfile.TemporaryDirectory() as home:
        code, out = zygote.do(do="run", text="Write three letters", home=home, url=provider.url)
        assert (code, out) == (0, '[["success", ""]]')
        entries = entries_in(Path(home))
        check_tree(entries)
        return len(entries)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_process_killed_at_any_event_boundary_goes_on_where_it_was(
    zygote: Zygote, provider: Provider, when: str
) -> None:
    number = recorded_events(zygote, provider)
    outcomes: Counter[str] = Counter()
    for at in range(1, number + 1):
        with tempfile.TemporaryDirectory() as home:
            order: dict[str, Any] = {"text": "Write three letters", "home": home, "url": provider.url}
            code, out = zygote.do(do="run", number=at, when=when, **order)
            if code == 0 and at > number - 4:
                # A result that comes while nobody waits for it takes an event less than one awaited.
                continue
            assert code == -signal.SIGKILL, f"event {at}: {out}"
            outcomes[check_after_kill(zygote, provider, Path(home))] += 1
    assert outcomes["resumed"] >= number - 6


@pytest.mark.timeout(600)
def test_a_process_killed_at_random_instants_goes_on_where_it_was(zygote: Zygote, provider: Provider) -> None:
    seed = int(os.environ.get("XCLAW_TEST_SEED", "0")) or random.SystemRandom().randrange(1 << 30)
    instants = random.Random(seed)
    whole_s = job_seconds(zygote, provider)
    outcomes: Counter[str] = Counter()
    while outcomes.total() - outcomes["ended before"] < INSTANTS:
        # One in each part of the job, so that few of them see as much of it as many would.
        after_s = whole_s * ((outcomes.total() + instants.random()) % INSTANTS) / INSTANTS
        with tempfile.TemporaryDirectory() as home:
            order: dict[str, Any] = {"text": "Write three letters", "home": home, "url": provider.url}
            code, out = zygote.do(do="run", after_s=after_s, **order)
            assert code in (0, -signal.SIGKILL), f"seed {seed}: {out}"
            killed = code != 0
            outcomes[check_after_kill(zygote, provider, Path(home)) if killed else "ended before"] += 1
    assert outcomes["resumed"] > INSTANTS // 4, f"seed {seed}: {outcomes}"


@pytest.mark.timeout(300)
def test_a_process_killed_again_and_again_while_it_resumes_still_ends(
    zygote: Zygote, provider: Provider
) -> None:
    with tempfile.TemporaryDirectory() as home:
        order: dict[str, Any] = {"home": home, "url": provider.url}
        zygote.do(do="run", text="Write three letters", number=8, when="after", **order)
        code = -1
        for step in range(40):
            code, _ = zygote.do(do="resume", number=4 + step // 4, when="after", **order)
            if code == 0:
                break
        assert code == 0
        check_tree(entries_in(Path(home)))
