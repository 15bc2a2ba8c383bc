"""1,000 runs held open by a provider that does not answer: memory of each."""

import asyncio
import gc

from benchmarks import floor
from benchmarks.setting import Row, app_on, provider, resident_kb
from xclaw.runtime.runs import RunHandle, RunRequest

RUNS, WARM = 1_000, 50


async def wait_served(session: floor.aiohttp.ClientSession, url: str, number: int) -> None:
    """Until the provider holds `number` requests."""
    while True:
        async with session.get(url.removesuffix("/v1") + "/stats") as answer:
            if (await answer.json(content_type=None))["requests"] >= number:
                return
        await asyncio.sleep(0.05)


async def floor_memory(url: str) -> float:
    async with floor.session() as session:
        message: list[dict[str, object]] = [
            {"role": "system", "content": floor.PROMPT},
            {"role": "user", "content": "hold"},
        ]
        loop = asyncio.get_running_loop()

        async def hold(number: int) -> list[asyncio.Task[dict[str, object]]]:
            return [loop.create_task(floor.call(session, url, list(message), "hold")) for _ in range(number)]

        tasks = await hold(WARM)
        await wait_served(session, url, WARM)
        gc.collect()
        before = resident_kb()
        tasks += await hold(RUNS)
        await wait_served(session, url, WARM + RUNS)
        used = (resident_kb() - before) / RUNS
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        return used


async def our_memory(url: str, served: int) -> float:
    async with floor.session() as session, app_on(url, model="hold", max_concurrent=10_000) as app:

        async def hold(first: int, number: int) -> list[RunHandle]:
            return [await app.runs.start(RunRequest("hold", f"s{n}")) for n in range(first, first + number)]

        held = await hold(0, WARM)
        await wait_served(session, url, served + WARM)
        gc.collect()
        before = resident_kb()
        held += await hold(WARM, RUNS)
        await wait_served(session, url, served + WARM + RUNS)
        used = (resident_kb() - before) / RUNS
        async with asyncio.TaskGroup() as group:
            for handle in held:
                group.create_task(handle.cancel("measured"))
        return used


async def measure() -> list[Row]:
    with provider() as url:
        bare = await floor_memory(url)
        ours = await our_memory(url, WARM + RUNS)
    return [Row("memory: KB a held run", f"{ours:.0f}", f"{bare:.0f}", f"{ours / bare:.1f}x", "40 KB")]


def main() -> list[Row]:
    return asyncio.run(measure())
