"""What every benchmark needs: a provider on the other core, an app in a temporary home, a table."""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from xclaw.app import App, open_app
from xclaw.runtime.runs import RunRequest
from xclaw.settings import Overrides, load_settings


@dataclass(frozen=True, slots=True)
class Row:
    """One measured figure beside its floor and its goal."""

    name: str
    figure: str
    floor: str = ""
    ratio: str = ""
    goal: str = ""


def show(rows: list[Row]) -> None:
    table = [Row("benchmark", "xclaw", "floor", "ratio", "goal"), *rows]
    widths = [max(len(getattr(row, field)) for row in table) for field in Row.__slots__]
    for row in table:
        cells = [getattr(row, field).ljust(width) for field, width in zip(Row.__slots__, widths, strict=True)]
        print("  ".join(cells).rstrip())


@contextmanager
def provider(latency_ms: float = 0.0, tokens: int = 2000) -> Generator[str]:
    """The address of a provider in its own process, on the second core where there is one."""
    command = [
        sys.executable, "-m", "benchmarks.provider", "--latency-ms", str(latency_ms), "--tokens", str(tokens)
    ]  # fmt: skip
    cores = sorted(os.sched_getaffinity(0))
    others = set(cores[1:]) or set(cores)
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        preexec_fn=lambda: os.sched_setaffinity(0, others),
    )
    os.sched_setaffinity(0, {cores[0]})
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"]
    finally:
        os.sched_setaffinity(0, set(cores))
        process.communicate()


@asynccontextmanager
async def app_on(url: str, model: str = "m", **runtime: object) -> AsyncGenerator[App]:
    """A whole app, journal on, whose model is the provider at `url`."""
    with tempfile.TemporaryDirectory() as home:
        env = {"XCLAW_HOME": home, "HOME": home, "OPENAI_API_KEY": "x", "OPENAI_BASE_URL": url}
        settings = load_settings(cwd=Path(home), env=env, overrides=Overrides(models=(f"openai:{model}",)))
        bounds = replace(settings.runtime, **runtime)  # pyright: ignore[reportArgumentType] - shorthand
        async with open_app(replace(settings, runtime=bounds)) as app:
            yield app


async def run_job(app: App, session: str) -> None:
    handle = await app.runs.start(RunRequest("Write three letters", session))
    result = await handle.result()
    if result.outcome != "success":
        raise RuntimeError(f"the job failed: {result.outcome}: {result.reason}")


@dataclass(frozen=True, slots=True)
class Timed:
    wall_s: float
    cpu_s: float


async def timed(work: Callable[[], Coroutine[None, None, None]]) -> Timed:
    wall, cpu = time.perf_counter(), time.process_time()
    await work()
    return Timed(time.perf_counter() - wall, time.process_time() - cpu)


def median(values: list[float]) -> float:
    return statistics.median(values)


def resident_kb() -> int:
    """Memory of this process now, in KB."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * resource.getpagesize() // 1024
