"""Forked sub-agents: in the journal, the ledger and to whoever watches, they are like local ones."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest
from forked_scene import (
    KILL_WORKER,
    WAIT_S,
    Wishes,
    call,
    check_journal,
    ended,
    forked,
    forked_scene,
    local,
    results,
    shell,
    started,
    turns,
)

from xclaw.contracts.agents import Limits
from xclaw.contracts.events import (
    AttemptFailed,
    ChildSpawned,
    Entry,
    MessageAdded,
    ModelAnswered,
    RunResumed,
    RunStarted,
    TextDelta,
    ToolCallEnded,
)
from xclaw.contracts.models import ModelProfile, ModelRequest
from xclaw.contracts.permissions import Rules
from xclaw.runtime.runs import RunRequest
from xclaw.runtime.settings import RuntimeSettings
from xclaw.testing.script_files import ScriptedCall, ScriptedReply

SHELL = RuntimeSettings(allow_shell=True)
BOSS = local(forked("boss", "delegate", "spawn", "wait", "send_message", "stop", orchestrator=True))
DONE = '{"status": "success", "summary_data": {"did": "it"}, "artifact_pointers": {}}'
PRICED = ModelProfile(input_usd_per_million=1.0, output_usd_per_million=2.0, scripted=True)


def content(entries: list[Entry], tool: str) -> str:
    return next(
        e.event.content for e in entries if isinstance(e.event, ToolCallEnded) and e.event.name == tool
    )


def test_a_forked_run_is_journaled_watched_and_paid_for_like_a_local_one(tmp_path: Path) -> None:
    """G3: in another process, with the same events in the same order, and text as it streams."""

    async def answer(request: ModelRequest) -> str | ScriptedReply:
        if request.agent == "boss":
            return (
                "All done." if turns(request) else call("delegate", agent="worker", task="Write the letter A")
            )
        return DONE if turns(request) else shell("awk '{print $4}' /proc/$PPID/stat")

    async def kinds(worker_is_forked: bool, home: Path) -> list[str]:
        worker = forked("worker", "shell")
        agents = [BOSS, worker if worker_is_forked else local(worker)]
        home.mkdir()
        async with forked_scene(home, answer, Wishes(agents, settings=SHELL, profile=PRICED)) as scene:
            seen: list[Entry] = []
            scene.runs.subscribe(seen.append)
            entries = await ended(scene, RunRequest("go", "s", "boss"))
            assert [e for e in seen if not isinstance(e.event, TextDelta)] == entries
            assert any(isinstance(e.event, TextDelta) and e.address.parent_id for e in seen)
            assert {name: r.outcome for name, r in results(entries).items()} == {
                "boss": "success",
                "worker": "success",
            }
            is_parent = str(os.getpid()) in content(entries, "shell")
            assert is_parent is not worker_is_forked
            return [e.event.kind for e in entries]

    async def main() -> None:
        assert await kinds(True, tmp_path / "forked") == await kinds(False, tmp_path / "local")

    asyncio.run(main())


def test_a_killed_worker_is_an_error_with_its_signal_and_its_parent_goes_on(tmp_path: Path) -> None:
    async def answer(request: ModelRequest) -> str | ScriptedReply:
        if request.agent == "boss":
            return (
                "It failed."
                if turns(request)
                else call("delegate", agent="worker", task="Work on the letter")
            )
        return shell(KILL_WORKER)

    async def main() -> None:
        async with forked_scene(
            tmp_path, answer, Wishes([BOSS, forked("worker", "shell")], settings=SHELL)
        ) as scene:
            found = results(await ended(scene, RunRequest("go", "s", "boss")))
            assert found["worker"].outcome == "error"
            assert "SIGKILL" in found["worker"].reason
            assert found["boss"].text == "It failed."

    asyncio.run(main())


def test_a_worker_s_grandchildren_end_with_it_and_their_results_are_not_lost(tmp_path: Path) -> None:
    """A killed worker leaves no run open: what had ended is told, what had not is closed."""
    waiting = asyncio.Event()

    async def answer(request: ModelRequest) -> str | ScriptedReply:
        match request.agent:
            case "boss":
                return (
                    "Over." if turns(request) else call("delegate", agent="lead", task="Lead the two others")
                )
            case "lead":
                return (call("spawn", agent="quick", prompt="Answer at once please"),
                        call("spawn", agent="slow", prompt="Never answer this one"),
                        call("wait", timeout_s=0.2),
                        shell(KILL_WORKER))[turns(request)]  # fmt: skip
            case "quick":
                await waiting.wait()
                return DONE
            case _:
                waiting.set()
                return await asyncio.get_running_loop().create_future()

    async def main() -> None:
        lead = forked("lead", "spawn", "wait", "shell", orchestrator=True)
        agents = [BOSS, replace(lead, orchestrator=False), local(forked("quick")), local(forked("slow"))]
        async with forked_scene(tmp_path, answer, Wishes(agents, settings=SHELL)) as scene:
            found = results(await ended(scene, RunRequest("go", "s", "boss")))
            outcomes = {name: result.outcome for name, result in found.items()}
            assert outcomes["lead"] == "error"
            assert outcomes["slow"] == "cancelled"
            assert outcomes["boss"] == "completed_unverified"

    asyncio.run(main())


def test_the_budget_of_a_tree_holds_in_every_process(tmp_path: Path) -> None:
    """K4: refused before spending; the limit crosses the pipe as itself."""
    asked: list[str] = []

    async def answer(request: ModelRequest) -> str | ScriptedReply:
        asked.append(request.agent)
        if request.agent == "boss":
            return "Over." if turns(request) else call("delegate", agent="worker", task="Look at it for long")
        return call("list_dir", path=f"{turns(request)}")

    async def main() -> None:
        agents = [BOSS, forked("worker", "list_dir")]
        settings = RuntimeSettings(max_calls=3)
        async with forked_scene(tmp_path, answer, Wishes(agents, settings=settings)) as scene:
            found = results(await ended(scene, RunRequest("go", "s", "boss")))
            assert found["worker"].outcome == "over_budget"
            assert "3 model calls" in found["worker"].reason
            assert asked == ["boss", "worker", "worker"]

    asyncio.run(main())


def test_depth_deadline_and_permissions_travel_to_the_worker(tmp_path: Path) -> None:
    """Z03: at the depth limit nothing is handed out; a denied shell stays denied; the parent's time ends it."""

    async def answer(request: ModelRequest) -> str | ScriptedReply:
        if request.agent == "boss":
            return call("delegate", agent="worker", task="Do what you must not")
        calls = (
            ScriptedCall(name="delegate", arguments={"agent": "worker", "task": "Go one deeper"}),
            ScriptedCall(name="shell", arguments={"command": "echo hi > ran"}),
        )
        if turns(request):
            return await asyncio.get_running_loop().create_future()
        return ScriptedReply(calls=calls)

    async def main() -> None:
        boss = replace(BOSS, rules=Rules(deny=("shell",)))
        worker = replace(forked("worker", "delegate", "shell"), limits=Limits(timeout_s=60))
        settings = RuntimeSettings(allow_shell=True, max_depth=1)
        async with forked_scene(tmp_path, answer, Wishes([boss, worker], settings=settings)) as scene:
            entries = await ended(scene, RunRequest("go", "s", "boss", limits=Limits(timeout_s=4)))
            found = results(entries)
            assert found["boss"].outcome == "timeout"
            assert found["worker"].outcome == "cancelled"
            assert "deny shell" in content(entries, "shell")
            assert "delegate" in content(entries, "delegate")
            assert not list(tmp_path.rglob("ran"))
            assert sum(isinstance(e.event, ChildSpawned) for e in entries) == 1

    asyncio.run(main())


