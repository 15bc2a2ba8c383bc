"""Faults of class 05 through the whole runtime: parallel work, time-outs, stopping."""

import asyncio
import json
import threading
from pathlib import Path

import pytest
from harness import against_provider, ask, follow
from wire import DIALECTS, NOTHING, Body, Cast, act, content, form, messages, outputs, play, spoken

from xclaw.app import App
from xclaw.contracts.agents import Limits
from xclaw.contracts.events import (
    AttemptFailed,
    ChildEnded,
    Entry,
    RunEnded,
    RunStarted,
    ToolCallStarted,
    TurnStarted,
    Warned,
)
from xclaw.runtime.runs import RunHandle, RunRequest
from xclaw.testing import FakeProvider
from xclaw.testing.fake_provider import Calls, Hang, Pause, Raw, Reply, Status, Text, Until, delta

LEAD = """---
name: lead
description: Hands work on.
tools: delegate, spawn, wait, list_dir, shell
---
You hand work on.
"""


def with_lead(home: Path) -> Path:
    """A home with a worker that may hand work on."""
    (home / "agents").mkdir(parents=True)
    (home / "agents" / "lead.md").write_text(LEAD, "utf-8")
    return home


def left_over() -> set[str]:
    """Tasks of the runtime that still run, but for the test's own."""
    return {
        repr(task)
        for task in asyncio.all_tasks()
        if "/src/xclaw/" in repr(task.get_coro()) and "/testing/" not in repr(task.get_coro())
    } | {task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("run ")}


def ends(entries: list[Entry]) -> dict[str, str]:
    """Outcome by agent."""
    agents = {e.address.run_id: e.event.agent for e in entries if isinstance(e.event, RunStarted)}
    return {agents[e.address.run_id]: e.event.outcome for e in entries if isinstance(e.event, RunEnded)}


def hand(agent: str, task: str) -> tuple[str, object]:
    return ("delegate", {"agent": agent, "task": task})


def spawn(agent: str, task: str) -> tuple[str, object]:
    return ("spawn", {"agent": agent, "prompt": task})


ENDLESS = Raw(delta("x"), *(part for _ in range(600) for part in (Pause(0.05), delta(" y"))))


async def stored(app: App, root_id: str) -> list[Entry]:
    return list(await app.journal.read_tree(root_id))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_one_failing_worker_takes_nothing_from_its_siblings(tmp_path: Path, dialect: str) -> None:
    """C01"""
    roles: dict[str, list[Reply]] = {
        "TASK-A": [form("A")],
        "TASK-B": [Status(400, {"error": {"message": "no such thing"}})],
        "TASK-C": [Raw(Pause(0.1), delta(form("C").text), delta(finish="stop"))],
        "START": [
            act(
                dialect,
                hand("coder", "TASK-A: say a"),
                hand("writer", "TASK-B: say b"),
                hand("coder", "TASK-C: say c"),
            ),
            Text("two of three"),
        ],
    }
    played = play(tmp_path, roles, dialect=dialect)
    first, second, third = outputs(played.asked["START"][1])
    assert '"summary_data": "A"' in first
    assert '"summary_data": "C"' in third
    assert '"status": "error"' in second
    assert "no such thing" in second
    assert "Traceback" not in second
    assert played.seen.result.outcome == "success"


@pytest.mark.parametrize("reply", [ENDLESS, Hang()])
def test_a_worker_that_runs_out_of_time_ends_its_request_and_leaves_nothing(
    tmp_path: Path, reply: Reply
) -> None:
    """C02, C09: a stream without end, and a provider that never answers."""
    roles: dict[str, list[Reply]] = {
        "TASK": [Calls(("c", "list_dir", "{}")), reply],
        "START": [act("native", hand("coder", "TASK: say hello")), Text("it took too long")],
    }
    troupe = Cast(roles)

    async def scenario(app: App, provider: FakeProvider) -> None:
        provider.answer_with(troupe.answer)
        clock = asyncio.get_running_loop().time
        before, threads = left_over(), threading.active_count()
        began = clock()
        handle = await app.runs.start(RunRequest("START", "s", worker_timeout_s=0.4))
        seen = await follow(handle)
        assert clock() - began < 2
        request = provider.requests[2]
        async with asyncio.timeout(1):
            await request.closed.wait()
        assert ends(seen.entries) == {"orchestrator": "completed_unverified", "coder": "timeout"}
        [ended] = seen.events(ChildEnded)
        assert ended.result.outcome == "timeout"
        assert ended.result.spend.usage.estimated
        told = outputs(troupe.asked["START"][1])[0]
        assert '"outcome": "timeout"' in told
        assert "empty directory" in told or " y" in told
        assert left_over() <= before
        assert threading.active_count() <= threads + 1
        count = len(await stored(app, handle.root_id))
        await asyncio.sleep(0)
        assert len(await stored(app, handle.root_id)) == count
        assert await app.journal.runs(roots_only=False, open_only=True, limit=100) == []

    against_provider(tmp_path, scenario)


