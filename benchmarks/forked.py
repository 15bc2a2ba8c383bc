"""How late the runtime's event loop is while a sub-agent burns CPU: in a forked worker, and in a thread.

The floor is the loop with nothing beside it, measured in the same process just before. The burner is pure
Python that never lets go of the interpreter by itself.
"""

import asyncio
import json
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.setting import Row
from xclaw.app import App, open_app
from xclaw.contracts.agents import Agent
from xclaw.contracts.events import Entry, TextDelta, ToolCallStarted
from xclaw.contracts.models import ToolSpec
from xclaw.contracts.tools import ToolContext, ToolOutput
from xclaw.runtime.runs import RunRequest
from xclaw.settings import Overrides, load_settings

TICK_S = 0.001
SECONDS = 3.0
SCRIPT = """
import os, sys
import xclaw.script as xclaw
xclaw.say("burning")
while not os.path.exists(sys.argv[1]):
    sum(range(50_000))
"""
RULES: list[dict[str, object]] = [
    {"agent": "burner", "replies": [{"calls": [{"name": "burn", "arguments": {}}]}, {"text": "Done."}]}
]


class Burn:
    """Burns CPU in a thread of the runtime until it is told to stop."""

    spec = ToolSpec("burn", "Burns CPU.", {"type": "object", "properties": {}})
    replayable = False
    timeout_s = None

    def __init__(self) -> None:
        self.stop = threading.Event()

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        await asyncio.to_thread(self._burn)
        return ToolOutput("burnt")

    def _burn(self) -> None:
        while not self.stop.is_set():
            sum(range(50_000))


async def lateness_ms() -> tuple[float, float]:
    """Median and 99th percentile of how much later than asked the loop came back."""
    late: list[float] = []
    until = time.perf_counter() + SECONDS
    while (began := time.perf_counter()) < until:
        await asyncio.sleep(TICK_S)
        late.append((time.perf_counter() - began - TICK_S) * 1000)
    late.sort()
    return late[len(late) // 2], late[len(late) * 99 // 100]


async def measured(app: App, agent: str, stop: Callable[[], None]) -> tuple[float, float]:
    """The loop's lateness while the agent burns."""
    began = asyncio.Event()

    def note(entry: Entry) -> None:
        if isinstance(entry.event, TextDelta | ToolCallStarted):
            began.set()

    handle = await app.runs.start(RunRequest("burn", agent, agent))
    unsubscribe = handle.subscribe(note)
    await began.wait()
    found = await lateness_ms()
    stop()
    result = await handle.result()
    unsubscribe()
    if not result.succeeded:
        raise RuntimeError(f"{agent} failed: {result.reason}")
    return found


async def measure() -> list[Row]:
    burn = Burn()
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        (home / "rules.json").write_text(json.dumps(RULES))
        (home / "burner.py").write_text(SCRIPT)
        stop = home / "stop"
        settings = load_settings(
            cwd=home,
            env={"XCLAW_HOME": place, "HOME": place},
            overrides=Overrides(models=(f"script:{home / 'rules.json'}",)),
        )
        agents = [
            Agent("burner", "burns in a thread", "Burn. You are the burner.", tools=("burn",)),
            Agent(
                "forked",
                "burns in a worker",
                "Burn.",
                isolation="forked",
                script=(str(home / "burner.py"), str(stop)),
            ),
        ]
        async with open_app(settings, agents=agents, tools=[burn]) as app:
            idle = await lateness_ms()
            forked = await measured(app, "forked", stop.touch)
            thread = await measured(app, "burner", burn.stop.set)
    return [
        Row(
            f"forked: loop's lateness ms p{name}, a busy worker",
            f"{ours:.2f}",
            f"{floor:.2f}",
            f"{ours / floor:.1f}x",
        )
        for name, ours, floor in zip((50, 99), forked, idle, strict=True)
    ] + [
        Row(f"forked: the same in a thread, p{name}", f"{ours:.2f}", f"{floor:.2f}", f"{ours / floor:.1f}x")
        for name, ours, floor in zip((50, 99), thread, idle, strict=True)
    ]


def main() -> list[Row]:
    return asyncio.run(measure())
