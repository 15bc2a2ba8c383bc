"""spawn and wait: background children."""

import asyncio
import json
from pathlib import Path
from typing import cast

import pytest
from children_for_patterns import FunctionSpawn, Stage

from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.results import Result
from xclaw.patterns.spawning import SpawnTool, WaitTool


async def call(tool: SpawnTool | WaitTool, stage: Stage, **arguments: object) -> dict[str, object]:
    async with asyncio.timeout(5):
        output = await tool.run(arguments, stage.context())
    return cast("dict[str, object]", json.loads(output.content))


def test_spawn_answers_at_once_and_one_wait_collects_all(tmp_path: Path) -> None:
    """SPEC G1; C10: a blocking wait instead of polling."""

    async def main() -> None:
        gate = asyncio.Event()
        failed = Result("error", reason="outage")
        stage = Stage(tmp_path, FunctionSpawn({"slow": lambda _: gate, "bad": lambda _: failed}))
        spawn, wait = SpawnTool(stage.find), WaitTool()
        first = await call(spawn, stage, agent="slow", prompt="Write x", isolation="local")
        second = await call(spawn, stage, agent="bad", prompt="Write y")
        assert first == {"agent_id": "c1", "status": "running", "context": "none", "context_tokens": 0}
        early = await call(wait, stage, timeout_s="0")
        assert early["still_running"] == ["c1"]
        gate.set()
        late = await call(wait, stage)
        finished = {
            **cast("dict[str, object]", early["finished"]),
            **cast("dict[str, object]", late["finished"]),
        }
        statuses = {key: cast("dict[str, object]", value)["status"] for key, value in finished.items()}
        assert statuses == {"c1": "success", second["agent_id"]: "error"}
        assert "still_running" not in late

    asyncio.run(main())


def test_wait_takes_ids_in_any_spelling_and_names_the_unknown_ones(tmp_path: Path) -> None:
    """SPEC D4."""

    async def main() -> None:
        for spelled in ('["c1", "nope"]', ["c1", "nope"], "c1, nope"):
            stage = Stage(tmp_path, FunctionSpawn({"a": lambda _: "done"}))
            await call(SpawnTool(stage.find), stage, agent="a", prompt="Write x")
            record = await call(WaitTool(), stage, agent_ids=spelled)
            assert list(cast("dict[str, object]", record["finished"])) == ["c1"]
            assert record["unknown"] == ["nope"]

    asyncio.run(main())


def test_waiting_for_nobody_comes_back_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        stage = Stage(tmp_path, FunctionSpawn({}))
        assert "no background agent" in str((await call(WaitTool(), stage))["note"])
        assert (await call(WaitTool(), stage, agent_ids="ghost"))["unknown"] == ["ghost"]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"agent": "ghost", "prompt": "x"}, "unknown agent 'ghost'. Available: a"),
        ({"agent": "a", "prompt": ""}, "`prompt` is empty"),
        ({"agent": "a", "prompt": "x", "isolation": "forked"}, "isolation 'forked' is not available"),
        ({"agent": "a", "prompt": "refuse"}, "no more of this"),
        ({"agent": "a", "prompt": "把上一步的结果翻译成中文"}, "prompt is not self-contained"),
    ],
)
def test_a_bad_spawn_is_an_error_and_starts_nothing(
    tmp_path: Path, arguments: dict[str, object], told: str
) -> None:
    async def main() -> None:
        stage = Stage(tmp_path, FunctionSpawn({"a": lambda _: "done"}))
        with pytest.raises(ToolFailed, match=told):
            await call(SpawnTool(stage.find), stage, **arguments)
        assert stage.spawn.tasks == []

    asyncio.run(main())


@pytest.mark.parametrize("timeout", ["soon", -1, True, float("nan")])
def test_a_bad_timeout_is_an_error(tmp_path: Path, timeout: object) -> None:
    stage = Stage(tmp_path, FunctionSpawn({}))
    with pytest.raises(ToolFailed, match="`timeout_s` must be a number of seconds"):
        asyncio.run(call(WaitTool(), stage, timeout_s=timeout))
