"""Questions that outlive their process, and answers from another one (SPEC J2)."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from approving import asked, hand, opened, orchestrates, runs_shell, say, settings_of, shell, worker
from harness import Script, follow

from xclaw.app import open_app
from xclaw.contracts.agents import Agent
from xclaw.contracts.approvals import Answer, Approval
from xclaw.contracts.errors import UsageError
from xclaw.contracts.events import ApprovalAnswered, ApprovalAsked, Entry, ToolCallEnded, ToolCallStarted
from xclaw.contracts.messages import ToolMessage
from xclaw.contracts.scope import current_scope
from xclaw.contracts.tools import ToolContext
from xclaw.loop.state import fold
from xclaw.runtime.runs import RunRequest
from xclaw.tools.functions import tool

COUNTING = "echo ran >> log.txt; cat log.txt"
SCRIPT: Script = [orchestrates(hand("B", "TASK-B: do it")), runs_shell("B", COUNTING)]


def run(main: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(30):
            await main()

    asyncio.run(bounded())


def calls(entries: list[Entry]) -> list[ToolCallEnded]:
    ended = [entry.event for entry in entries if isinstance(entry.event, ToolCallEnded)]
    return [event for event in ended if event.name == "shell"]


async def left_waiting(home: Path) -> Approval:
    """A question that was asked by a process which has ended since."""
    async with opened(home, SCRIPT, [worker("B")]) as app:
        await app.runs.start(RunRequest("go", "s"))
        [approval] = await asked(app)
        assert await app.runs.suspend() == 1
    return approval


async def resumed(home: Path, meanwhile: Callable[[Approval], Awaitable[None]] | None = None) -> list[Entry]:
    """The tree, taken up by another process and run to its end."""
    async with opened(home, SCRIPT, [worker("B")]) as app:
        [row] = await app.runs.interrupted()
        handle = await app.runs.resume(row.root_id)
        task = asyncio.get_running_loop().create_task(follow(handle))
        if meanwhile is not None:
            [approval] = await asked(app)
            await say(app, approval)
            await meanwhile(approval)
        assert (await task).result.outcome == "success"
        return await app.journal.read_tree(row.root_id)


def test_a_run_that_is_taken_up_asks_the_same_question_again_and_runs_once(tmp_path: Path) -> None:
    """J2, H12: the same id; the call once and its result once in what the model sees."""

    async def main() -> None:
        before = await left_waiting(tmp_path)

        async def same(approval: Approval) -> None:
            assert approval.approval_id == before.approval_id

        entries = await resumed(tmp_path, same)
        assert sum(isinstance(entry.event, ApprovalAsked) for entry in entries) == 1
        assert sum(isinstance(entry.event, ApprovalAnswered) for entry in entries) == 1
        [call] = calls(entries)
        assert call.content == "ran\n[exit code 0]"
        own = [entry for entry in entries if entry.address.run_id == before.run_id]
        state = fold(own)
        results = [message for message in state.messages if isinstance(message, ToolMessage)]
        assert [message.call_id for message in results] == [before.call_id]

    run(main)


@pytest.mark.parametrize("decision", ["once", "deny", "always"])
def test_an_answer_that_came_while_nobody_drove_the_run_counts_when_it_is_taken_up(
    tmp_path: Path, decision: str
) -> None:
    """J2: it is parked, listed, answered by a process that does nothing else, and goes on."""

    async def main() -> None:
        before = await left_waiting(tmp_path)
        async with opened(tmp_path, SCRIPT, [worker("B")]) as app:
            [parked] = await app.runs.approvals.pending()
            assert parked == before
            assert not app.journal.owner_alive(parked.owner)
            await say(app, parked, decision, reason="so it is")
            assert await app.runs.approvals.pending() == []
            with pytest.raises(UsageError, match=f"answered already: {decision}"):
                await say(app, parked)
        entries = await resumed(tmp_path)
        [call] = calls(entries)
        started = [e for e in entries if isinstance(e.event, ToolCallStarted) and e.event.name == "shell"]
        assert call.ok == (decision != "deny")
        assert len(started) == (decision != "deny")
        assert ("so it is" in call.content) == (decision == "deny")
        grants = tmp_path / "permissions.toml"
        assert grants.exists() == (decision == "always")

    run(main)


def test_an_answer_from_another_process_wakes_the_one_that_waits(tmp_path: Path) -> None:
    """J2: through its socket, at once, long before it would look by itself."""

    async def main() -> None:
        async with opened(tmp_path, SCRIPT, [worker("B")]) as driving:
            handle = await driving.runs.start(RunRequest("go", "s"))
            await asked(driving)
            async with opened(tmp_path, SCRIPT, [worker("B")]) as answering:
                [approval] = await answering.runs.approvals.pending()
                assert answering.journal.owner_alive(approval.owner)
                async with asyncio.timeout(4):
                    await say(answering, approval)
                    assert (await handle.result()).outcome == "success"

    run(main)


def test_of_several_answers_at_once_exactly_one_counts(tmp_path: Path) -> None:
    """A04: from two processes, ten each."""

    async def main() -> None:
        async with (
            opened(tmp_path, SCRIPT, [worker("B")]) as one,
            opened(tmp_path, SCRIPT, [worker("B")]) as two,
        ):
            handle = await one.runs.start(RunRequest("go", "s"))
            [approval] = await asked(one)
            taken: list[str] = []
            refused: list[str] = []

            async def answer(number: int) -> None:
                app = one if number % 2 else two
                try:
                    await app.runs.approvals.answer(approval.approval_id, Answer("once"), by=f"user{number}")
                    taken.append(f"user{number}")
                except UsageError as refusal:
                    refused.append(str(refusal))

            async with asyncio.TaskGroup() as group:
                for number in range(20):
                    group.create_task(answer(number))
            assert len(taken) == 1
            assert len(refused) == 19
            assert all(taken[0] in refusal for refusal in refused)
            await handle.result()
            [call] = calls(await one.journal.read_tree(handle.root_id))
            assert call.content == "ran\n[exit code 0]"

    run(main)


def test_a_run_that_is_given_up_voids_its_question(tmp_path: Path) -> None:
    """J2: a parked run that is cancelled, and a session that goes on without it."""

    async def main() -> None:
        before = await left_waiting(tmp_path)
        async with opened(tmp_path, SCRIPT, [worker("B")]) as app:
            await app.cancel(before.root_id, "not needed")
            assert await app.runs.approvals.pending() == []
            with pytest.raises(UsageError, match="is void"):
                await say(app, before)

    run(main)


def test_answers_go_with_the_session_they_were_given_in(tmp_path: Path) -> None:
    """A03: a session that is deleted leaves no grant behind."""
    script: Script = [{"agent": "B", "replies": [{"calls": [shell("echo hi")]}, {"text": "x"}]}]

    async def main() -> None:
        async with opened(tmp_path, script, [worker("B")]) as app:
            for _ in range(2):
                handle = await app.runs.start(RunRequest("go", "s", "B"))
                [approval] = await asked(app)
                assert approval.path == ("B",)
                await say(app, approval, "session")
                await handle.result()
                handle = await app.runs.start(RunRequest("go", "s", "B"))
                await handle.result()
                assert await app.journal.approvals.session_rules("s", "B") == ("shell(echo hi)",)
                await app.journal.sessions.delete(("s",))
                assert await app.journal.approvals.session_rules("s", "B") == ()
                assert await app.journal.approvals.approval(approval.approval_id) is None

    run(main)


def test_a_run_sees_the_rules_that_it_began_with(tmp_path: Path) -> None:
    """J1: what changed in the settings meanwhile does not widen what was begun under stricter ones."""

    async def main() -> None:
        before = await left_waiting(tmp_path)
        async with opened(tmp_path, SCRIPT, [worker("B")], allow=("shell",)) as app:
            handle = await app.runs.resume(before.root_id)
            [approval] = await asked(app)
            assert json.loads(approval.arguments) == {"command": COUNTING}
            await say(app, approval, "deny")
            await handle.result()
            [call] = calls(await app.journal.read_tree(before.root_id))
            assert not call.ok

    run(main)


def test_a_run_that_is_taken_up_where_nobody_can_be_asked_takes_the_answer_or_a_denial(
    tmp_path: Path,
) -> None:
    """A01: it does not wait for ever in a process without a terminal."""

    async def main() -> None:
        before = await left_waiting(tmp_path)
        async with opened(tmp_path, SCRIPT, [worker("B")], unattended="deny") as app:
            handle = await app.runs.resume(before.root_id)
            assert (await handle.result()).outcome == "success"
            [call] = calls(await app.journal.read_tree(before.root_id))
            assert "nobody is there" in call.content

    run(main)


def test_waiting_for_people_takes_no_worker_s_place(tmp_path: Path) -> None:
    """J2, C04: with one place for workers, five ask and a sixth that asks nothing ends meanwhile."""
    script: Script = [
        orchestrates(*(hand("B", f"TASK-{n}: do it") for n in range(5)), hand("C", "TASK-C: talk")),
        runs_shell("B", "echo hi"),
        {"agent": "C", "replies": [{"text": {"status": "success", "summary_data": {"said": "meanwhile"}}}]},
    ]

    async def main() -> None:
        async with opened(tmp_path, script, [worker("B"), worker("C")]) as app:
            app.runs._slots = asyncio.Semaphore(1)  # pyright: ignore[reportPrivateUsage]
            handle = await app.runs.start(RunRequest("go", "s"))
            done = asyncio.Event()
            handle.subscribe(lambda entry: done.set() if entry.event.kind == "child_ended" else None)
            asks = await asked(app, 5)
            await done.wait()
            for approval in asks:
                await say(app, approval)
            assert (await handle.result()).outcome == "success"

    run(main)


def test_a_run_and_its_threads_see_the_strictest_mode_of_their_chain_and_nobody_else_does(
    tmp_path: Path,
) -> None:
    """F5, J1: a worker in plan mode beside one that is not, below the same parent."""
    seen: dict[str, list[str]] = {}

    @tool(effect="reads")
    def look(context: ToolContext) -> str:
        """Look at the scope, in the tool's own thread."""
        scope = current_scope.get()
        assert scope is not None
        seen.setdefault(context.agent, []).append(scope.permission_mode)
        return "looked"

    looks: dict[str, object] = {"name": "look", "arguments": {}}
    writes: dict[str, object] = {"name": "write_file", "arguments": {"path": "a", "content": "b"}}
    script: Script = [
        orchestrates(hand("careful", "TASK-C: look"), hand("free", "TASK-F: look"), looks),
        {"agent": "careful", "replies": [{"calls": [looks, writes]}, {"text": "x"}]},
        {"agent": "free", "replies": [{"calls": [looks, writes]}, {"text": "x"}]},
    ]
    tools = ("look", "write_file")
    agents = [
        Agent("careful", "c", "You are careful.", tools=tools, permission_mode="plan"),
        Agent("free", "f", "You are free.", tools=tools, permission_mode="accept-edits"),
        Agent("orchestrator", "o", "You lead.", tools=("delegate", "look"), orchestrator=True),
    ]

    async def main() -> None:
        settings = settings_of(tmp_path, script)
        async with open_app(settings, agents=agents, tools=[look]) as app:
            task = await app.runs.start(RunRequest("go", "s"))
            entries = (await follow(task)).entries
            assert seen == {"orchestrator": ["default"], "careful": ["plan"], "free": ["default"]}
            written = [
                e.event
                for e in entries
                if isinstance(e.event, ToolCallEnded) and e.event.name == "write_file"
            ]
            assert sorted(call.ok for call in written) == [False, True]
            [denied] = [call.content for call in written if not call.ok]
            assert "the mode `plan` of careful" in denied

    run(main)


