"""Cancelling takes as long as the slowest run, however deep the tree is: not as all of them together (SPEC K3)."""

import asyncio
import os
import signal
from pathlib import Path

from forked_scene import WAIT_S, Wishes, forked, forked_scene, local, started, turns, until

from xclaw.contracts.events import Entry, TurnStarted
from xclaw.contracts.models import ModelRequest
from xclaw.runtime.runs import RunRequest
from xclaw.runtime.settings import RuntimeSettings
from xclaw.spawn.forked_keeper import descendants
from xclaw.testing.script_files import ScriptedCall, ScriptedReply

LEVELS = 6
CHIEF = local(forked("chief", "delegate", "spawn", orchestrator=True))


def part(name: str, **arguments: object) -> ScriptedCall:
    return ScriptedCall(name=name, arguments=arguments)


async def answer(request: ModelRequest) -> str | ScriptedReply:
    """Each chief has an idle worker in the background, and hands the rest to the next chief."""
    if request.agent == "chief" and turns(request) == 0:
        level = int(started(request).rpartition("LEVEL-")[2][0]) - 1
        idle = part("spawn", agent="idle", prompt=f"IDLE-{level}: look at it")
        if level:
            return ScriptedReply(calls=(idle, part("delegate", agent="chief", task=f"LEVEL-{level}")))
        return ScriptedReply(calls=(idle,))
    return await asyncio.get_running_loop().create_future()


def test_a_deep_tree_of_stopped_workers_has_ended_within_five_seconds(tmp_path: Path) -> None:
    """C02: none of them lends a hand, and each is given a second, all of them the same one."""
    wishes = Wishes([CHIEF, forked("idle")], settings=RuntimeSettings(max_depth=LEVELS))

    async def main() -> None:
        asking: set[str] = set()
        everybody = asyncio.Event()

        def note(entry: Entry) -> None:
            if isinstance(entry.event, TurnStarted):
                asking.add(entry.address.run_id)
                if len(asking) == 2 * LEVELS:
                    everybody.set()

        async with forked_scene(tmp_path, answer, wishes) as scene, asyncio.timeout(3 * WAIT_S):
            scene.runs.subscribe(note)
            handle = await scene.runs.start(RunRequest(f"LEVEL-{LEVELS}", "s", "chief"))
            await everybody.wait()
            for link in scene.links:
                os.kill(min(descendants(link.pid)), signal.SIGSTOP)
            async with asyncio.timeout(5):
                ends = await handle.cancel("enough")
            assert [(end.outcome, end.late) for end in ends] == [("cancelled", False)] * 2 * LEVELS
            await until(lambda: not scene.workers())

    asyncio.run(main())