def test_the_number_of_runs_is_limited_over_all_processes(tmp_path: Path) -> None:
    async def answer(request: ModelRequest) -> str | ScriptedReply:
        if request.agent == "small":
            return DONE
        target = "lead" if request.agent == "boss" else "small"
        task = f"{request.agent} hands out number"
        calls = tuple(
            ScriptedCall(name="delegate", arguments={"agent": target, "task": f"{task} {n} of three"})
            for n in range(3)
        )
        return DONE if turns(request) else ScriptedReply(calls=calls)

    async def main() -> None:
        agents = [BOSS, forked("lead", "delegate"), local(forked("small"))]
        settings = RuntimeSettings(max_runs=6, max_concurrent=2)
        async with forked_scene(tmp_path, answer, Wishes(agents, settings=settings)) as scene:
            entries = await ended(scene, RunRequest("go", "s", "boss"))
            assert sum(isinstance(e.event, RunStarted) for e in entries) == 6
            refused = [
                e
                for e in entries
                if isinstance(e.event, ToolCallEnded) and "limit of 6 runs" in e.event.content
            ]
            assert len(refused) == 12 - 5

    asyncio.run(main())


def test_a_worker_may_fork_another(tmp_path: Path) -> None:
    async def answer(request: ModelRequest) -> str | ScriptedReply:
        match request.agent:
            case "boss":
                return (
                    "Over."
                    if turns(request)
                    else call("delegate", agent="middle", task="Pass it on to another")
                )
            case "middle":
                return (
                    DONE
                    if turns(request)
                    else call("delegate", agent="inner", task="Say which process you are")
                )
            case _:
                return DONE if turns(request) else shell("awk '{print $4}' /proc/$PPID/stat")

    async def main() -> None:
        agents = [BOSS, forked("middle", "delegate"), forked("inner", "shell")]
        async with forked_scene(tmp_path, answer, Wishes(agents, settings=SHELL)) as scene:
            entries = await ended(scene, RunRequest("go", "s", "boss"))
            assert {r.outcome for r in results(entries).values()} == {"success"}
            assert len(results(entries)) == 3
            assert str(os.getpid()) not in content(entries, "shell")
            assert len(scene.links) == 1, "the inner worker is the outer one's"

    asyncio.run(main())


