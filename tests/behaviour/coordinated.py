"""Coordinators on scripted models: what they and their workers answer."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from behaviour.harness import Script, Seen, ask, settings_for, write_script
from xclaw.app import open_app
from xclaw.contracts.events import PhaseChanged, ToolCallEnded
from xclaw.patterns.coordinator.settings import CoordinatorSettings
from xclaw.settings import Settings

Reply = dict[str, object]
QUESTIONS = [{"agent": "explorer", "question": "Which modules does the package in /repo have?"}]


def call(tool: str, /, **arguments: object) -> Reply:
    return {"calls": [{"name": tool, "arguments": arguments}]}


def reported(status: str = "success", **data: object) -> Reply:
    return {"text": {"status": status, "summary_data": data or {"done": True}, "artifact_pointers": {}}}


def delivered(path: str, content: str = "x = 1\n") -> list[Reply]:
    return [call("deliver", path=path, content=content), reported(file=path)]


def planned(task_id: str, **fields: object) -> dict[str, object]:
    return {
        "id": task_id,
        "agent": "coder",
        "task": f"Write the module {task_id}.py with the constant X.",
        "writes": [f"{task_id}.py"],
        "depends_on": [],
        **fields,
    }


def checking(*commands: str) -> Reply:
    return call("verify", checks=[{"command": command, "why": "it works"} for command in commands])


def coordinator(*replies: Reply) -> dict[str, object]:
    return {"agent": "coordinator", "replies": list(replies)}


def worker(agent: str, *replies: Reply, when: str = "") -> dict[str, object]:
    return {"agent": agent, "when": when, "replies": list(replies)}


def running(*commands: str) -> dict[str, object]:
    """A verifier that does as it was told."""
    return worker("verifier", *(call("shell", command=command) for command in commands), reported())


EXPLORER = worker("explorer", reported(modules=["a", "b"]))


def settings_of(
    home: Path, model: str, *, shell: bool = True, dialect: str | None = None, **coordinator: object
) -> Settings:
    settings = settings_for(home, model, allow_shell=shell, dialect=dialect)
    permissions = replace(settings.permissions, unattended="deny")
    own = replace(CoordinatorSettings(mode=True), **coordinator)  # pyright: ignore[reportArgumentType] - shorthand
    return replace(settings, coordinator=own, permissions=permissions)


def coordinate(home: Path, script: Script, text: str = "Rework the package.", **settings: object) -> Seen:
    """One request to the coordinator, to its end."""
    chosen = settings_of(home, write_script(home, script), **settings)  # pyright: ignore[reportArgumentType]

    async def main() -> Seen:
        async with asyncio.timeout(30), open_app(chosen) as app:
            return await ask(app, text, agent="coordinator")

    return asyncio.run(main())


def phases(seen: Seen) -> list[tuple[str, int]]:
    """The phases in order, each once for as long as it lasts."""
    found: list[tuple[str, int]] = []
    for event in seen.events(PhaseChanged):
        if not found or found[-1] != (event.phase, event.round):
            found.append((event.phase, event.round))
    return found


def answers(seen: Seen, tool: str) -> list[ToolCallEnded]:
    return [event for event in seen.events(ToolCallEnded) if event.name == tool]


def answer(seen: Seen, tool: str, number: int = 0) -> Mapping[str, object]:
    value: Mapping[str, object] = json.loads(answers(seen, tool)[number].content)
    return value
