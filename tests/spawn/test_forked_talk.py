"""What passes between a forked worker and the runtime: questions, messages, model calls that fail."""

import asyncio
from pathlib import Path

import pytest
from forked_scene import (
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

from xclaw.contracts.approvals import Answer
from xclaw.contracts.errors import AllModelsFailed, ModelUnavailable
from xclaw.contracts.events import (
    ApprovalAsked,
    AttemptFailed,
    Entry,
    MessageAdded,
    RunEnded,
    TextDelta,
    ToolCallEnded,
)
from xclaw.contracts.messages import AssistantMessage
from xclaw.contracts.models import Attempt, ModelProfile, ModelReply, ModelRequest, ReplySink
from xclaw.contracts.usage import Usage
from xclaw.runtime.permissions import PermissionSettings
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


def test_a_question_goes_to_the_user_and_exactly_that_call_runs(tmp_path: Path) -> None:
    """J2 from another process: who asks is told, siblings go on, the answer counts once."""

    async def answer(request: ModelRequest) -> str | ScriptedReply:
        if request.agent == "boss":
            calls = [ScriptedCall(name="delegate", arguments={"agent": a, "task": f"Do your part, {a}"})
                     for a in ("asker", "other")]  # fmt: skip
            return "Over." if turns(request) else ScriptedReply(calls=tuple(calls))
        if request.agent == "asker" and not turns(request):
            return shell("echo ran >> log.txt")
        return DONE

    async def main() -> None:
        agents = [BOSS, forked("asker", "shell"), forked("other")]
        async with forked_scene(tmp_path, answer, Wishes(agents)) as scene, asyncio.timeout(WAIT_S):
            asked: asyncio.Queue[ApprovalAsked] = asyncio.Queue()
            other = asyncio.Event()

            def note(entry: Entry) -> None:
                if isinstance(entry.event, ApprovalAsked):
                    asked.put_nowait(entry.event)
                if isinstance(entry.event, RunEnded) and entry.address.parent_id:
                    other.set()

            scene.runs.subscribe(note)
            handle = await scene.runs.start(RunRequest("go", "s", "boss"))
            question = await asked.get()
            assert question.path == ("boss", "asker")
            await other.wait()
            await scene.runs.approvals.answer(question.approval_id, Answer("once"), by="owner")
            await handle.result()
            entries = await scene.entries(handle.root_id)
            check_journal(entries)
            assert results(entries)["asker"].outcome == "success"
            assert [path.read_text() for path in tmp_path.rglob("log.txt")] == ["ran\n"]

    asyncio.run(main())


def test_unattended_a_question_is_denied_in_the_worker_too(tmp_path: Path) -> None:
    async def answer(request: ModelRequest) -> str | ScriptedReply:
        return DONE if turns(request) else shell("echo ran > log.txt")

    async def main() -> None:
        wishes = Wishes([forked("asker", "shell")], permissions=PermissionSettings(approval_timeout_s=0.05))
        async with forked_scene(tmp_path, answer, wishes) as scene:
            entries = await ended(scene, RunRequest("go", "s", "asker"))
            assert "nobody answered" in content(entries, "shell")
            assert not list(tmp_path.rglob("log.txt"))

    asyncio.run(main())


def test_what_is_said_to_a_worker_is_read_at_its_next_turn(tmp_path: Path) -> None:
    first_turn, steered = asyncio.Event(), asyncio.Event()

    async def answer(request: ModelRequest) -> str | ScriptedReply:
        if request.agent == "boss":
            if turns(request) == 1:
                await first_turn.wait()
            steps = (
                call("spawn", agent="worker", prompt="Begin with something"),
                call("send_message", to="worker", message="Use the letter B"),
                call("wait"),
                "Over.",
            )
            if turns(request) == 2:
                steered.set()
            return steps[turns(request)]
        if turns(request) == 0:
            first_turn.set()
            await steered.wait()
            return call("list_dir", path=".")
        return DONE.replace("it", started(request)[:40])

    async def main() -> None:
        async with forked_scene(tmp_path, answer, Wishes([BOSS, forked("worker", "list_dir")])) as scene:
            entries = await ended(scene, RunRequest("go", "s", "boss"))
            told = [e for e in entries if isinstance(e.event, MessageAdded) and e.address.parent_id]
            assert [e.event.text for e in told if isinstance(e.event, MessageAdded)] == ["Use the letter B"]
            assert "letter B" in str(results(entries)["worker"].summary_data)

    asyncio.run(main())


class _SecondTry:
    """A chain whose first model breaks off; what that cost is known."""

    name = "test:first"
    profile = PRICED

    async def reply(self, request: ModelRequest, sink: ReplySink) -> ModelReply:
        sink.on_text("Wrong st")
        sink.on_attempt_failed(
            Attempt("test:first", "broke off", 502, Usage(100, 10), 0.00012, "Wrong st", "test:second")
        )
        sink.on_text("Right.")
        return ModelReply(AssistantMessage("Right."), Usage(100, 20), "test:second", "stop", 0.00014)


def test_a_failed_attempt_is_taken_back_journaled_and_charged_across_the_pipe(tmp_path: Path) -> None:
    async def main() -> None:
        wishes = Wishes([forked("worker")], model=_SecondTry())
        async with forked_scene(tmp_path, no_answer, wishes) as scene:
            shown: list[str] = []

            def note(entry: Entry) -> None:
                if isinstance(entry.event, TextDelta):
                    shown.append(entry.event.text)
                if isinstance(entry.event, AttemptFailed):
                    shown.append(f"-{entry.event.retracted}")

            scene.runs.subscribe(note)
            entries = await ended(scene, RunRequest("go", "s", "worker"))
            assert shown == ["Wrong st", "-Wrong st", "Right."]
            [failed] = [e.event for e in entries if isinstance(e.event, AttemptFailed)]
            assert (failed.status, failed.usage.total_tokens, failed.next_model) == (502, 110, "test:second")
            spend = results(entries)["worker"].spend
            assert (spend.usage.total_tokens, spend.calls) == (230, 2)
            assert spend.known_usd == pytest.approx(0.00026)

    asyncio.run(main())


async def no_answer(request: ModelRequest) -> str:
    raise AssertionError("another model answers")


class _Broken:
    name = "test:broken"
    profile = PRICED

    async def reply(self, request: ModelRequest, sink: ReplySink) -> ModelReply:
        raise AllModelsFailed("nobody answers", (ModelUnavailable("busy", status=429, retry_after_s=3.0),))


def test_a_chain_that_failed_is_the_error_it_would_be_here(tmp_path: Path) -> None:
    async def main() -> None:
        async with forked_scene(tmp_path, no_answer, Wishes([forked("worker")], model=_Broken())) as scene:
            result = results(await ended(scene, RunRequest("go", "s", "worker")))["worker"]
            assert (result.outcome, result.reason) == ("error", "nobody answers")

    asyncio.run(main())


def test_a_user_s_word_to_a_forked_root_is_the_user_s(tmp_path: Path) -> None:
    asked, said = asyncio.Event(), asyncio.Event()

    async def answer(request: ModelRequest) -> str | ScriptedReply:
        if turns(request):
            return started(request)
        asked.set()
        await said.wait()
        return call("list_dir", path=".")

    async def main() -> None:
        async with forked_scene(tmp_path, answer, Wishes([forked("worker", "list_dir")])) as scene:
            async with asyncio.timeout(WAIT_S):
                handle = await scene.runs.start(RunRequest("go", "s", "worker"))
                await asked.wait()
                handle.steer("rather stop", "m1")
                said.set()
                assert (await handle.result()).text == "rather stop"
                entries = await scene.entries(handle.root_id)
            [told] = [e.event for e in entries if isinstance(e.event, MessageAdded)]
            assert (told.origin, told.message_id) == ("user", "m1")

    asyncio.run(main())


def test_a_worker_writes_to_whoever_started_it(tmp_path: Path) -> None:
    """G6: up to its lead, as data."""

    async def answer(request: ModelRequest) -> str | ScriptedReply:
        if request.agent == "boss":
            return (call("spawn", agent="worker", prompt="Tell me how it goes"), call("wait"), "Over.")[
                turns(request)
            ]
        return DONE if turns(request) else call("send_message", to="lead", message="half of it is done")

    async def main() -> None:
        async with forked_scene(tmp_path, answer, Wishes([BOSS, forked("worker", "send_message")])) as scene:
            entries = await ended(scene, RunRequest("go", "s", "boss"))
            told = [e.event for e in entries if isinstance(e.event, MessageAdded) and not e.address.parent_id]
            [mail] = [event for event in told if "half of it is done" in event.text]
            assert mail.origin == "notification"

    asyncio.run(main())
