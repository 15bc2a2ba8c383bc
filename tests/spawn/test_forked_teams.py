"""A team whose lead runs in a process of its own: there, with the same events as anywhere (SPEC G3, G5)."""

import asyncio
import json
from pathlib import Path

from forked_scene import Wishes, call, ended, forked, forked_scene, local, results, turns

from xclaw.contracts.events import BoardChanged, ToolCallEnded
from xclaw.contracts.messages import UserMessage
from xclaw.contracts.models import ModelRequest
from xclaw.runtime.runs import RunRequest
from xclaw.testing.script_files import ScriptedCall, ScriptedReply

LEAD = forked("lead", "create_team", orchestrator=True)
BOSS = local(forked("boss", "delegate", orchestrator=True))
DONE = '{"status": "success", "summary_data": {"did": "it"}, "artifact_pointers": {}}'


def test_a_forked_lead_has_its_team_in_its_own_process(tmp_path: Path) -> None:
    async def answer(request: ModelRequest) -> str | ScriptedReply:
        told = [m.text for m in request.messages if isinstance(m, UserMessage)]
        match request.agent, turns(request):
            case "boss", 0:
                return call("delegate", agent="lead", task="Count the herons with your team.")
            case "lead", 0:
                arguments: dict[str, object] = {
                    "name": "squad",
                    "agents": ["left", "right"],
                    "goal": "Count the herons.",
                }
                return ScriptedReply(calls=(ScriptedCall(name="create_team", arguments=arguments),))
            case "left", 0:
                return call("team_tasks", action="add", text="Count")
            case "left", 1:
                return call("send_message", to="all", message="17 herons")
            case "right", _ if not any("17 herons" in text for text in told[1:]):
                return call("wait_for_mail")
            case "boss", _:
                return "All done."
            case "lead", _:
                return DONE
            case _:
                return "counted"

    async def main() -> None:
        agents = [BOSS, LEAD, local(forked("left")), local(forked("right"))]
        async with forked_scene(tmp_path, answer, Wishes(agents)) as scene:
            entries = await ended(scene, RunRequest("go", "s", "boss"))
        assert {name: r.outcome for name, r in results(entries).items()} == {
            "boss": "success",
            "lead": "success",
            "left": "success",
            "right": "success",
        }
        (told,) = [
            e.event for e in entries if isinstance(e.event, ToolCallEnded) and e.event.name == "create_team"
        ]
        record = json.loads(told.content)
        assert record["mail"] == {"left to right": 1}
        assert [e.event.change for e in entries if isinstance(e.event, BoardChanged)] == ["added"]

    asyncio.run(main())
