"""A user's own script as a forked agent (SPEC G3): its calls are its run's, its end is a stated one."""

import asyncio
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

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
    started,
    turns,
    until,
)
from script_scene import script

from xclaw.contracts.agents import Limits
from xclaw.contracts.events import (
    ArtifactDelivered,
    MessageAdded,
    ModelAnswered,
    RunStarted,
    TextDelta,
    TurnStarted,
)
from xclaw.contracts.models import ModelRequest
from xclaw.contracts.results import Result
from xclaw.runtime.runs import RunRequest
from xclaw.runtime.settings import RuntimeSettings
from xclaw.testing.script_files import ScriptedReply

DONE = '{"status": "success", "summary_data": {"did": "it"}, "artifact_pointers": {}}'
BOSS = local(forked("boss", "delegate", orchestrator=True))


async def echo(request: ModelRequest) -> str | ScriptedReply:
    if request.agent == "boss":
        return "Over." if turns(request) else call("delegate", agent="mine", task="Count the rivers")
    return f"{request.instructions}|{started(request)}"


def data(result: Result) -> Any:
    """What a script that succeeded said."""
    assert result.outcome == "success", result.reason
    return cast("Any", result.summary_data)


def run_script(home: Path, body: str, *arguments: str, wishes: Wishes | None = None) -> Result:
    """The result of a root that is a script."""

    async def main() -> Result:
        wanted = replace(wishes or Wishes(), agents=[script(home, body, *arguments), forked("other")])
        async with forked_scene(home, echo, wanted) as scene:
            return results(await ended(scene, RunRequest("Count the rivers", "s", "mine")))["mine"]

    return asyncio.run(main())


def test_a_script_is_a_process_of_its_own_with_its_arguments_and_its_task(tmp_path: Path) -> None:
    body = "xclaw.finish({'pid': os.getpid(), 'arguments': sys.argv[1:], 'task': xclaw.task()}, 'counted')"
    result = run_script(tmp_path, body, "--mode", "debug")
    assert (result.outcome, result.text) == ("success", "counted")
    assert data(result)["pid"] != os.getpid()
    assert data(result)["arguments"] == ["--mode", "debug"]
    assert data(result)["task"] == "Count the rivers"


def test_each_ask_is_a_journaled_model_call_of_the_run(tmp_path: Path) -> None:
    """K5: prompt, answer, tokens and cost are in the trace."""
    body = (
        "xclaw.say('two questions')\nxclaw.finish([xclaw.ask('one?'), xclaw.ask('two?', system='Be brief.')])"
    )

    async def main() -> None:
        deltas: list[str] = []
        async with forked_scene(tmp_path, echo, Wishes([script(tmp_path, body)])) as scene:
            scene.runs.subscribe(
                lambda e: deltas.append(e.event.text) if isinstance(e.event, TextDelta) else None
            )
            entries = await ended(scene, RunRequest("go", "s", "mine"))
        assert results(entries)["mine"].summary_data == ["Work.|one?", "Be brief.|two?"]
        assert sum(isinstance(e.event, ModelAnswered) for e in entries) == 2
        assert sum(isinstance(e.event, TurnStarted) for e in entries) == 2
        prompts = [e.event.text for e in entries if isinstance(e.event, MessageAdded)]
        assert prompts[0] == "one?"
        assert "Be brief." in prompts[1]
        assert results(entries)["mine"].spend.calls == 2
        assert "two questions\n" in deltas

    asyncio.run(main())


def test_an_answer_that_does_not_fit_its_schema_is_asked_for_again(tmp_path: Path) -> None:
    body = "xclaw.finish(xclaw.ask('How many?', schema={'type': 'object', 'required': ['n']}))"
    answers = iter(["many", '{"m": 1}', 'Here: {"n": 3}'])

    async def answer(request: ModelRequest) -> str:
        return next(answers)

    async def main() -> None:
        async with forked_scene(tmp_path, answer, Wishes([script(tmp_path, body)])) as scene:
            entries = await ended(scene, RunRequest("go", "s", "mine"))
        assert results(entries)["mine"].summary_data == {"n": 3}
        assert sum(isinstance(e.event, ModelAnswered) for e in entries) == 3

    asyncio.run(main())