def test_a_project_s_agent_does_not_inherit_what_another_of_its_name_was_granted(tmp_path: Path) -> None:
    """A03: a file that takes a trusted name."""
    script: Script = [runs_shell("coder", "git status")]
    file = "---\nname: coder\ndescription: c\ntools: shell\n---\nYou are coder.\n"

    async def asks(home: Path, directory: Path) -> bool:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "coder.md").write_text(file)
        settings = settings_of(home, script)
        settings = replace(settings, agents=replace(settings.agents, directories=(str(directory),)))
        async with open_app(settings) as app:
            handle = await app.runs.start(RunRequest("go", "s", "coder"))
            task = asyncio.get_running_loop().create_task(follow(handle))
            waits = asyncio.get_running_loop().create_task(asked(app))
            await asyncio.wait([task, waits], return_when=asyncio.FIRST_COMPLETED)
            if not waits.done():
                waits.cancel()
                return False
            await say(app, waits.result()[0], "always")
            await task
            return True

    async def main() -> None:
        assert await asks(tmp_path, tmp_path / "agents")
        await forget(tmp_path)
        assert not await asks(tmp_path, tmp_path / "agents")
        assert await asks(tmp_path, tmp_path / "project" / ".claude" / "agents")

    async def forget(home: Path) -> None:
        """The conversation, so that only the file is left to tell."""
        async with open_app(settings_of(home, script)) as app:
            await app.journal.sessions.delete(("s",))

    run(main)
