"""Faults of class 08 through the whole runtime: history, compaction, context."""

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from harness import Seen, against_provider, ask
from wire import (
    DIALECTS,
    NOTHING,
    Body,
    Cast,
    act,
    asked_calls,
    content,
    form,
    messages,
    outputs,
    play,
    refused_by_providers,
    spoken,
)

from xclaw.app import App
from xclaw.contracts.events import AttemptFailed, ChildSpawned, Compacted, ModelAnswered
from xclaw.testing import FakeProvider
from xclaw.testing.fake_provider import Calls, Reply, Status, Text

TASK = "Write report.md in French; NEVER touch config.yml; token MAGENTA-77."
TOO_LONG = Status(
    400, {"error": {"message": "maximum context length is 8000 tokens", "code": "context_length_exceeded"}}
)


def is_summary_request(body: Body) -> bool:
    return "shorten the record" in content(messages(body)[0])


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("summary", ["did some things", "", '{"action": "list_dir"}', "s" * 50_000])
def test_the_task_survives_compactions_and_every_request_is_valid(
    tmp_path: Path, dialect: str, summary: str
) -> None:
    """H01, H06, H07: whatever the summary says, and however often there is one."""
    bodies: list[Body] = []

    def answer(body: Body) -> Reply:
        assert refused_by_providers(body) == []
        if is_summary_request(body):
            return Text(summary) if summary else Text(" ", usage=(10, 0))
        bodies.append(body)
        number = len(bodies)
        if number % 3 == 0:
            return act(
                dialect,
                ("write_file", {"path": f"{number}.txt", "content": "é" * 700}),
                ("view_file", {"path": "1.txt"}),
            )
        return (
            Text("fini")
            if number > 25
            else act(dialect, ("write_file", {"path": f"{number}.txt", "content": f"{number} " * 400}))
        )

    async def scenario(app: App, provider: FakeProvider) -> None:
        provider.answer_with(answer)
        seen = await ask(app, TASK)
        assert (seen.result.outcome, seen.result.text) == ("success", "fini")
        assert len(seen.events(Compacted)) in (1, 2)
        assert all("MAGENTA-77" in spoken(body) and "config.yml" in spoken(body) for body in bodies)
        # The next message of the user compacts afresh, and the first task is still there.
        del bodies[:]
        again = await ask(app, "And now in German.")
        assert again.result.outcome == "success"
        assert all("MAGENTA-77" in spoken(body) and "in German" in spoken(body) for body in bodies)

    against_provider(tmp_path, scenario, window=16_000, dialect=dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_result_is_seen_by_whoever_decides_also_after_a_compaction(tmp_path: Path, dialect: str) -> None:
    """L05: a model that delegates until it sees the result delegates once."""
    turns = 0

    def answer(body: Body) -> Reply:
        nonlocal turns
        if is_summary_request(body):
            return Text("found that it is RESULT-7")
        if content(messages(body)[1]).startswith("[Task workspace"):
            return form("RESULT-7")
        turns += 1
        if "RESULT-7" not in spoken(body):
            return act(dialect, ("delegate", {"agent": "coder", "task": "TASK: find the number"}))
        if turns > 12:
            return Text("seven")
        return act(dialect, ("write_file", {"path": f"{turns}.txt", "content": f"{turns} " * 900}))

    async def scenario(app: App, provider: FakeProvider) -> None:
        provider.answer_with(answer)
        seen = await ask(app, "START")
        assert (seen.result.outcome, seen.result.text) == ("success", "seven")
        assert seen.events(Compacted)
        assert len(seen.events(ChildSpawned)) == 1

    against_provider(tmp_path, scenario, window=8_000, dialect=dialect)


@pytest.mark.parametrize("summary", ["same " * 3_000, " "])
def test_a_conversation_that_never_fits_ends_after_two_compactions_with_one_error(
    tmp_path: Path, summary: str
) -> None:
    """H07: and a later message that fits is answered."""
    summaries = 0
    refuse = False

    def answer(body: Body) -> Reply:
        nonlocal summaries
        if is_summary_request(body):
            summaries += 1
            return Text(summary)
        if refuse and "short" not in content(messages(body)[-1]):
            return TOO_LONG
        return Text("fine") if len(messages(body)) > 2 else act("native", ("list_dir", NOTHING))

    async def scenario(app: App, provider: FakeProvider) -> None:
        nonlocal refuse
        provider.answer_with(answer)
        for number in range(4):
            await ask(app, f"message {number} " + "words " * 100)
        refuse = True
        count = len(provider.requests)
        seen = await ask(app, "long")
        assert seen.result.outcome == "error"
        assert "window" in seen.result.reason or "context" in seen.result.reason
        assert len(seen.events(Compacted)) <= 2
        # An empty summary is asked for again, as any empty answer is.
        assert summaries <= (2 if summary.strip() else 2 * 3)
        assert len(provider.requests) - count == summaries + 1 + len(seen.events(Compacted))
        assert (await ask(app, "short")).result.text == "fine"

    against_provider(tmp_path, scenario)


def test_a_context_error_is_answered_by_a_shorter_conversation_and_no_outage(tmp_path: Path) -> None:
    """V04: the same payload is not sent again."""
    refused: list[int] = []

    def answer(body: Body) -> Reply:
        if is_summary_request(body):
            return Text("they talked")
        size = len(json.dumps(messages(body)))
        if "last" in spoken(body) and not refused:
            refused.append(size)
            return TOO_LONG
        if refused:
            assert size < refused[0]
        return Text("fine " + "words " * 300)

    async def scenario(app: App, provider: FakeProvider) -> None:
        provider.answer_with(answer)
        for number in range(4):
            await ask(app, f"message {number} " + "words " * 300)
        seen = await ask(app, "last")
        assert seen.result.outcome == "success"
        assert len(seen.events(AttemptFailed)) == 1
        assert len(seen.events(Compacted)) == 1

    against_provider(tmp_path, scenario)


@pytest.mark.parametrize("ids", [["call_0"] * 3, ["i" * 64] * 3, ["x" * 300] * 3, [""] * 3, ["工具\n"] * 3])
def test_ids_that_a_provider_uses_again_are_unique_when_they_are_sent_back(
    tmp_path: Path, ids: list[str]
) -> None:
    """H04: over turns, within one message, and over messages of a session."""
    one, two, three = ids
    replies = [
        Calls((one, "write_file", '{"path": "a", "content": "A"}'), (two, "view_file", '{"path": "zz"}')),
        Calls((three, "view_file", '{"path": "a"}')),
        Text("done"),
        Calls((one, "list_dir", "{}")),
        Text("done again"),
    ]
    troupe = Cast({"START": replies})

    async def scenario(app: App, provider: FakeProvider) -> None:
        provider.answer_with(troupe.answer)
        await ask(app, "START")
        assert (await ask(app, "and again")).result.text == "done again"

    against_provider(tmp_path, scenario)
    last = troupe.asked["START"][-1]
    assert len({call_id for call_id, _, _ in asked_calls(last)}) == 4
    assert outputs(last)[2] == "A"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_output_of_any_size_is_bounded_and_kept_whole_on_disk(tmp_path: Path, dialect: str) -> None:
    """H09: a command's output, a file, a worker's summary; the rest can be read."""
    path = tmp_path / "workspace"
    huge = "0123456789" * 10_001
    roles: dict[str, list[Reply]] = {
        "TASK-A": [
            act(dialect, ("shell", {"command": "python3 -c 'print(\"x\" * 2000000)'"})),
            act(dialect, ("write_file", {"path": "big.txt", "content": huge})),
            act(dialect, ("view_file", {"path": "big.txt", "limit": 5_000_000})),
            form({"all": huge}),
        ],
        "START": [
            act(dialect, ("delegate", {"agent": "coder", "task": "TASK-A: make it large"})),
            Text("ok"),
        ],
    }
    played = play(tmp_path, roles, dialect=dialect, allow_shell=True)
    assert played.seen.result.text == "ok"
    shell, _, view = outputs(played.asked["TASK-A"][3])
    [told] = outputs(played.asked["START"][1])
    for output in (shell, view, told):
        assert len(output) < 9_000
        assert "characters in all" in output
        spilled = Path(output.split(" is in ")[1].split("]")[0])
        assert path in spilled.parents
        assert spilled.stat().st_size > 100_000
    assert '"status": "success"' in told


@pytest.mark.parametrize("character", ["字", "x", "🌍", "é"])
def test_an_output_in_any_script_takes_no_more_than_its_share_of_tokens(
    tmp_path: Path, character: str
) -> None:
    """H10: the cap of an output counts tokens, not characters."""
    write = act("native", ("write_file", {"path": "a.txt", "content": character * 7_900}))
    view = act("native", ("view_file", {"path": "a.txt", "limit": 60_000}))
    played = play(tmp_path, {"START": [write, view, Text("ok")]})
    shown = outputs(played.asked["START"][2])[1]
    weight = 1 if character.isascii() else 2
    assert len(shown.encode()) <= 8_500 * weight


def test_chinese_conversations_are_compacted_before_the_window_is_full(tmp_path: Path) -> None:
    """H10: a window of 8,000 tokens and messages of 2,000 Chinese characters each."""
    sizes: list[int] = []

    def answer(body: Body) -> Reply:
        if is_summary_request(body):
            return Text("他们聊了天")
        sizes.append(len(spoken(body)))
        return Text("好" * 300)

    async def scenario(app: App, provider: FakeProvider) -> None:
        provider.answer_with(answer)
        last: Seen | None = None
        for number in range(6):
            last = await ask(app, f"{number}" + "字" * 1_500)
            assert last.result.outcome == "success"
        assert last is not None

    against_provider(tmp_path, scenario, window=12_000)
    assert max(sizes) * 0.6 < 12_000


@pytest.mark.parametrize("size", [60_000, 400_000])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_message_larger_than_the_window_does_not_end_the_session(
    tmp_path: Path, dialect: str, size: int
) -> None:
    """H09: the user's own message, the model's own answer, and arguments that the model wrote."""
    answers: list[Reply] = [
        act(dialect, ("write_file", {"path": "a.txt", "content": "w" * size})),
        Text("a" * size),
        Text("fine"),
        Text("still fine"),
    ]

    def answer(body: Body) -> Reply:
        if is_summary_request(body):
            assert len(json.dumps(body)) < 4 * 12_000 * 1.2
            return Text("they talked")
        assert len(json.dumps(messages(body))) < 4 * 12_000 * 1.2
        return answers.pop(0)

    async def scenario(app: App, provider: FakeProvider) -> None:
        provider.answer_with(answer)
        first = await ask(app, "START")
        assert first.result.outcome == "success"
        assert (await ask(app, "u" * size)).result.text == "fine"
        assert (await ask(app, "short")).result.text == "still fine"

    against_provider(tmp_path, scenario, window=12_000, dialect=dialect)


def test_what_a_crash_left_open_is_closed_once_and_nothing_is_run_again(tmp_path: Path) -> None:
    """H02, D08: the process is killed in the middle of a command; the conversation goes on."""
    crash = crashed_session(tmp_path)
    assert crash == 1

    async def scenario(app: App, provider: FakeProvider) -> None:
        for number in range(3):
            assert len(await app.runs.interrupted()) == (0 if number else 1)
            provider.queue(Text(f"answer {number}"))
            seen = await ask(app, f"status? {number}")
            assert seen.result.text == f"answer {number}"
            body = provider.requests[-1].body
            assert refused_by_providers(body) == []
            assert [("interrupted" in output and "unknown" in output) for output in outputs(body)] == [True]
        assert len(provider.requests) == 3
        assert [len(path.read_text().split()) for path in tmp_path.rglob("count")] == [1]

    against_provider(tmp_path, scenario, allow_shell=True)


CRASHING = """
import asyncio, os, signal, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from harness import against_provider
from xclaw.contracts.events import ToolCallStarted
from xclaw.runtime.runs import RunRequest
from xclaw.testing.fake_provider import Calls

home = Path({home!r})

async def scenario(app, provider):
    provider.queue(Calls(("c", "shell", '{{"command": "echo x >> count; exec sleep 60"}}')))
    handle = await app.runs.start(RunRequest("START", "s", agent="coder"))
    while not list(home.rglob("count")):
        await asyncio.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)

against_provider(home, scenario, allow_shell=True)
"""


def crashed_session(home: Path) -> int:
    """A process that is killed while its agent's command runs; answers how many runs it left open."""
    program = CRASHING.format(tests=str(Path(__file__).parent), home=str(home))
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=30, check=False)
    assert process.returncode == -9, process.stderr
    [database] = list(home.rglob("*.db"))
    with sqlite3.connect(database) as connection:
        [(count,)] = connection.execute("select count(*) from runs where outcome is null").fetchall()
    connection.close()
    return int(count)


def test_a_finished_run_is_never_taken_up_again(tmp_path: Path) -> None:
    """D08 (b): restarts ask nothing of anybody."""
    ran: list[str] = []

    async def first(app: App, provider: FakeProvider) -> None:
        provider.queue(Text("done"))
        seen = await ask(app, "START")
        ran.append(seen.entries[0].address.root_id)
        assert seen.events(ModelAnswered)

    async def later(app: App, provider: FakeProvider) -> None:
        assert await app.runs.interrupted() == []
        with pytest.raises(Exception, match="has ended"):
            await app.runs.resume(ran[0])
        assert provider.requests == []

    against_provider(tmp_path, first)
    for _ in range(3):
        against_provider(tmp_path, later)