def test_a_worker_never_outlives_the_deadline_of_its_parent(tmp_path: Path) -> None:
    """C09: deadlines are inherited, however long a worker may take by itself."""
    roles: dict[str, list[Reply]] = {
        "TASK-2": [Hang()],
        "TASK-1": [act("native", hand("coder", "TASK-2: say hello"))],
        "START": [act("native", hand("lead", "TASK-1: hand this on"))],
    }
    troupe = Cast(roles)

    async def scenario(app: App, provider: FakeProvider) -> None:
        provider.answer_with(troupe.answer)
        request = RunRequest("START", "s", limits=Limits(timeout_s=0.4), worker_timeout_s=60)
        seen = await follow(await app.runs.start(request))
        assert ends(seen.entries)["orchestrator"] == "timeout"
        assert set(ends(seen.entries).values()) <= {"timeout", "cancelled"}
        assert len(ends(seen.entries)) == 3
        assert left_over() == set()

    against_provider(with_lead(tmp_path), scenario)


def test_a_fan_out_holds_nobody_else_up(tmp_path: Path) -> None:
    """C04: 64 background workers that hang; no more than the limit run at once.

    When a tree is stopped its places go to the other trees, and never to its own that wait in line.
    """
    waiting = 0

    def answer(body: Body) -> Reply:
        first = content(messages(body)[1])
        if "TASK" in first:
            nonlocal waiting
            waiting += 1
            return Hang()
        if "hi" in first:
            return Text("hello")
        if outputs(body):
            return Text("they are at it")
        return act("native", *(spawn("coder", f"TASK: say hello to {n}") for n in range(16)))

    async def scenario(app: App, provider: FakeProvider) -> None:
        provider.answer_with(answer)
        entries: list[Entry] = []
        handles: list[RunHandle] = []
        for number in range(4):
            handle = await app.runs.start(RunRequest("START", f"s{number}"))
            handle.subscribe(entries.append)
            handles.append(handle)
            await provider.wait_requests(8 + 2 * (number + 1))  # so that the places go by tree
        clock = asyncio.get_running_loop().time
        began = clock()
        assert (await ask(app, "hi", "other")).result.text == "hello"
        assert clock() - began < 1
        assert waiting == 8
        assert any(isinstance(e.event, Warned) and e.event.code == "queued" for e in entries)
        for number, handle in enumerate(handles, start=1):
            await provider.wait_requests(4 + 4 + 1 + 8 * number)  # the places are taken again
            report = await handle.cancel("enough")
            assert {end.outcome for end in report} == {"cancelled"}
            assert not any(end.late for end in report)
            assert len(report) == 17
        assert waiting == 4 * 8
        assert left_over() == set()
        assert await app.journal.runs(roots_only=False, open_only=True, limit=100) == []

    against_provider(tmp_path, scenario)


def test_stopping_a_run_stops_everything_below_it(tmp_path: Path) -> None:
    """C05: a grandchild in the middle of a command; the report names them all."""
    command = "echo started >> log; exec sleep 60"
    roles: dict[str, list[Reply]] = {
        "TASK-2": [act("native", ("shell", {"command": command}))],
        "TASK-1": [act("native", hand("lead", "TASK-2: run the command"))],
        "START": [act("native", hand("lead", "TASK-1: hand this on"))],
    }
    troupe = Cast(roles)

    async def scenario(app: App, provider: FakeProvider) -> None:
        provider.answer_with(troupe.answer)
        running = asyncio.Event()
        entries: list[Entry] = []

        def watch(entry: Entry) -> None:
            entries.append(entry)
            if isinstance(entry.event, ToolCallStarted) and entry.event.name == "shell":
                running.set()

        handle = await app.runs.start(RunRequest("START", "s"))
        handle.subscribe(watch)
        await running.wait()
        clock = asyncio.get_running_loop().time
        began = clock()
        report = await handle.cancel("the user pressed stop")
        assert clock() - began < 2
        assert [(end.agent, end.outcome, end.late) for end in report] == [
            ("lead", "cancelled", False),
            ("lead", "cancelled", False),
            ("orchestrator", "cancelled", False),
        ]
        again = await handle.cancel("again")
        assert again == report
        result = await handle.result()
        assert (result.outcome, result.reason) == ("cancelled", "the user pressed stop")
        assert await app.journal.runs(roots_only=False, open_only=True, limit=100) == []
        all_ended = [
            e.event.result for e in await stored(app, handle.root_id) if isinstance(e.event, RunEnded)
        ]
        assert [r.reason for r in all_ended] == ["the user pressed stop"] * 3
        assert left_over() == set()

    against_provider(with_lead(tmp_path), scenario, allow_shell=True)
    assert not _processes("sleep 60")