def test_a_script_delivers_and_delegates_as_its_run(tmp_path: Path) -> None:
    body = """
path = xclaw.deliver("report.md", "# Rivers")
done = xclaw.delegate("other", "Look at the rivers")
xclaw.finish({"path": path, "outcome": done.outcome, "data": done.summary_data, "spend": xclaw.spend()})
"""

    async def answer(request: ModelRequest) -> str:
        return DONE

    async def main() -> None:
        agents = [script(tmp_path, body, tools=["delegate"]), local(forked("other"))]
        async with forked_scene(tmp_path, answer, Wishes(agents)) as scene:
            entries = await ended(scene, RunRequest("go", "s", "mine"))
        result = results(entries)["mine"]
        assert (data(result)["outcome"], data(result)["data"]) == ("success", {"did": "it"})
        assert data(result)["spend"]["calls"] == 1
        assert Path(result.pointers["report.md"].path).read_text() == "# Rivers"
        assert data(result)["path"] == result.pointers["report.md"].path
        assert sum(isinstance(e.event, ArtifactDelivered) for e in entries) == 1
        assert sum(isinstance(e.event, RunStarted) for e in entries) == 2

    asyncio.run(main())


@pytest.mark.parametrize(
    ("body", "outcome", "said"),
    [
        ("print('all counted')", "success", "all counted"),
        ("raise ValueError('no rivers')", "error", "ValueError: no rivers"),
        ("sys.exit(3)", "error", "exit code 3"),
        ("os.kill(os.getpid(), 11)", "error", "SIGSEGV"),
        ("xclaw.fail('dry land')", "error", "dry land"),
        ("xclaw.delegate('other', 'Look at the rivers')", "error", "may not hand work out"),
        ("xclaw.deliver('../../../etc/passwd', 'x')", "error", "Refused"),
        ("xclaw._line.call('nonsense')", "error", "there is no call 'nonsense'"),
        ("xclaw.finish({1, 2})", "error", "not JSON serializable"),
        ("os.write(int(os.environ['XCLAW_SCRIPT_FD']), b'nonsense\\n'); time.sleep(60)", "error", "no call"),
        ("os.write(int(os.environ['XCLAW_SCRIPT_FD']), b'[' * 9999 + b'\\n'); time.sleep(60)", "error", "no call"),
    ],
)  # fmt: skip
def test_a_script_s_end_is_stated(tmp_path: Path, body: str, outcome: str, said: str) -> None:
    """Exit code, signal, traceback and nonsense: each is a result with its reason."""
    result = run_script(tmp_path, body)
    assert result.outcome == outcome
    assert said in f"{result.reason} {result.text}"


def test_a_script_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    async def main() -> None:
        agent = replace(script(tmp_path, ""), script=(str(tmp_path / "missing.py"),))
        async with forked_scene(tmp_path, echo, Wishes([agent])) as scene:
            result = results(await ended(scene, RunRequest("go", "s", "mine")))["mine"]
        assert result.outcome == "error"
        assert "missing.py" in result.reason

    asyncio.run(main())


def test_limits_reach_the_script_as_errors_it_can_handle(tmp_path: Path) -> None:
    body = """
answers = []
try:
    while True:
        answers.append(xclaw.ask("again"))
except xclaw.LimitReached as limit:
    xclaw.finish({"answers": len(answers), "limit": str(limit)})
"""
    result = run_script(tmp_path, body, wishes=Wishes(settings=RuntimeSettings(max_calls=3)))
    assert result.summary_data == {"answers": 3, "limit": "the limit of 3 model calls is used up"}


def test_a_task_s_result_form_is_filled_from_what_the_script_says(tmp_path: Path) -> None:
    """E1: a structured task gets summary_data, also from a script that says nothing of it."""

    async def main() -> None:
        async with forked_scene(tmp_path, echo, Wishes([BOSS, script(tmp_path, "print('seven')")])) as scene:
            entries = await ended(scene, RunRequest("go", "s", "boss"))
        assert results(entries)["mine"].summary_data == {"output": "seven"}
        assert results(entries)["boss"].outcome == "success"

    asyncio.run(main())


def test_no_key_is_in_a_worker_s_or_a_script_s_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "MY_TOKEN",
        "XCLAW_GATEWAY_TOKEN",
    ):
        monkeypatch.setenv(name, "sk-very-secret")
    body = """
seen = {"environ": dict(os.environ)}
pid = os.getppid()
for name in ("script", "worker", "keeper"):
    here = os.getpid() if name == "script" else pid
    seen[name] = open(f"/proc/{here}/environ").read()
    if name == "worker":
        pid = int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
xclaw.finish(seen)
"""
    result = run_script(tmp_path, body)
    assert "PATH" in json.dumps(data(result))
    assert "sk-very-secret" not in json.dumps(data(result))


