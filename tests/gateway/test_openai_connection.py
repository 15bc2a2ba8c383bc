"""Clients that go away, gateways that stop: a run ends with the connection that it answers (G05)."""

import asyncio
import contextlib
import json
from pathlib import Path

import aiohttp
import pytest

from gateway.openai_scene import ADD, USER, Scene, at_the_wire, wire_settings
from gateway.served import served
from xclaw.testing import FakeProvider
from xclaw.testing.fake_replies import Calls, Hang, Raw, Text, Until, delta

WAIT_S = 2


async def gone_client(scene: Scene, body: object, path: str = "/chat/completions") -> None:
    """Send a request, and drop the connection once the provider works on it."""
    before = len(scene.provider.requests)

    async def ask() -> None:
        async with aiohttp.ClientSession() as http:
            own = Scene(scene.served, scene.provider, http, scene.token)
            await own.call("POST", path, body)

    asking = asyncio.create_task(ask())
    await scene.provider.wait_requests(before + 1)
    asking.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asking


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", ["/chat/completions", "/responses"])
def test_a_client_that_goes_away_ends_its_run(tmp_path: Path, stream: bool, path: str) -> None:
    """G05: whether anything was ever written to it or not."""

    async def body(scene: Scene) -> None:
        ends = scene.ends()
        scene.provider.queue(Hang())
        sent = {"model": "xclaw/coder", "messages": USER, "input": "hi", "stream": stream}
        async with asyncio.timeout(WAIT_S):
            await gone_client(scene, sent, path)
            await scene.provider.requests[0].closed.wait()
            assert await ends.get() == "cancelled"

    at_the_wire(tmp_path, body)


def test_a_client_that_goes_away_in_the_middle_of_the_text_ends_its_run(tmp_path: Path) -> None:
    """G05, U03: what it cost until then is counted."""

    async def body(scene: Scene) -> None:
        ends = scene.ends()
        scene.provider.queue(Raw(delta("word " * 200), Until(asyncio.Event())))
        sent = {"model": "xclaw/coder", "messages": USER, "stream": True}
        async with asyncio.timeout(WAIT_S):
            async with scene.request("POST", "/chat/completions", sent) as response:
                await response.content.readline()
                response.close()
            await scene.provider.requests[0].closed.wait()
            assert await ends.get() == "cancelled"
        (row,) = await scene.served.gateway.journal.runs()
        (ended,) = [
            e.event
            for e in await scene.served.gateway.journal.read_run(row.run_id)
            if e.event.kind == "run_ended"
        ]
        assert ended.result.spend.usage.output_tokens > 0

    at_the_wire(tmp_path, body)


def test_a_worker_ends_with_the_client_of_the_orchestrator(tmp_path: Path) -> None:
    """G05, C05."""

    async def body(scene: Scene) -> None:
        ends = scene.ends()
        task = json.dumps({"agent": "coder", "task": "TASK: write a function that adds two numbers"})
        scene.provider.queue(Calls(("c", "delegate", task)), Hang())
        sent = {"model": "xclaw/orchestrator", "messages": USER}
        async with scene.request("POST", "/chat/completions", {**sent, "stream": True}) as response:
            await scene.provider.wait_requests(2)
            response.close()
        async with asyncio.timeout(WAIT_S):
            await scene.provider.requests[1].closed.wait()
            assert await ends.get() == "cancelled"
            assert {outcome for _, outcome in await scene.runs()} == {"cancelled"}

    at_the_wire(tmp_path, body)


def test_a_second_try_ends_with_its_client_too(tmp_path: Path) -> None:
    """G05."""

    async def body(scene: Scene) -> None:
        ends = scene.ends()
        scene.provider.queue(Text("no"), Hang())
        sent = {"model": "xclaw/coder", "messages": USER, "tools": [ADD], "tool_choice": "required"}

        async def ask() -> None:
            await scene.call("POST", "/chat/completions", sent)

        asking = asyncio.create_task(ask())
        await scene.provider.wait_requests(2)
        asking.cancel()
        async with asyncio.timeout(WAIT_S):
            await scene.provider.requests[1].closed.wait()
            assert [await ends.get(), await ends.get()] == ["success", "cancelled"]

    at_the_wire(tmp_path, body)


@pytest.mark.parametrize("stream", [False, True])
def test_a_gateway_that_stops_lets_an_answer_finish(tmp_path: Path, stream: bool) -> None:
    async def body(scene: Scene) -> None:
        goes_on = asyncio.Event()
        scene.provider.queue(Raw(Until(goes_on), delta("done"), delta(finish="stop"), b"data: [DONE]\n\n"))

        async def ask() -> bytes:
            return (await scene.call("POST", "/chat/completions", sent)).body

        sent = {"model": "xclaw/coder", "messages": USER, "stream": stream}
        asking = asyncio.create_task(ask())
        await scene.provider.wait_requests(1)
        draining = asyncio.create_task(scene.served.gateway.drain(5))
        await asyncio.sleep(0)
        assert (await scene.chat()).error == (503, "closing")
        goes_on.set()
        assert b"done" in await asking
        assert await draining == 0

    at_the_wire(tmp_path, body)


def test_an_answer_that_cannot_finish_is_an_error_and_nobody_takes_it_up(tmp_path: Path) -> None:
    """K6 is for what waits in a session: this client will send its conversation again."""

    async def main() -> None:
        async with asyncio.timeout(20), FakeProvider() as provider, aiohttp.ClientSession() as http:
            provider.queue(Hang())
            settings = wire_settings(tmp_path, provider)
            async with served(settings) as running:
                scene = Scene(running, provider, http, running.tokens.ensure()[0])
                asking = asyncio.create_task(scene.chat())
                await provider.wait_requests(1)
                assert await running.gateway.drain(0) == 1
                got = await asking
                assert got.error == (503, "interrupted")
                assert got.headers["x-should-retry"] == "true"
            async with served(settings) as running:
                scene = Scene(running, provider, http, running.tokens.ensure()[0])
                assert await scene.runs() == [("coder", "cancelled")]
            assert len(provider.requests) == 1

    asyncio.run(main())