def test_a_suspended_tree_is_taken_up_in_a_new_process_and_pays_for_nothing_twice(tmp_path: Path) -> None:
    """K6: what a parent that died had journaled of a forked run is where the next worker goes on."""
    second = asyncio.Event()
    calls: list[tuple[str, int]] = []

    async def answer(request: ModelRequest) -> str | ScriptedReply:
        calls.append((request.agent, turns(request)))
        if request.agent == "boss":
            return (
                "Over." if turns(request) else call("delegate", agent="worker", task="Make two files of it")
            )
        if turns(request) < 2:
            return call("write_file", path=f"{turns(request)}.md", content="text")
        if not second.is_set():
            second.set()
            return await asyncio.get_running_loop().create_future()
        return DONE

    async def main() -> None:
        agents = [BOSS, forked("worker", "write_file")]
        async with asyncio.timeout(WAIT_S):
            async with forked_scene(tmp_path, answer, Wishes(agents)) as scene:
                handle = await scene.runs.start(RunRequest("go", "s", "boss"))
                await second.wait()
                await scene.runs.suspend()
            async with forked_scene(tmp_path, answer, Wishes(agents, owner="next")) as scene:
                await (await scene.runs.resume(handle.root_id)).result()
                entries = await scene.entries(handle.root_id)
                check_journal(entries)
                assert {r.outcome for r in results(entries).values()} == {"success"}
                assert sum(isinstance(e.event, RunResumed) for e in entries) == 2
                assert calls == [("boss", 0), *(("worker", n) for n in (0, 1, 2, 2)), ("boss", 1)]

    asyncio.run(main())


def test_a_cut_off_call_is_paid_for_once(tmp_path: Path) -> None:
    """K4: a call that a cancellation ended is in the journal and in the ledger, with the same estimate."""
    asked = asyncio.Event()

    async def answer(request: ModelRequest) -> str | ScriptedReply:
        if request.agent == "boss":
            return call("delegate", agent="worker", task="Think about it for long")
        asked.set()
        return await asyncio.get_running_loop().create_future()

    async def main() -> None:
        async with forked_scene(tmp_path, answer, Wishes([BOSS, forked("worker")], profile=PRICED)) as scene:
            async with asyncio.timeout(WAIT_S):
                handle = await scene.runs.start(RunRequest("go", "s", "boss"))
                await asked.wait()
                ends = await handle.cancel("enough")
                entries = await scene.entries(handle.root_id)
            check_journal(entries)
            assert not any(end.late for end in ends)
            [cut] = [e.event for e in entries if isinstance(e.event, AttemptFailed)]
            assert cut.usage.total_tokens > 0
            assert results(entries)["worker"].spend.known_usd == pytest.approx(cut.cost_usd)
            assert sum(isinstance(e.event, ModelAnswered) for e in entries) == 1

    asyncio.run(main())


def test_mail_between_runs_of_a_worker_that_was_not_read_before_a_crash_is_read_after_it(
    tmp_path: Path,
) -> None:
    sent = asyncio.Event()
    last = asyncio.Event()

    async def answer(request: ModelRequest) -> str | ScriptedReply:
        if request.agent == "lead":
            if turns(request) == 2 and not last.is_set():
                sent.set()
                return await asyncio.get_running_loop().create_future()
            return (
                call("spawn", agent="leaf", prompt="Begin with something"),
                call("send_message", to="leaf", message="Use the letter B"),
                call("wait"),
                DONE,
            )[turns(request)]
        if not last.is_set():
            return await asyncio.get_running_loop().create_future()
        return DONE.replace("it", started(request)[:40])

    async def main() -> None:
        agents = [forked("lead", "spawn", "send_message", "wait", orchestrator=True), local(forked("leaf"))]
        async with asyncio.timeout(WAIT_S):
            async with forked_scene(tmp_path, answer, Wishes(agents)) as scene:
                handle = await scene.runs.start(RunRequest("go", "s", "lead"))
                await sent.wait()
                await scene.runs.suspend()
            last.set()
            async with forked_scene(tmp_path, answer, Wishes(agents, owner="next")) as scene:
                result = await (await scene.runs.resume(handle.root_id)).result()
                entries = await scene.entries(handle.root_id)
        check_journal(entries)
        assert result.outcome == "success", result.reason
        assert "letter B" in str(results(entries)["leaf"].summary_data)
        told = [e.event.text for e in entries if isinstance(e.event, MessageAdded) and e.address.parent_id]
        assert told == ["Use the letter B"]

    asyncio.run(main())
