"""One job at a time, model at 0 ms: what the runtime adds to 11 model calls, journal on."""

import asyncio

from benchmarks import floor
from benchmarks.setting import Row, Timed, app_on, median, provider, run_job, timed

CALLS = 11
ROUNDS, JOBS = 7, 20


async def measure() -> list[Row]:
    ours: list[Timed] = []
    bare: list[Timed] = []
    with provider() as url:
        async with floor.session() as session, app_on(url) as app:

            async def floor_jobs() -> None:
                for _ in range(JOBS):
                    await floor.job(session, url)

            async def our_jobs() -> None:
                for _ in range(JOBS):
                    await run_job(app, f"s{len(ours)}-{next(numbers)}")

            numbers = iter(range(1_000_000))
            await floor_jobs()
            await our_jobs()
            for _ in range(ROUNDS):
                bare.append(await timed(floor_jobs))
                ours.append(await timed(our_jobs))
    wall, floor_wall = (median([t.wall_s / JOBS * 1000 for t in times]) for times in (ours, bare))
    cpu, floor_cpu = (median([t.cpu_s / JOBS / CALLS * 1000 for t in times]) for times in (ours, bare))
    return [
        Row("overhead: ms a job", f"{wall:.2f}", f"{floor_wall:.2f}", f"{wall / floor_wall:.1f}x", "4x"),
        Row("overhead: CPU ms a call", f"{cpu:.3f}", f"{floor_cpu:.3f}", f"{cpu / floor_cpu:.1f}x"),
    ]


def main() -> list[Row]:
    return asyncio.run(measure())
