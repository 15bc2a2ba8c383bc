"""Trees whose runs ask: agents that have a shell, and what is needed to answer them."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from harness import Script, settings_for, write_script

from xclaw.app import App, open_app
from xclaw.contracts.agents import Agent
from xclaw.contracts.approvals import Answer, Approval
from xclaw.contracts.permissions import PermissionMode, Rules
from xclaw.settings import Settings

LEAD = "orchestrator"
NO_RULES = Rules()
ALL_TOOLS = ("view_file", "list_dir", "write_file", "deliver", "shell")


def worker(name: str, rules: Rules = NO_RULES, mode: PermissionMode = "bubble") -> Agent:
    """A worker that may ask for a shell."""
    return Agent(name, f"the {name}", f"You are {name}.", tools=ALL_TOOLS, permission_mode=mode, rules=rules)


def lead(name: str) -> Agent:
    """A worker that hands work out and has a shell itself."""
    tools = ("delegate", "spawn", "wait", *ALL_TOOLS)
    return Agent(name, f"the {name}", f"You are {name}.", tools=tools, orchestrator=True)


def shell(command: str) -> dict[str, object]:
    return {"name": "shell", "arguments": {"command": command}}


def hand(agent: str, task: str, how: str = "delegate") -> dict[str, object]:
    text = "task" if how == "delegate" else "prompt"
    return {"name": how, "arguments": {"agent": agent, text: task}}


def done(word: str = "done") -> dict[str, object]:
    return {"text": {"status": "success", "summary_data": {"said": word}, "artifact_pointers": {}}}


def runs_shell(agent: str, command: str, when: str = "") -> dict[str, object]:
    """A worker that runs one command and ends."""
    entry: dict[str, object] = {"agent": agent, "replies": [{"calls": [shell(command)]}, done()]}
    return {**entry, "when": when} if when else entry


def orchestrates(*calls: dict[str, object], end: str = "all done") -> dict[str, object]:
    return {"agent": "orchestrator", "replies": [{"calls": list(calls)}, {"text": end}]}


@asynccontextmanager
async def opened(
    home: Path, script: Script, agents: Sequence[Agent] = (), **permissions: object
) -> AsyncGenerator[App]:
    """An app on a script; `permissions` are its settings, and `places` how many workers may run at once."""
    places = permissions.pop("places", 8)
    assert isinstance(places, int)
    settings = settings_of(home, script, **permissions)
    settings = replace(settings, runtime=replace(settings.runtime, max_concurrent=places))
    async with open_app(settings, agents=agents) as app:
        yield app


def settings_of(home: Path, script: Script, **permissions: object) -> Settings:
    settings = settings_for(home, write_script(home, script))
    own = replace(settings.permissions, **permissions)  # pyright: ignore[reportArgumentType] - test shorthand
    return replace(settings, permissions=own)


async def asked(app: App, count: int = 1) -> list[Approval]:
    """What waits for an answer, once there are `count` of them; the oldest first."""
    seen = asyncio.Event()
    stop = app.runs.subscribe(lambda _: seen.set())
    try:
        while len(found := await app.runs.approvals.pending()) < count:
            await seen.wait()
            seen.clear()
    finally:
        stop()
    return found


async def say(app: App, approval: Approval, decision: str = "once", **fields: object) -> Approval:
    answer = Answer(decision, **fields)  # pyright: ignore[reportArgumentType] - test shorthand
    return await app.runs.approvals.answer(approval.approval_id, answer, by="owner")
