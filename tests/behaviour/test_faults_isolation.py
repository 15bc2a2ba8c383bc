"""Faults of class 07 through the whole runtime: runs and sessions that must not see each other."""

import asyncio
import gc
import re
from pathlib import Path

import pytest
from harness import Seen, against_provider, ask, follow
from wire import DIALECTS, Body, act, content, form, messages, outputs, spoken

from xclaw.app import App
from xclaw.contracts.errors import UsageError
from xclaw.contracts.events import ChildEnded, ChildSpawned, Entry
from xclaw.contracts.scope import current_scope
from xclaw.runtime.runs import RunRequest
from xclaw.testing import FakeProvider
from xclaw.testing.fake_provider import Pause, Raw, Reply, Text, Until, delta


def hand(agent: str, task: str) -> tuple[str, object]:
    return ("delegate", {"agent": agent, "task": task})


def saying(text: str, *before: Pause | Until) -> Raw:
    return Raw(*before, delta(text), delta(finish="stop"))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_parallel_calls_of_one_worker_get_their_own_answers(tmp_path: Path, dialect: str) -> None:
    """I01: the same agent three times at once, answered in any order, 20 times."""
    tasks = [f"TASK-{n}: say your number" for n in range(3)]
    turns = 0

    def answer(body: Body) -> Reply:
        nonlocal turns
        found = re.findall(r"TASK-\d", spoken(body))
        if "[Task workspace" not in content(messages(body)[1]):
            return Text("done") if outputs(body) else act(dialect, *(hand("coder", task) for task in tasks))
        assert len(set(found)) == 1
        turns += 1
        return saying(form(found[0]).text, Pause(0.005 * (turns * 7 % 3)))

    async def scenario(app: App, provider: FakeProvider) -> None:
        provider.answer_with(answer)
        for number in range(20):
            seen = await ask(app, "START", f"s{number}")
            spawned = {event.child_run_id: event.task.text[:6] for event in seen.events(ChildSpawned)}
            ended = {event.child_run_id: event.result.summary_data for event in seen.events(ChildEnded)}
            assert ended == spawned
            told = outputs(provider.requests[-1].body)
            assert [f'"TASK-{n}"' in output for n, output in enumerate(told)] == [True] * 3

    against_provider(tmp_path, scenario, dialect=dialect)


def test_sessions_at_once_share_nothing(tmp_path: Path) -> None:
    """I03, I06: names, files and words of one session are in no request of another."""

    def answer(body: Body) -> Reply:
        [name] = set(re.findall(r"I am (S\d+)", spoken(body)))
        told = outputs(body)
        if not told:
            return act("native", ("write_file", {"path": "k.txt", "content": name}))
        if len(told) == 1:
            return act("native", ("view_file", {"path": "k.txt"}))
        return Text(f"{name} {told[1]}")

    async def scenario(app: App, provider: FakeProvider) -> None:
        provider.answer_with(answer)
        results: list[str] = []

        async def one(number: int) -> None:
            results.append((await ask(app, f"I am S{number}.", f"s{number}")).result.text)

        async with asyncio.TaskGroup() as group:
            for number in range(40):
                group.create_task(one(number))
        assert sorted(results) == sorted(f"S{n} S{n}" for n in range(40))

    against_provider(tmp_path, scenario)


def test_a_watcher_that_leaves_takes_nothing_with_it(tmp_path: Path) -> None:
    """I04: a stream that is abandoned, collected, and followed by another request on the same task."""

    async def scenario(app: App, provider: FakeProvider) -> None:
        first = asyncio.Event()
        provider.queue(Raw(delta("one"), Until(first), delta(" more"), delta(finish="stop")))
        handle = await app.runs.start(RunRequest("START", "a"))
        seen = asyncio.Event()
        stop = handle.subscribe(lambda _: seen.set())
        await seen.wait()
        stop()
        root = handle.root_id
        del handle, stop
        gc.collect()
        assert current_scope.get(None) is None
        provider.queue(Text("two"))
        assert (await ask(app, "START", "b")).result.text == "two"
        assert current_scope.get(None) is None
        first.set()
        # The next message of the session waits for the end of the one that nobody watches.
        provider.queue(Text("three"))
        assert (await ask(app, "START", "a")).result.text == "three"
        row = await app.journal.run_row(root)
        assert row is not None
        assert row.outcome == "success"

    against_provider(tmp_path, scenario)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_messages_that_come_at_once_are_answered_one_after_the_other(tmp_path: Path, dialect: str) -> None:
    """I07: in order, each with what was said before, and none lost."""

    def answer(body: Body) -> Reply:
        last = [content(m) for m in messages(body) if m["role"] == "user"][-1]
        return saying(f"answer to {last}", Pause(0.02))

    async def scenario(app: App, provider: FakeProvider) -> None:
        provider.answer_with(answer)
        seen: dict[int, Seen] = {}

        async def one(number: int) -> None:
            seen[number] = await follow(await app.runs.start(RunRequest(f"m{number}", "s", dialect=dialect)))

        async with asyncio.TaskGroup() as group:
            for number in range(5):
                group.create_task(one(number))
        assert [seen[n].result.text for n in range(5)] == [f"answer to m{n}" for n in range(5)]
        last = [content(message) for message in messages(provider.requests[-1].body)[1:]]
        expected = [text for n in range(5) for text in (f"m{n}", f"answer to m{n}")]
        assert last == expected[:-1]

    against_provider(tmp_path, scenario)


