"""Runs in full mode, over real sandboxes of namespaces."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import cast

from behaviour.harness import Script, Seen, ask, settings_for, write_script
from xclaw.app import App, open_app
from xclaw.contracts.events import RunStarted, ToolCallEnded
from xclaw.runtime.permissions import PermissionSettings
from xclaw.sandbox.linux.marks import MARK
from xclaw.settings import Settings

Reply = dict[str, object]
GO_ON: Reply = {"text": "done"}


def full(settings: Settings, **sandbox: object) -> Settings:
    """The same in full mode, in sandboxes of namespaces."""
    chosen = replace(settings.sandbox, **{"backend": "bubblewrap", **sandbox})  # pyright: ignore[reportArgumentType] - test shorthand
    return replace(settings, workspace=replace(settings.workspace, mode="full"), sandbox=chosen)


def settings_of(home: Path, script: Script, **sandbox: object) -> Settings:
    settings = full(settings_for(home, write_script(home, script)), **sandbox)
    return replace(settings, permissions=PermissionSettings(unattended="deny"))


def run_full(home: Path, script: Script, **sandbox: object) -> Seen:
    """One request in full mode, to its end; afterwards nothing is left of its sandboxes."""

    async def main() -> Seen:
        async with asyncio.timeout(40), open_app(settings_of(home, script, **sandbox)) as app:
            seen = await ask(app, "go")
            assert keepers() == set(), "a sandbox outlived its run"
            return seen

    seen = asyncio.run(main())
    assert sandboxed(seen), "nothing was ever executed in a sandbox"
    return seen


def with_app(settings: Settings, scenario: Callable[[App], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(40), open_app(settings) as app:
            await scenario(app)
        assert keepers() == set(), "a sandbox outlived xclaw"

    asyncio.run(main())


def sandboxed(seen: Seen) -> bool:
    """Whether some command left a receipt, and every run says what kept it in."""
    started = seen.events(RunStarted)
    receipts = [event for event in seen.events(ToolCallEnded) if event.name == "shell" and not event.refused]
    return bool(receipts) and {event.sandbox for event in started} == {"bubblewrap"}


def call(tool: str, /, **arguments: object) -> Reply:
    return {"calls": [{"name": tool, "arguments": arguments}]}


def together(*replies: Reply) -> Reply:
    """One reply with the calls of several."""
    return {"calls": [call for reply in replies for call in cast("list[object]", reply["calls"])]}


def shell(command: str, **more: object) -> Reply:
    return call("shell", command=command, **more)


def handing_out(*tasks: tuple[str, str], **more: object) -> dict[str, object]:
    """An orchestrator that gives one worker after the other a task, and then ends."""
    calls = [call("delegate", agent=agent, task=task, **more) for agent, task in tasks]
    return {"agent": "orchestrator", "replies": [*calls, GO_ON]}


def worker(agent: str, *replies: Reply, when: str = "") -> dict[str, object]:
    """A worker that ends with the result form."""
    form = {"status": "success", "summary_data": {"done": True}, "artifact_pointers": {}}
    return {"agent": agent, "when": when, "replies": [*replies, {"text": form}]}


def outputs(seen: Seen, tool: str = "shell") -> list[ToolCallEnded]:
    return [event for event in seen.events(ToolCallEnded) if event.name == tool]


def keepers(parent: int | None = None) -> set[int]:
    """Processes of sandboxes that `parent`, else this process, has started."""
    found: set[int] = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                above = int((entry / "stat").read_bytes().rpartition(b")")[2].split()[1])
                marked = f"{MARK}=".encode() in (entry / "environ").read_bytes()
                if marked and above == (parent or os.getpid()):
                    found.add(int(entry.name))
    return found
