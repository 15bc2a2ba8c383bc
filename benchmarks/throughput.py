"""200 jobs at once, model at 50 ms, one core: model calls a second, journal on.

By the clock, and by CPU time: on a machine that others use too, the second is what one core would do alone.
"""

import asyncio

from benchmarks import floor
from benchmarks.setting import Row, Timed, app_on, median, provider, run_job, timed

CALLS, JOBS, ROUNDS = 11, 200, 3


async def measure() -> list[Row]:
    ours: list[Timed] = []
    bare: list[Timed] = []
    with provider(latency_ms=50) as url:
        async with floor.session() as session, app_on(url, max_concurrent=10_000) as app:

            async def floor_jobs() -> None:
                async with asyncio.TaskGroup() as group:
                    for _ in range(JOBS):
                        group.create_task(floor.job(session, url))

            async def our_jobs() -> None:
                async with asyncio.TaskGroup() as group:
                    for _ in range(JOBS):
                        group.create_task(run_job(app, f"s{next(numbers)}"))

            numbers = iter(range(1_000_000))
            await floor_jobs()
            await our_jobs()
            for _ in range(ROUNDS):
                bare.append(await timed(floor_jobs))
                ours.append(await timed(our_jobs))
    return [
        _row("second", [times.wall_s for times in ours], [times.wall_s for times in bare]),
        _row("CPU second", [times.cpu_s for times in ours], [times.cpu_s for times in bare]),
    ]


def _row(unit: str, ours: list[float], bare: list[float]) -> Row:
    rate, floor_rate = JOBS * CALLS / median(ours), JOBS * CALLS / median(bare)
    ratio = f"1/{floor_rate / rate:.1f}"
    return Row(f"throughput: model calls a {unit}", f"{rate:,.0f}", f"{floor_rate:,.0f}", ratio, "1,000")


def main() -> list[Row]:
    return asyncio.run(measure())
