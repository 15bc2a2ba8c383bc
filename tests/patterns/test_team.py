"""create_team, wait_for_mail and team_tasks: what models write, and what is refused before anybody is paid.

How teams work is tested on the whole runtime: tests/behaviour/test_teams.py.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest
from children_for_patterns import FunctionSpawn, Stage

from xclaw.contracts.errors import SpawnRefused, ToolFailed
from xclaw.contracts.results import Result
from xclaw.contracts.tools import Tool, ToolOutput
from xclaw.patterns.team import CreateTeamTool
from xclaw.patterns.team_tools import TeamTasksTool, WaitForMailTool

GOAL = {"name": "squad", "agents": ["coder", "writer"], "goal": "Count the herons and write it down."}


def stage_in(home: Path) -> Stage:
    return Stage(home, FunctionSpawn({"coder": lambda _: "refuse", "writer": lambda _: "refuse"}))


def run(tool: Tool, stage: Stage, arguments: Mapping[str, object]) -> ToolOutput:
    async def main() -> ToolOutput:
        async with asyncio.timeout(5):
            return await tool.run(arguments, stage.context())

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"agents": ["coder", "ghost"]}, "unknown agent 'ghost'. Available: coder, writer"),
        ({"agents": ["coder"]}, "a team has 2 to 12 members, not 1"),
        ({"agents": ["coder"] * 13}, "a team has 2 to 12 members, not 13"),
        ({"agents": None}, "`agents` is missing"),
        ({"goal": " "}, "`goal` is empty"),
        ({"goal": "Review the code above"}, "goal is not self-contained"),
        ({"name": ""}, "`name` is empty"),
        ({"strategy": "chaos"}, "strategy 'chaos' is not available; use parallel, sequential, round-robin"),
        ({"rounds": 6}, "`rounds` must be a whole number from 1 to 5"),
    ],
)
def test_what_cannot_be_a_team_is_refused_before_anybody_works(
    tmp_path: Path, changed: dict[str, object], told: str
) -> None:
    """SPEC D4."""
    stage = stage_in(tmp_path)
    with pytest.raises(ToolFailed, match=told):
        run(CreateTeamTool(stage.find), stage, {**GOAL, **changed})
    assert stage.spawn.tasks == []


@pytest.mark.parametrize(
    ("spelled", "strategy"),
    [
        ("round_robin", "round-robin"),
        ("Round Robin", "round-robin"),
        (None, "parallel"),
        (" SEQUENTIAL ", "sequential"),
    ],
)
def test_names_lists_and_strategies_are_taken_in_any_spelling(
    tmp_path: Path, spelled: str | None, strategy: str
) -> None:
    stage = stage_in(tmp_path)
    arguments = {
        **GOAL,
        "name": "research: squad/1",
        "agents": '["Coder", "writer", "coder"]',
        "strategy": spelled,
    }

    class Stop(Exception):
        pass

    seats: list[object] = []

    async def start(task: object, *, background: bool = False) -> object:
        seats.append(getattr(task, "seat", None))
        raise Stop

    stage.spawn.start = start  # pyright: ignore[reportAttributeAccessIssue] - the first member is all it takes
    with pytest.raises((Stop, ExceptionGroup)):
        run(CreateTeamTool(stage.find), stage, arguments)
    (seat,) = seats
    assert getattr(seat, "team", "") == "research-squad-1"
    assert getattr(seat, "members", ()) == ("coder#1", "writer", "coder#2")
    assert getattr(seat, "strategy", "") == strategy


@pytest.mark.parametrize("strategy", ["parallel", "sequential", "round-robin"])
def test_a_team_of_which_nobody_may_start_says_so(tmp_path: Path, strategy: str) -> None:
    """G5; the depth limit, for one."""
    stage = stage_in(tmp_path)

    async def refuse(task: object, *, background: bool = False) -> Result:
        raise SpawnRefused("depth limit")

    stage.spawn.start = refuse  # pyright: ignore[reportAttributeAccessIssue]
    stage.spawn.run = refuse  # pyright: ignore[reportAttributeAccessIssue]
    output = run(CreateTeamTool(stage.find), stage, {**GOAL, "strategy": strategy})
    assert not output.ok
    assert output.content.count("depth limit") == 2


@pytest.mark.parametrize("tool", [WaitForMailTool(), TeamTasksTool()])
def test_outside_a_team_there_is_neither_mail_nor_board(tmp_path: Path, tool: Tool) -> None:
    """G6."""
    with pytest.raises(ToolFailed, match="you are in no team"):
        run(tool, stage_in(tmp_path), {"action": "list"})