def test_a_script_that_burns_cpu_stops_nobody_else(tmp_path: Path) -> None:
    """G3: shown by order, not by time: a whole other tree runs from start to end while it burns."""
    body = """
xclaw.say("burning")
while not os.path.exists(sys.argv[1]):
    sum(range(100_000))
"""

    async def main() -> None:
        stop = tmp_path / "stop"
        agents = [script(tmp_path, body, str(stop)), local(forked("other"))]
        async with forked_scene(tmp_path, echo, Wishes(agents)) as scene, asyncio.timeout(WAIT_S):
            burning = asyncio.Event()
            scene.runs.subscribe(lambda e: burning.set() if isinstance(e.event, TextDelta) else None)
            handle = await scene.runs.start(RunRequest("go", "s", "mine"))
            await burning.wait()
            for number in range(20):
                other = await scene.runs.start(RunRequest(f"say {number}", f"s{number}", "other"))
                assert (await other.result()).succeeded
            [row] = await scene.journal.runs(open_only=True)
            assert row.run_id == handle.run_id
            stop.touch()
            assert (await handle.result()).outcome == "success"

    asyncio.run(main())


def test_what_a_script_left_in_the_background_is_gone_with_it(tmp_path: Path) -> None:
    """No orphan: neither a child, nor a daemon in a session of its own with an empty environment."""
    body = """
import subprocess
pids = [subprocess.Popen(["sleep", "300"]).pid]
if (child := os.fork()) == 0:
    os.setsid()
    if (daemon := os.fork()) == 0:
        os.execve("/bin/sleep", ["sleep", "300"], {})
    open(sys.argv[1], "w").write(str(daemon))
    os._exit(0)
os.waitpid(child, 0)
xclaw.finish([*pids, int(open(sys.argv[1]).read())])
"""
    result = run_script(tmp_path, body, str(tmp_path / "daemon"))
    pids = data(result)
    assert len(pids) == 2
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_script_that_starts_again_gets_the_answers_that_it_had(tmp_path: Path) -> None:
    """K6: what was answered before a crash is answered the same and paid for once."""
    body = """
one = xclaw.ask("one?")
path = xclaw.deliver("one.md", one)
done = xclaw.delegate("other", "Look at the rivers")
two = xclaw.ask("two?")
xclaw.finish([one, done.text, two])
"""
    second = asyncio.Event()
    asked: list[str] = []

    async def answer(request: ModelRequest) -> str:
        asked.append(started(request) if request.agent == "mine" else request.agent)
        if request.agent == "other":
            return DONE
        if asked[-1] == "two?" and not second.is_set():
            second.set()
            return await asyncio.get_running_loop().create_future()
        return f"answer {len(asked)}"

    async def main() -> None:
        agents = [script(tmp_path, body, tools=["delegate"]), local(forked("other"))]
        async with asyncio.timeout(WAIT_S):
            async with forked_scene(tmp_path, answer, Wishes(agents)) as scene:
                handle = await scene.runs.start(RunRequest("go", "s", "mine"))
                await second.wait()
                await scene.runs.suspend()
            # The script's agent may have been given for that run alone: the journal knows it.
            async with forked_scene(tmp_path, answer, Wishes(agents[1:], owner="next")) as scene:
                result = await (await scene.runs.resume(handle.root_id)).result()
                entries = await scene.entries(handle.root_id)
        check_journal(entries)
        assert result.outcome == "success", result.reason
        assert result.summary_data == ["answer 1", DONE, "answer 4"]
        assert asked == ["one?", "other", "two?", "two?"]
        assert sum(isinstance(e.event, ArtifactDelivered) for e in entries) == 1

    asyncio.run(main())


def test_cancelling_a_busy_script_ends_it_at_once(tmp_path: Path) -> None:
    """C02, K3: nothing of it goes on, not even what ignores signals."""
    body = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
xclaw.say("burning")
while True:
    pass
"""

    async def main() -> None:
        async with (
            forked_scene(tmp_path, echo, Wishes([script(tmp_path, body)])) as scene,
            asyncio.timeout(WAIT_S),
        ):
            burning = asyncio.Event()
            scene.runs.subscribe(lambda e: burning.set() if isinstance(e.event, TextDelta) else None)
            handle = await scene.runs.start(RunRequest("go", "s", "mine"))
            await burning.wait()
            async with asyncio.timeout(5):
                [end] = await handle.cancel("enough")
            assert (end.outcome, end.late) == ("cancelled", False)
            assert not scene.workers()

    asyncio.run(main())


def test_a_script_s_time_is_its_run_s(tmp_path: Path) -> None:
    body = "xclaw.say('waiting')\ntime.sleep(300)"

    async def main() -> None:
        async with forked_scene(tmp_path, echo, Wishes([script(tmp_path, body)])) as scene:
            request = RunRequest("go", "s", "mine", limits=Limits(timeout_s=2.5))
            entries = await ended(scene, request)
            assert results(entries)["mine"].outcome == "timeout"
            await until(lambda: not scene.workers())

    asyncio.run(main())
