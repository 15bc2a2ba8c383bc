"""The end of forked workers: whoever is killed, stopped or busy, a stated end and no process left."""

import asyncio
import os
import random
import signal
from pathlib import Path

import pytest
from forked_scene import (
    WAIT_S,
    Scene,
    Wishes,
    call,
    check_journal,
    ended,
    forked,
    forked_scene,
    local,
    results,
    turns,
    until,
)
from script_scene import script

from xclaw.contracts.agents import Agent, Limits
from xclaw.contracts.events import Entry, RunStarted, TextDelta
from xclaw.contracts.models import ModelProfile, ModelRequest
from xclaw.runtime.runs import RunHandle, RunRequest
from xclaw.runtime.settings import RuntimeSettings
from xclaw.spawn.forked_keeper import descendants
from xclaw.spawn.forked_process import ForkSettings, start_forked
from xclaw.testing.script_files import ScriptedCall, ScriptedReply

BOSS = local(forked("boss", "delegate", orchestrator=True))
DONE = '{"status": "success", "summary_data": {"did": "it"}, "artifact_pointers": {}}'
PRICED = ModelProfile(input_usd_per_million=1.0, output_usd_per_million=2.0, scripted=True)
BURN = "xclaw.say('burning')\nwhile True:\n    pass"


def worker_of(scene: Scene) -> int:
    """The worker's own process, which the keeper forked."""
    keeper = scene.links[-1].pid
    return min(descendants(keeper))


async def waits(request: ModelRequest) -> str | ScriptedReply:
    return await asyncio.get_running_loop().create_future()


async def running(scene: Scene, request: RunRequest) -> RunHandle:
    """A run whose worker has begun to work."""
    began = asyncio.Event()

    def note(entry: Entry) -> None:
        if isinstance(entry.event, TextDelta) or entry.seq > 1:
            began.set()

    scene.runs.subscribe(note)
    handle = await scene.runs.start(request)
    await began.wait()
    return handle


@pytest.mark.parametrize("stopped", ["worker", "keeper", "both"])
def test_a_stopped_worker_is_cancelled_all_the_same(tmp_path: Path, stopped: str) -> None:
    """C02: neither a worker nor its keeper has to lend a hand."""

    async def main() -> None:
        async with forked_scene(tmp_path, waits, Wishes([forked("idle")])) as scene, asyncio.timeout(WAIT_S):
            handle = await running(scene, RunRequest("go", "s", "idle"))
            worker, keeper = worker_of(scene), scene.links[-1].pid
            for pid, name in ((worker, "worker"), (keeper, "keeper")):
                if stopped in (name, "both"):
                    os.kill(pid, signal.SIGSTOP)
            async with asyncio.timeout(5):
                [end] = await handle.cancel("enough")
            assert (end.outcome, end.late) == ("cancelled", False)
            await until(lambda: not scene.workers())

    asyncio.run(main())


def test_a_stopped_worker_s_time_runs_out(tmp_path: Path) -> None:
    async def main() -> None:
        async with forked_scene(tmp_path, waits, Wishes([forked("idle")])) as scene, asyncio.timeout(WAIT_S):
            handle = await running(scene, RunRequest("go", "s", "idle", limits=Limits(timeout_s=3)))
            os.kill(worker_of(scene), signal.SIGSTOP)
            result = await handle.result()
            assert result.outcome == "timeout"
            assert not scene.workers()

    asyncio.run(main())


def test_a_killed_keeper_takes_its_worker_along(tmp_path: Path) -> None:
    async def main() -> None:
        agents = [script(tmp_path, BURN)]
        async with forked_scene(tmp_path, waits, Wishes(agents)) as scene, asyncio.timeout(WAIT_S):
            handle = await running(scene, RunRequest("go", "s", "mine"))
            worker = worker_of(scene)
            os.kill(scene.links[-1].pid, signal.SIGKILL)
            result = await handle.result()
            assert result.outcome == "error"
            assert "SIGKILL" in result.reason
            await until(lambda: worker not in descendants(1) and not scene.workers())

    asyncio.run(main())


def test_a_worker_that_cannot_be_started_is_an_error(tmp_path: Path) -> None:
    async def main() -> None:
        wishes = Wishes([BOSS, forked("idle")], module="xclaw.no_such_module")
        async with forked_scene(tmp_path, waits, wishes) as scene:
            result = results(await ended(scene, RunRequest("go", "s", "idle")))["idle"]
            assert result.outcome == "error"
            assert "No module named" in result.reason

    asyncio.run(main())


def test_a_link_ends_twice_and_knows_no_more_lines(tmp_path: Path) -> None:
    async def main() -> None:
        async with asyncio.timeout(WAIT_S):
            link = await start_forked(ForkSettings({"PATH": os.environ["PATH"]}))
            first = await link.end()
            assert await link.end() == first
            assert await link.receive() == b""
            with pytest.raises(ConnectionError, match="gone"):
                link.send(b"{}")

    asyncio.run(main())


