"""1,000 interrupted runs: how long until all of them go on."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.setting import Row, provider
from xclaw.app import App, open_app
from xclaw.runtime.runs import RunRequest
from xclaw.settings import Overrides, Settings, load_settings

RUNS = 1_000


def settings(home: str, url: str) -> Settings:
    env = {"XCLAW_HOME": home, "HOME": home, "OPENAI_API_KEY": "x", "OPENAI_BASE_URL": url}
    return load_settings(cwd=Path(home), env=env, overrides=Overrides(models=("openai:hold",)))


async def hold(home: str, url: str) -> None:
    """Start the runs, wait until their first turn is in the journal, and be killed."""
    async with open_app(settings(home, url)) as app:
        for number in range(RUNS):
            await app.runs.start(RunRequest("hold", f"s{number}"))
        await app.journal.runs(limit=1)
        sys.stdout.write("held\n")
        sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGKILL)


async def take_up(app: App) -> int:
    """Resume everything at once; answers how many runs go on."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(app.runs.resume(row.run_id)) for row in await app.runs.interrupted()]
    return len([task.result() for task in tasks])


async def measure() -> list[Row]:
    with provider() as url, tempfile.TemporaryDirectory() as home:
        order = json.dumps([home, url])
        process = subprocess.run(
            [sys.executable, "-m", "benchmarks.recovery", order], stdout=subprocess.PIPE, check=False
        )
        if process.returncode != -signal.SIGKILL:
            raise RuntimeError("the first process did not get to its end")
        async with open_app(settings(home, url)) as app:
            began, cpu_began = time.perf_counter(), time.process_time()
            number = await take_up(app)
            seconds, cpu_s = time.perf_counter() - began, time.process_time() - cpu_began
    return [
        Row(f"recovery: s until {number:,} runs go on", f"{seconds:.2f}", goal="2 s for 1,000"),
        Row(f"recovery: CPU s until {number:,} runs go on", f"{cpu_s:.2f}"),
    ]


def main() -> list[Row]:
    return asyncio.run(measure())


if __name__ == "__main__":
    asyncio.run(hold(*json.loads(sys.argv[1])))
