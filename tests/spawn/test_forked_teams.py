"""A team whose lead runs in a process of its own: there, with the same events as anywhere (SPEC G3, G5)."""

import asyncio
import json
from pathlib import Path

import pytest
from forked_scene import Wishes, call, ended, forked, forked_scene, local, results, turns

from xclaw.contracts.coordination import PHASE_TOOLS
from xclaw.contracts.events import BoardChanged, RunStarted, ToolCallEnded
from xclaw.contracts.messages import UserMessage
from xclaw.contracts.models import ModelRequest
from xclaw.runtime.runs import RunRequest
from xclaw.runtime.settings import RuntimeSettings
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


@pytest.mark.parametrize("strategy", ["sequential", "round-robin"])
def test_a_forked_lead_has_teams_of_every_strategy(tmp_path: Path, strategy: str) -> None:
    """G5: telling a member that it is its turn is mail that a lead may send, wherever it runs."""

    async def answer(request: ModelRequest) -> str | ScriptedReply:
        match request.agent, turns(request):
            case "boss", 0:
                return call("delegate", agent="lead", task="Count the herons with your team.")
            case "lead", 0:
                arguments: dict[str, object] = {
                    "name": "squad",
                    "agents": ["left", "right"],
                    "goal": "Count the herons.",
                    "strategy": strategy,
                }
                return ScriptedReply(calls=(ScriptedCall(name="create_team", arguments=arguments),))
            case "boss", _:
                return "All done."
            case "lead", _:
                return DONE
            case agent, turn:
                return f"{agent} counted {turn}"

    async def main() -> None:
        agents = [BOSS, LEAD, local(forked("left")), local(forked("right"))]
        async with forked_scene(tmp_path, answer, Wishes(agents)) as scene:
            entries = await ended(scene, RunRequest("go", "s", "boss"))
        assert {r.outcome for r in results(entries).values()} == {"success"}, results(entries)
        (told,) = [
            e.event for e in entries if isinstance(e.event, ToolCallEnded) and e.event.name == "create_team"
        ]
        last = {"sequential": 0, "round-robin": 1}[strategy]
        said = {name: member["text"] for name, member in json.loads(told.content)["members"].items()}
        assert said == {"left": f"left counted {last}", "right": f"right counted {last}"}

    asyncio.run(main())


def test_a_forked_coordinator_may_start_as_many_as_one_in_this_process(tmp_path: Path) -> None:
    """H1, K4: the width of a coordinator is its own, wherever it runs."""
    chief = forked("chief", *PHASE_TOOLS, orchestrator=True)

    async def answer(request: ModelRequest) -> str | ScriptedReply:
        match request.agent, turns(request):
            case "boss", 0:
                return call("delegate", agent="chief", task="Find out about the herons.")
            case "chief", 0:
                questions = [
                    {"agent": "left", "question": f"How many herons are at pond {n}?"} for n in range(3)
                ]
                return ScriptedReply(calls=(ScriptedCall(name="research", arguments={"tasks": questions}),))
            case "boss" | "chief", _:
                return "All that can be told."
            case _:
                return DONE

    async def main() -> None:
        agents = [BOSS, chief, local(forked("left"))]
        bounds = RuntimeSettings(max_children=2, coordinator_children=10)
        async with forked_scene(tmp_path, answer, Wishes(agents, settings=bounds)) as scene:
            entries = await ended(scene, RunRequest("go", "s", "boss"))
        starts = [e.event for e in entries if isinstance(e.event, RunStarted)]
        assert sum(start.agent == "left" for start in starts) == 3
        assert "limits of depth and width" not in results(entries)["chief"].reason

    asyncio.run(main())