def _processes(command: str) -> list[str]:
    """Command lines of this machine's processes that run in the test's directories."""
    found: list[str] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
            if line == command and "pytest" in str((path.parent / "cwd").readlink()):
                found.append(line)
        except OSError:
            continue
    return found


def test_after_a_stop_nothing_is_asked_until_the_user_speaks_again(tmp_path: Path) -> None:
    """C07: three background workers; what they had is told in the next turn, and never before."""
    until = asyncio.Event()
    roles: dict[str, list[Reply]] = {
        "TASK-A": [form("A-RESULT")],
        "TASK-B": [Hang()],
        "TASK-C": [Calls(("c", "list_dir", "{}")), Hang()],
        "START": [
            act(
                "native",
                spawn("coder", "TASK-A: say a"),
                spawn("coder", "TASK-B: say b"),
                spawn("coder", "TASK-C: say c"),
            ),
            Raw(Until(until)),
            Text("I see that you stopped me."),
        ],
    }
    troupe = Cast(roles)

    async def scenario(app: App, provider: FakeProvider) -> None:
        provider.answer_with(troupe.answer)
        handle = await app.runs.start(RunRequest("START", "s"))
        await provider.wait_requests(6)
        report = await handle.cancel("stop")
        assert [end.outcome for end in report].count("cancelled") == 3
        assert {end.outcome for end in report if end.agent == "coder"} == {"success", "cancelled"}
        count = len(provider.requests)
        assert await handle.cancel("stop") == report
        assert await app.runs.cancel(handle.root_id, "stop") == []
        assert len(provider.requests) == count
        seen = await ask(app, "what now?")
        assert seen.result.text == "I see that you stopped me."
        assert len(provider.requests) == count + 1
        told = spoken(troupe.asked["START"][-1])
        assert "A-RESULT" in told
        assert told.count("<task-notification>") == 3
        assert "TASK-B" not in told.replace(json.dumps("TASK-B: say b"), "")
        ended = [
            e.event.result.outcome
            for e in await stored(app, handle.root_id)
            if isinstance(e.event, ChildEnded)
        ]
        assert sorted(ended) == ["cancelled", "cancelled", "success"]

    against_provider(tmp_path, scenario)


def test_a_run_that_is_stopped_before_it_began_ends_and_frees_its_session(tmp_path: Path) -> None:
    """C05, C07: stopped in the same instant in which it was started."""

    async def scenario(app: App, provider: FakeProvider) -> None:
        provider.queue(Text("hello"))
        handle = await app.runs.start(RunRequest("START", "s"))
        [end] = await handle.cancel("never mind")
        assert (end.outcome, end.late) == ("cancelled", False)
        assert (await handle.result()).reason == "never mind"
        assert await app.journal.runs(roots_only=False, open_only=True, limit=10) == []
        assert provider.requests == []
        assert [e.event.kind for e in await stored(app, handle.root_id)] == ["run_started", "run_ended"]
        assert (await ask(app, "START again")).result.text == "hello"

    against_provider(tmp_path, scenario)


def test_a_stop_between_any_two_events_ends_the_whole_tree(tmp_path: Path) -> None:
    """C05: cancelled at the first, second, third ... entry that a watcher sees."""
    roles: dict[str, list[Reply]] = {
        "TASK-A": [Calls(("c", "write_file", '{"path": "a", "content": "a"}')), form("A")],
        "TASK-B": [form("B")],
        "TASK-C": [form("C")],
        "START": [
            act(
                "native",
                hand("coder", "TASK-A: say a"),
                hand("writer", "TASK-B: say b"),
                spawn("coder", "TASK-C: say c"),
            ),
            act("native", ("wait", NOTHING)),
            Text("done"),
        ],
    }

    async def stop_at(app: App, provider: FakeProvider, number: int) -> bool:
        """Whether the run was stopped."""
        provider.answer_with(Cast(roles).answer)
        handle = await app.runs.start(RunRequest("START", f"s{number}"))
        stopping: list[asyncio.Task[object]] = []
        seen = 0

        def watch(_: Entry) -> None:
            nonlocal seen
            seen += 1
            if seen == number:
                stopping.append(asyncio.get_running_loop().create_task(handle.cancel("stop")))

        handle.subscribe(watch)
        result = await handle.result()
        for task in stopping:
            await task
        assert result.outcome in ("success", "cancelled")
        assert await app.journal.runs(roots_only=False, open_only=True, limit=100) == []
        assert left_over() == set()
        events = [entry.event for entry in await stored(app, handle.root_id)]
        started = sum(isinstance(event, RunStarted) for event in events)
        assert started == sum(isinstance(event, RunEnded) for event in events)
        turns = sum(isinstance(event, TurnStarted) for event in events)
        answered = sum(event.kind in ("model_answered", "attempt_failed") for event in events)
        assert turns == answered
        return bool(stopping)

    async def scenario(app: App, provider: FakeProvider) -> None:
        number = 1
        while await stop_at(app, provider, number):
            number += 1
        assert number > 30

    against_provider(tmp_path, scenario)