def _agents(home: Path) -> list[Agent]:
    body = "xclaw.deliver('a.md', xclaw.ask('what?'))\nxclaw.delegate('leaf', 'Look at it')\nxclaw.finish({'n': 1})"
    return [
        BOSS,
        forked("lead", "delegate"),
        script(home, body, tools=["delegate"]),
        forked("plain", "write_file"),
        local(forked("leaf")),
    ]


async def _job(request: ModelRequest) -> str | ScriptedReply:
    """boss → lead (forked) → leaf; boss → mine (script) → leaf; boss → plain (forked)."""
    if turns(request):
        return "Over." if request.agent == "boss" else DONE
    match request.agent:
        case "boss":
            calls = [
                ScriptedCall(name="delegate", arguments={"agent": agent, "task": f"Do your part, {agent}"})
                for agent in ("lead", "mine", "plain")
            ]
            return ScriptedReply(calls=tuple(calls))
        case "lead":
            return call("delegate", agent="leaf", task="Look at the letters")
        case "plain":
            return call("write_file", path="a.md", content="text")
        case _:
            return DONE


@pytest.mark.timeout(300)
def test_workers_killed_at_random_instants_leave_a_sound_tree_and_no_process(tmp_path: Path) -> None:
    """K4, L1: every run has a stated end, every result is taken once, the ledger is the sum of its
    leaves, the parent goes on; whatever is killed, whenever."""
    seed = int(os.environ.get("XCLAW_TEST_SEED", "0")) or random.SystemRandom().randrange(1 << 30)
    chance = random.Random(seed)

    async def once(home: Path, victims: int) -> str:
        home.mkdir()
        settings = RuntimeSettings(allow_shell=True)
        async with forked_scene(
            home, _job, Wishes(_agents(home), settings=settings, profile=PRICED)
        ) as scene:
            seen: list[int] = []

            def kill(entry: Entry) -> None:
                if isinstance(entry.event, TextDelta):
                    return
                seen.append(1)
                if len(seen) in (first, first + victims):
                    alive = sorted(scene.workers())
                    if alive:
                        os.kill(chance.choice(alive), signal.SIGKILL)

            first = chance.randrange(5, 40)
            scene.runs.subscribe(kill)
            entries = await ended(scene, RunRequest("go", "s", "boss"))
            assert results(entries)["boss"].text == "Over.", f"seed {seed}"
            assert sum(isinstance(e.event, RunStarted) for e in entries) <= 6
            return results(entries)["lead"].outcome

    async def main() -> None:
        outcomes = [await once(tmp_path / str(n), chance.randrange(1, 9)) for n in range(15)]
        assert {"error", "success"} >= set(outcomes), f"seed {seed}: {outcomes}"

    asyncio.run(main())


def test_cancelling_a_tree_of_workers_ends_every_process_within_five_seconds(tmp_path: Path) -> None:
    """A busy script, an idle worker, one with a child of its own, and a stopped one: all confirm."""

    async def answer(request: ModelRequest) -> str | ScriptedReply:
        if request.agent == "boss":
            calls = [
                ScriptedCall(name="delegate", arguments={"agent": agent, "task": f"Do your part, {agent}"})
                for agent in ("mine", "idle", "lead")
            ]
            return ScriptedReply(calls=tuple(calls))
        if request.agent == "lead" and not turns(request):
            return call("delegate", agent="leaf", task="Look at the letters")
        asked.add(request.agent)
        if asked == {"idle", "leaf"}:
            all_asked.set()
        return await asyncio.get_running_loop().create_future()

    asked: set[str] = set()
    all_asked, burning = asyncio.Event(), asyncio.Event()

    async def main() -> None:
        agents = [
            BOSS,
            script(tmp_path, BURN),
            forked("idle"),
            forked("lead", "delegate"),
            local(forked("leaf")),
        ]
        async with (
            forked_scene(tmp_path, answer, Wishes(agents, profile=PRICED)) as scene,
            asyncio.timeout(WAIT_S),
        ):
            scene.runs.subscribe(lambda e: burning.set() if isinstance(e.event, TextDelta) else None)
            handle = await scene.runs.start(RunRequest("go", "s", "boss"))
            await all_asked.wait()
            await burning.wait()
            os.kill(min(descendants(scene.links[0].pid)), signal.SIGSTOP)
            async with asyncio.timeout(5):
                ends = await handle.cancel("enough")
            assert {end.outcome for end in ends} == {"cancelled"}
            assert not any(end.late for end in ends)
            assert len(ends) == 5
            assert not scene.workers()
            check_journal(await scene.entries(handle.root_id))

    asyncio.run(main())
