"""Runs a workflow script with agents that are functions."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from patterns.children_for_patterns import FunctionSpawn, Stage, Worker
from xclaw.contracts.results import Result
from xclaw.contracts.tools import ToolOutput
from xclaw.contracts.workflows import WorkflowNoted
from xclaw.patterns.workflows.settings import WorkflowSettings
from xclaw.patterns.workflows.tool import WorkflowTool


def done(text: str = "done", **data: object) -> Result:
    return Result("success", text, data or {"said": text})


@dataclass
class Scene:
    """One orchestrator's run that calls the workflow tool."""

    root: Path
    workers: Mapping[str, Worker] = field(default_factory=lambda: {"coder": lambda task: done(task.text)})
    earlier: Mapping[str, Result] = field(default_factory=dict[str, Result])
    settings: WorkflowSettings = WorkflowSettings()
    asked_for: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def __post_init__(self) -> None:
        self.spawn = FunctionSpawn(self.workers)
        self.stage = Stage(self.root, self.spawn)
        self.tool = WorkflowTool(self.stage.find, self._find_earlier, self.settings)

    async def _find_earlier(self, run_id: str, session_id: str) -> Mapping[str, Result]:
        self.asked_for.append((run_id, session_id))
        return self.earlier

    async def call(self, script: str, **arguments: object) -> ToolOutput:
        return await self.tool.run({"script": script, **arguments}, self.stage.context())

    def run(self, script: str, **arguments: object) -> dict[str, object]:
        """What the tool reported, as it is in JSON."""

        async def main() -> ToolOutput:
            async with asyncio.timeout(60):
                return await self.call(script, **arguments)

        output = asyncio.run(main())
        record = cast("dict[str, object]", json.loads(output.content))
        assert output.ok == (record["status"] == "success")
        return record

    def result(self, script: str, **arguments: object) -> object:
        """What the script answered."""
        record = self.run(script, **arguments)
        assert record["status"] == "success", record
        return record["result"]

    @property
    def notes(self) -> list[tuple[str, str]]:
        return [(event.what, event.text) for event in self.stage.events if isinstance(event, WorkflowNoted)]