def test_a_stopped_worker_is_told_to_its_parent_which_goes_on(tmp_path: Path) -> None:
    """C05, U03: one worker is stopped by itself; what it had and what it cost are not lost."""
    roles: dict[str, list[Reply]] = {
        "TASK-A": [Calls(("c", "list_dir", "{}"), usage=(50, 5)), Hang()],
        "TASK-B": [form("B")],
        "START": [
            act("native", hand("coder", "TASK-A: say a"), hand("writer", "TASK-B: say b")),
            Text("one is missing"),
        ],
    }
    troupe = Cast(roles)

    async def scenario(app: App, provider: FakeProvider) -> None:
        provider.answer_with(troupe.answer)
        entries: list[Entry] = []
        handle = await app.runs.start(RunRequest("START", "s"))
        coder: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def receive(entry: Entry) -> None:
            entries.append(entry)
            if isinstance(entry.event, RunStarted) and entry.event.agent == "coder":
                coder.set_result(entry.address.run_id)

        handle.subscribe(receive)
        await provider.wait_requests(4)
        [end] = await app.cancel(await coder, "too slow")
        assert (end.agent, end.outcome) == ("coder", "cancelled")
        result = await handle.result()
        assert (result.outcome, result.text) == ("success", "one is missing")
        stopped, other = outputs(troupe.asked["START"][1])
        assert '"outcome": "cancelled"' in stopped
        assert "too slow" in stopped
        assert "empty directory" in stopped
        assert '"summary_data": "B"' in other
        [failed] = [e.event for e in entries if isinstance(e.event, AttemptFailed)]
        assert failed.usage.estimated
        assert failed.usage.input_tokens > 0
        known = 10 + 50 + 10 + 10
        assert result.spend.usage.input_tokens == known + failed.usage.input_tokens

    against_provider(tmp_path, scenario)


@pytest.mark.parametrize("timeout_s", [0, 0.02])
def test_waiting_in_pieces_neither_strands_results_nor_looks_like_a_loop(
    tmp_path: Path, timeout_s: float
) -> None:
    """C10: more waits than turns, all of them too short. Waiting is bounded too, just not by the work."""
    until = asyncio.Event()
    finish = (Until(until), delta(form("LATE").text), delta(finish="stop"))
    asked = 0

    def answer(body: Body) -> Reply:
        nonlocal asked
        if "TASK" in content(messages(body)[1]):
            return Raw(*finish)
        asked += 1
        if asked == 1:
            return act("native", spawn("coder", "TASK: say a"), spawn("writer", "TASK: say b"))
        if spoken(body).count("LATE") >= 2:
            return Text("both are here")
        if asked == 6:
            until.set()
        return act("native", ("wait", {"timeout_s": timeout_s}))

    async def scenario(app: App, provider: FakeProvider) -> None:
        provider.answer_with(answer)
        seen = await ask(app, "START", limits=Limits(max_turns=5))
        assert (seen.result.outcome, seen.result.text) == ("success", "both are here")
        assert [e.result.outcome for e in seen.events(ChildEnded)] == ["success", "success"]

    against_provider(tmp_path, scenario)


def test_a_run_that_is_exhausted_hands_its_background_results_to_the_next_turn(tmp_path: Path) -> None:
    """C10: never stranded, also when the parent may not go on."""
    roles: dict[str, list[Reply]] = {
        "TASK-A": [form("A-RESULT")],
        "TASK-B": [Hang()],
        "START": [
            act("native", spawn("coder", "TASK-A: say a"), spawn("writer", "TASK-B: say b")),
            act("native", ("list_dir", NOTHING)),
            Text("I know"),
        ],
    }
    troupe = Cast(roles)

    async def scenario(app: App, provider: FakeProvider) -> None:
        provider.answer_with(troupe.answer)
        seen = await ask(app, "START", limits=Limits(max_turns=2))
        assert seen.result.outcome == "exhausted"
        assert len(seen.events(ChildEnded)) == 2
        assert (await ask(app, "go on")).result.text == "I know"
        assert "A-RESULT" in spoken(troupe.asked["START"][-1])

    against_provider(tmp_path, scenario)
