"""Tokens from provider to an event sink, and how much later than the provider's the first one comes."""

import asyncio
import time

from benchmarks import floor
from benchmarks.setting import Row, app_on, median, provider
from xclaw.contracts.events import Entry, TextDelta
from xclaw.runtime.runs import RunRequest

TOKENS, ROUNDS = 20_000, 7


async def rates(url: str) -> tuple[float, float]:
    """Tokens a second: ours, the floor's."""
    ours: list[float] = []
    bare: list[float] = []
    async with floor.session() as session, app_on(url, model="stream") as app:
        message: list[dict[str, object]] = [{"role": "user", "content": "go"}]
        for number in range(ROUNDS):
            seen: list[str] = []
            began = time.perf_counter()
            await floor.call(session, url, message, "stream", seen.append)
            bare.append(len(seen) / (time.perf_counter() - began))
            texts: list[str] = []

            def sink(entry: Entry, texts: list[str] = texts) -> None:
                if isinstance(entry.event, TextDelta):
                    texts.append(entry.event.text)

            began = time.perf_counter()
            handle = await app.runs.start(RunRequest("go", f"s{number}"))
            handle.subscribe(sink)
            await handle.result()
            ours.append(TOKENS / (time.perf_counter() - began))
            if "".join(texts) != "".join(seen):
                raise RuntimeError("text was lost or changed on the way")
    return median(ours), median(bare)


async def first_tokens(url: str) -> tuple[float, float]:
    """Milliseconds from asking to the first text: ours, the floor's. The provider answers at once."""
    ours: list[float] = []
    bare: list[float] = []
    async with floor.session() as session, app_on(url, model="stream") as app:
        message: list[dict[str, object]] = [{"role": "user", "content": "go"}]
        for number in range(60):
            began = time.perf_counter()
            firsts: list[float] = []
            await floor.call(
                session, url, message, "stream", lambda _, firsts=firsts: firsts.append(time.perf_counter())
            )
            bare.append((firsts[0] - began) * 1000)
            times: list[float] = []

            def sink(entry: Entry, times: list[float] = times) -> None:
                if isinstance(entry.event, TextDelta):
                    times.append(time.perf_counter())

            began = time.perf_counter()
            handle = await app.runs.start(RunRequest("go", f"s{number}"))
            handle.subscribe(sink)
            await handle.result()
            ours.append((times[0] - began) * 1000)
    return median(ours[10:]), median(bare[10:])


async def measure() -> list[Row]:
    with provider(tokens=TOKENS) as url:
        rate, floor_rate = await rates(url)
    with provider(tokens=5) as url:
        first, floor_first = await first_tokens(url)
    return [
        Row(
            "stream: tokens a second",
            f"{rate:,.0f}",
            f"{floor_rate:,.0f}",
            f"1/{floor_rate / rate:.1f}",
            "60,000",
        ),
        Row(
            "stream: first token after the floor's, ms",
            f"{first - floor_first:.2f}",
            f"{floor_first:.2f}",
            f"{first / floor_first:.1f}x",
            "1.5 ms",
        ),
    ]


def main() -> list[Row]:
    return asyncio.run(measure())
