"""Whose conversation a run belongs to, and where a local child runs (SPEC A3, A5, G2, K3)."""

import asyncio
import re
import threading
from functools import partial
from pathlib import Path

from harness import Script, Seen, against_provider, ask, follow, run_script, settings_for, write_script

from xclaw.app import App, open_app
from xclaw.contracts.events import ChildSpawned, RunEnded, RunStarted
from xclaw.contracts.ids import new_session_id, team_session
from xclaw.contracts.messages import Message
from xclaw.contracts.results import Result
from xclaw.contracts.scope import Scope, current_scope
from xclaw.contracts.spawn import Birth
from xclaw.runtime.runs import RunRequest
from xclaw.spawn.local import LocalLauncher
from xclaw.testing import Calls, FakeProvider, Hang, Text

RESULT = {"text": {"status": "success", "summary_data": {"n": 1}, "artifact_pointers": {}}}
TASK = "Name three primes below ten."


def calling(name: str, **arguments: object) -> dict[str, object]:
    return {"calls": [{"name": name, "arguments": arguments}]}


def child_sessions(seen: Seen) -> list[str]:
    return [event.child_session_id for event in seen.events(ChildSpawned)]


def test_the_session_of_a_child_says_parent_worker_mode_and_task(tmp_path: Path) -> None:
    """SPEC A3: delegated, debating and in a pipeline; the task is six hex digits, unique in its session."""
    script: list[dict[str, object]] = [
        {
            "agent": "orchestrator",
            "replies": [
                calling("delegate", agent="coder", task=TASK),
                calling("debate", question=TASK, agents=["coder", "skeptic"]),
                calling("pipeline", steps=[{"agent": "writer", "task": TASK}]),
                {"text": "2, 3, 5"},
            ],
        },
        {"replies": [RESULT]},
    ]
    sessions = child_sessions(run_script(tmp_path, script))
    patterns = [
        r"s:coder:([0-9a-f]{6})",
        r"s:debate:coder:([0-9a-f]{6})",
        r"s:debate:skeptic:([0-9a-f]{6})",
        r"s:pipe:step0:([0-9a-f]{6})",
    ]
    matches = [re.fullmatch(*pair) for pair in zip(patterns, sessions, strict=True)]
    tasks = [match[1] for match in matches if match is not None]
    assert len(tasks) == len(set(tasks)) == len(patterns), sessions


def test_a_client_without_a_name_gets_a_session_that_nobody_can_guess() -> None:
    """SPEC A3."""
    assert new_session_id("cli") == "cli"
    assert new_session_id("cli", "mine") == new_session_id("web", "mine") == "mine"
    first, second = new_session_id("web"), new_session_id("web")
    assert first != second
    assert re.fullmatch(r"web-[\w-]{22}", first)
    assert team_session("s", "coder") == "team:coder:s"


def test_sessions_do_not_see_each_other_and_each_remembers(tmp_path: Path) -> None:
    """SPEC A5, C6."""

    async def scenario(app: App, provider: FakeProvider) -> None:
        provider.answer_with(lambda body: Text(f"heard {len(str(body['messages']))}"))
        await ask(app, "my secret is 4711", "one")
        await ask(app, "hello", "two")
        await ask(app, "what is my secret?", "one")
        first, other, again = (str(request.body["messages"]) for request in provider.requests)
        assert "4711" in first
        assert "4711" not in other
        assert "4711" in again

    against_provider(tmp_path, scenario)


def test_what_a_local_child_sets_reaches_neither_its_parent_nor_its_sibling() -> None:
    """SPEC G2, F5: each is a task of this process with context variables of its own."""
    threads: set[int] = set()

    async def main() -> list[str]:
        first_has_set = asyncio.Event()

        async def drive(name: str, *, after: bool) -> Result:
            if after:
                await first_has_set.wait()
            before = current_scope.get()
            current_scope.set(Scope("r", "r", "s", name, 1, "bubble", ""))
            first_has_set.set()
            threads.add(threading.get_ident())
            found = await asyncio.to_thread(current_scope.get)
            assert found is not None
            return Result("success", f"{found.agent} after {before}")

        launcher = LocalLauncher()
        children = [
            launcher.launch(Birth(f"c{n}", f"s{n}", "abc123", name), partial(drive, name, after=bool(n)))
            for n, name in enumerate(("coder", "writer"))
        ]
        async with asyncio.timeout(5):
            answers = [(await child.result()).text for child in children]
        assert current_scope.get() is None
        return answers

    assert asyncio.run(main()) == ["coder after None", "writer after None"]
    assert threads == {threading.get_ident()}


def test_a_worker_out_of_time_is_stopped_and_its_parent_goes_on(tmp_path: Path) -> None:
    """SPEC K3: its HTTP connection is closed, what it delivered is kept, the answer still comes."""

    async def scenario(app: App, provider: FakeProvider) -> None:
        provider.queue(
            Calls(("c1", "delegate", f'{{"agent": "coder", "task": "{TASK}"}}')),
            Calls(("c2", "deliver", '{"path": "half.md", "content": "2, 3"}')),
            Hang(),
            Text("It took too long; half.md has what there is."),
        )
        seen = await ask(app, "go", worker_timeout_s=0.5)
        assert seen.result.outcome == "completed_unverified"
        child, root = seen.events(RunEnded)
        assert child.outcome == "timeout"
        assert list(child.result.pointers) == ["half.md"]
        assert [Path(pointer.path).name for pointer in root.artifacts] == ["half.md"]
        async with asyncio.timeout(5):
            await provider.requests[2].closed.wait()

    against_provider(tmp_path, scenario)


def test_a_channels_message_becomes_a_run_that_knows_its_id(tmp_path: Path) -> None:
    """A2."""
    script: Script = [{"agent": "orchestrator", "replies": [{"text": "Hello."}]}]
    message = Message("m-1", "talk", "web", "Hi", 1.0)

    async def main() -> Seen:
        settings = settings_for(tmp_path, write_script(tmp_path, script))
        async with asyncio.timeout(20), open_app(settings) as app:
            return await follow(await app.runs.start(RunRequest.from_message(message)))

    [started] = asyncio.run(main()).events(RunStarted)
    assert (started.message_id, started.channel, started.input, started.caller) == (
        "m-1",
        "web",
        "Hi",
        "user",
    )
