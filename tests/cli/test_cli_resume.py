"""`xclaw resume` with several runs: one that cannot go on, and an interrupt."""

import asyncio
import json
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast

from xclaw_command import Json, Xclaw

from xclaw.testing import FakeProvider
from xclaw.testing.fake_replies import Raw, Text, Until, delta

WAIT_S = 100.0


def against_a_provider(
    directory: Path, scene: Callable[[Xclaw, FakeProvider, dict[str, str]], Awaitable[None]]
) -> None:
    async def main() -> None:
        async with asyncio.timeout(WAIT_S), FakeProvider() as provider:
            await scene(Xclaw(directory), provider, {"OPENAI_BASE_URL": provider.url, "OPENAI_MODEL": "m"})

    asyncio.run(main())


async def killed_while_it_waits(
    xclaw: Xclaw, provider: FakeProvider, env: dict[str, str], model: str
) -> None:
    """An event is printed when it is durable: from then on the run is known."""
    provider.queue(Raw(delta("half"), Until(asyncio.Event())))
    before = len(provider.requests)
    process = await xclaw.start("run", "hi", "-m", model, "-o", "stream-json", env=env)
    assert process.stdout is not None
    while b'"type":"turn_started"' not in (line := await process.stdout.readline()):
        assert line, "ended before its turn started"
    await provider.wait_requests(before + 1)
    process.kill()
    await process.communicate()


def test_a_run_that_cannot_go_on_does_not_hold_the_next_one_up(tmp_path: Path) -> None:
    async def scene(xclaw: Xclaw, provider: FakeProvider, env: dict[str, str]) -> None:
        settings = tmp_path / "xclaw.toml"
        settings.write_text(f'[models.providers.gone]\nbase_url = "{provider.url}"\n', "utf-8")
        await killed_while_it_waits(xclaw, provider, env, "gone:m")
        settings.unlink()
        await killed_while_it_waits(xclaw, provider, env, "openai:m")
        provider.queue(Text("done after all"))
        process = await xclaw.start("resume", "-o", "json", env=env)
        out, err = await process.communicate()
        refused, resumed = [cast("Json", json.loads(line)) for line in out.splitlines()]
        assert process.returncode == 2
        assert (refused["status"], resumed["status"]) == ("error", "success")
        assert "no provider 'gone'" in str(refused["reason"])
        assert "no provider 'gone'" in err.decode()
        assert resumed["text"] == "done after all"

    against_a_provider(tmp_path, scene)


def test_an_interrupt_begins_no_further_run(tmp_path: Path) -> None:
    async def scene(xclaw: Xclaw, provider: FakeProvider, env: dict[str, str]) -> None:
        for _ in range(2):
            await killed_while_it_waits(xclaw, provider, env, "openai:m")
        provider.queue(Raw(delta("half"), Until(asyncio.Event())))
        process = await xclaw.start("resume", "-o", "json", env=env)
        await provider.wait_requests(3)
        process.send_signal(signal.SIGINT)
        out, _ = await process.communicate()
        assert (process.returncode, json.loads(out)["status"]) == (130, "cancelled")
        assert len(provider.requests) == 3

    against_a_provider(tmp_path, scene)