def test_a_message_that_is_given_up_while_it_waits_leaves_the_session_in_order(tmp_path: Path) -> None:
    """I07: the second of three is cancelled before its turn."""
    gate = asyncio.Event()

    async def scenario(app: App, provider: FakeProvider) -> None:
        provider.queue(saying("one", Until(gate)), Text("three"))
        first = await app.runs.start(RunRequest("m1", "s"))
        loop = asyncio.get_running_loop()
        second = loop.create_task(app.runs.start(RunRequest("m2", "s")))
        third = loop.create_task(app.runs.start(RunRequest("m3", "s")))
        await provider.wait_requests(1)
        second.cancel()
        gate.set()
        assert (await first.result()).text == "one"
        assert (await (await third).result()).text == "three"
        assert second.cancelled()
        assert "m2" not in spoken(provider.requests[-1].body)

    against_provider(tmp_path, scenario)


def test_a_message_that_waits_while_the_runtime_ends_is_refused(tmp_path: Path) -> None:
    """I07: nothing is started after the end."""
    waiting: list[asyncio.Task[object]] = []

    async def scenario(app: App, provider: FakeProvider) -> None:
        provider.queue(saying("one", Until(asyncio.Event())))
        await app.runs.start(RunRequest("m1", "s"))
        waiting.append(asyncio.get_running_loop().create_task(app.runs.start(RunRequest("m2", "s"))))
        await provider.wait_requests(1)
        await app.runs.close()
        with pytest.raises(UsageError, match="shutting down"):
            await waiting[0]
        with pytest.raises(UsageError, match="shutting down"):
            await app.runs.start(RunRequest("m3", "other"))
        assert len(provider.requests) == 1

    against_provider(tmp_path, scenario)


def test_a_watcher_that_raises_harms_neither_the_run_nor_other_watchers(tmp_path: Path) -> None:
    """I04's kind: a bug of a channel."""

    async def scenario(app: App, provider: FakeProvider) -> None:
        gate = asyncio.Event()
        provider.queue(saying("one", Until(gate)))
        handle = await app.runs.start(RunRequest("START", "a"))
        seen: list[Entry] = []

        def broken(_: Entry) -> None:
            raise RuntimeError("a channel's bug")

        handle.subscribe(broken)
        handle.subscribe(seen.append)
        gate.set()
        assert (await handle.result()).text == "one"
        assert seen[-1].event.kind == "run_ended"

    against_provider(tmp_path, scenario)


def test_the_task_state_of_one_run_is_not_shown_to_another(tmp_path: Path) -> None:
    """I03: the board holds the run's own children, and not those of earlier messages."""

    def answer(body: Body) -> Reply:
        first = content(messages(body)[1])
        if "[Task workspace" in first:
            return form("OTHER" if "OTHER" in first else "MINE")
        last = [content(m) for m in messages(body) if m["role"] == "user" and "Task state" not in content(m)][
            -1
        ]
        word = "OTHER" if "OTHER" in last else "MINE"
        state = content(messages(body)[-1])
        if "Task state" in state:
            assert ("OTHER" in state, "MINE" in state) == (word == "OTHER", word == "MINE")
            return Text("done")
        return act("native", hand("coder", f"TASK: say {word}"))

    async def scenario(app: App, provider: FakeProvider) -> None:
        provider.answer_with(answer)
        for session, word in (("a", "OTHER"), ("a", "MINE"), ("b", "OTHER"), ("b", "MINE")):
            assert (await ask(app, word, session)).result.text == "done"

    against_provider(tmp_path, scenario)
