"""A forked agent hands work to whoever a local one could hand it to."""

import asyncio
from pathlib import Path

from forked_scene import Wishes, call, ended, forked, forked_scene, local, results, turns

from xclaw.contracts.models import ModelRequest
from xclaw.runtime.runs import RunRequest
from xclaw.testing.script_files import ScriptedReply

BOSS = forked("boss", "delegate", orchestrator=True)
OFF_THE_ROSTER = local(forked("lead", "delegate", orchestrator=True))


async def answer(request: ModelRequest) -> str | ScriptedReply:
    if request.agent == "boss" and turns(request) == 0:
        return call("delegate", agent="lead", task="PART-A: look at it")
    return '{"status": "success", "summary_data": {"did": "it"}, "artifact_pointers": {}}'


def test_an_agent_that_is_on_no_roster_can_be_named_in_a_worker_too(tmp_path: Path) -> None:
    """Whoever may hand work out itself is left out of the list that a model is shown, and has a name all the same."""

    async def main() -> None:
        async with forked_scene(tmp_path, answer, Wishes([BOSS, OFF_THE_ROSTER])) as scene:
            found = results(await ended(scene, RunRequest("go", "s", "boss")))
        assert {name: result.outcome for name, result in found.items()} == {
            "boss": "success",
            "lead": "success",
        }

    asyncio.run(main())
