import asyncio
import logging
import os
import signal
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import pytest

from behaviour.harness import settings_for, write_script
from gateway.served import Served, served, with_gateway
from xclaw.app import open_gateway
from xclaw.contracts.channels import Door, Reply
from xclaw.contracts.errors import UsageError
from xclaw.contracts.messages import Message
from xclaw.gateway.metrics import Metrics
from xclaw.gateway.serving import serve
from xclaw.gateway.tokens import TokenBook
from xclaw.gateway.wire import ErrorFrame, ReplyFrame, Say
from xclaw.settings import Settings
from xclaw.testing.fake_provider import DONE, FakeProvider, Hang, Raw, Text, Until, delta, usage_chunk


def scripted(home: Path, **gateway: object) -> Settings:
    script = write_script(home, [{"agent": "orchestrator", "replies": [{"text": "hello there"}]}])
    return with_gateway(settings_for(home, script), **gateway)


def provided(home: Path, provider: FakeProvider, **gateway: object) -> Settings:
    env = {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": provider.url}
    return with_gateway(settings_for(home, "openai:fake", env=env), **gateway)


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(20):
            await scenario()

    asyncio.run(main())


async def status(gate: Served, path: str) -> int:
    async with aiohttp.ClientSession() as session, session.get(gate.url + path) as response:
        return response.status


async def until_status(gate: Served, path: str, wanted: int) -> None:
    while await status(gate, path) != wanted:
        pass


def held(until: asyncio.Event) -> Raw:
    """An answer that comes when the event is set."""
    return Raw(Until(until), delta("hello there"), delta(finish="stop"), usage_chunk((10, 2)), DONE)


def test_a_signal_lets_runs_end_and_then_ends_the_gateway(tmp_path: Path) -> None:
    """While it drains, clients see how their runs end, and whoever asks is told."""

    async def scenario() -> None:
        answer = asyncio.Event()
        async with FakeProvider() as provider, served(provided(tmp_path, provider, drain_s=10)) as gate:
            provider.queue(held(answer))
            async with gate.client() as client:
                await client.watch("s")
                await client.say("s", "hi")
                await provider.wait_requests(1)
                assert await status(gate, "/readyz") == 200
                os.kill(os.getpid(), signal.SIGTERM)
                await until_status(gate, "/readyz", 503)
                assert await status(gate, "/healthz") == 200
                refused = await client.answer(
                    Say(session="s", text="more", client_id="c", ref="r"), ErrorFrame
                )
                assert (refused.code, refused.client_id, refused.ref) == ("closing", "c", "r")
                answer.set()
                assert (await client.until(ReplyFrame)).content == "hello there"
                assert await client.to_close() == 1012
            await gate.serving
            with pytest.raises(OSError):
                await asyncio.open_connection("127.0.0.1", int(gate.url.rpartition(":")[2]))

    run(scenario)


@pytest.mark.parametrize("signals", [[signal.SIGTERM], [signal.SIGINT, signal.SIGTERM]])
def test_what_could_not_end_goes_on_at_the_next_start(tmp_path: Path, signals: list[signal.Signals]) -> None:
    """G01 over a restart: the client comes back with the last id that it has. A second signal waits for
    nothing."""

    async def scenario() -> None:
        drain_s = 0.2 if len(signals) == 1 else 60
        async with FakeProvider() as provider:
            provider.queue(Hang(), Text("hello there"), Text("hello again"))
            settings = provided(tmp_path, provider, drain_s=drain_s)
            async with served(settings) as gate, gate.client() as client:
                await client.watch("s", 0)
                said = await client.say("s", "hi", client_id="one")
                waiting = await client.say("s", "and?", client_id="two")
                await provider.wait_requests(1)
                os.kill(os.getpid(), signals[0])
                await until_status(gate, "/readyz", 503)
                for number in signals[1:]:
                    os.kill(os.getpid(), number)
                assert await client.to_close() == 1012
                seen = client.ids
                await gate.serving
            async with served(settings) as gate, gate.client() as client:
                await client.watch("s", seen[-1])
                frames = [*await client.to_reply(), *await client.to_reply()]
                assert (await client.say("s", "hi", client_id="one")).duplicate
                replies = [frame for frame in frames if isinstance(frame, ReplyFrame)]
                assert [reply.request for reply in replies] == [said.request, waiting.request]
                assert [reply.content for reply in replies] == ["hello there", "hello again"]
                whole = seen + client.ids
                await client.watch("s", 0)
                again = [*await client.to_reply(), *await client.to_reply()]
                assert [frame.id for frame in again] == whole
                assert sum(frame.data["kind"] == "run_started" for frame in again) == 2

    run(scenario)


def test_a_port_in_use_is_named_with_what_to_do(tmp_path: Path) -> None:
    async def scenario() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            with pytest.raises(UsageError, match=rf"port {port} .*in use.*--port"):
                async with served(scripted(tmp_path, port=port)):
                    pass

    run(scenario)


@pytest.mark.parametrize("host", ["host.invalid", "203.0.113.7"])
def test_a_host_that_is_not_here_is_named(tmp_path: Path, host: str) -> None:
    async def scenario() -> None:
        with pytest.raises(UsageError, match=rf"{host}.*gateway\.host"):
            async with served(scripted(tmp_path, host=host)):
                pass

    run(scenario)


def test_what_fails_when_it_is_ready_ends_it_and_frees_the_port(tmp_path: Path) -> None:
    """For example the file that tells where it is cannot be written."""

    async def scenario() -> None:
        urls: list[str] = []

        def on_ready(url: str) -> None:
            urls.append(url)
            raise UsageError("cannot be written")

        settings = scripted(tmp_path)
        tokens = TokenBook(Path(settings.gateway.token_file), Path(settings.gateway.users_file))
        async with open_gateway(settings) as app:
            with pytest.raises(UsageError, match="cannot be written"):
                await serve(app.gateway, tokens, on_ready=on_ready)
            port = int(urls[0].rpartition(":")[2])
            with pytest.raises(OSError):
                await asyncio.open_connection("127.0.0.1", port)

    run(scenario)


def test_it_ends_by_itself_when_nobody_needs_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        answer = asyncio.Event()
        async with (
            FakeProvider() as provider,
            served(provided(tmp_path, provider, idle_exit_s=0.3)) as gate,
        ):
            provider.queue(held(answer))
            async with gate.client() as client:
                await client.say("s", "hi")
                await provider.wait_requests(1)
            done, _ = await asyncio.wait((gate.serving,), timeout=0.6)
            assert not done, "a run goes on"
            answer.set()
            await gate.serving

    run(scenario)


def test_a_connected_client_keeps_it_from_ending(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with served(scripted(tmp_path, idle_exit_s=0.2)) as gate:
            async with gate.client():
                done, _ = await asyncio.wait((gate.serving,), timeout=0.6)
                assert not done
            await gate.serving

    run(scenario)


class Echo:
    """Says one thing, and keeps what it is answered."""

    name = "echo"

    def __init__(self) -> None:
        self.answered: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def serve(self, door: Door) -> None:
        accepted = await door.dispatch(Message("", "s", self.name, "hi", 0))
        async with door.watch("s", accepted.after) as happening:
            async for outgoing in happening:
                if isinstance(outgoing, Reply):
                    self.answered.set_result(outgoing.ended.result.text)


class Broken:
    def __init__(self, name: str, failure: BaseException) -> None:
        self.name = name
        self._failure = failure

    async def serve(self, door: Door) -> None:
        raise self._failure


def test_a_channel_that_fails_ends_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A6."""

    async def scenario() -> None:
        echo = Echo()
        broken = [Broken("broken", RuntimeError("no luck")), Broken("quitting", SystemExit(3))]
        async with served(scripted(tmp_path), [*broken, echo]) as gate:
            assert await echo.answered == "hello there"
            assert await status(gate, "/readyz") == 200

    run(scenario)
    failed = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(failed) == 2
    assert "broken" in failed[0]
    assert "quitting" in failed[1]


def test_what_is_not_there_is_said_in_json(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            served(scripted(tmp_path)) as gate,
            aiohttp.ClientSession(headers=gate.headers()) as session,
        ):
            async with session.get(f"{gate.url}/nothing/here") as response:
                assert response.status == 404
                assert (await response.json())["error"]["code"] == "not_found"
            async with session.post(f"{gate.url}/readyz") as response:
                assert response.status == 405
                assert (await response.json())["error"]["code"] == "bad_request"
            async with session.get(f"{gate.url}/ws") as response:
                assert response.status in (404, 426)
                assert (await response.json())["error"]["code"]

    run(scenario)


def test_metrics_are_for_admins(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with served(scripted(tmp_path)) as gate, aiohttp.ClientSession() as session:
            for token, expected in ((None, 200), (gate.token_of("alice"), 403)):
                async with session.get(f"{gate.url}/metrics", headers=gate.headers(token)) as response:
                    assert response.status == expected
                    assert ("xclaw_build_info" in await response.text()) == (expected == 200)
            assert await status(gate, "/metrics") == 401
            assert await status(gate, "/readyz") == 200

    run(scenario)


class Failing(Metrics):
    def render(self) -> bytes:
        raise RuntimeError("a secret path: /root/xclaw")


def test_what_fails_unexpectedly_tells_a_mark_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with (
            served(scripted(tmp_path)) as gate,
            aiohttp.ClientSession(headers=gate.headers()) as session,
        ):
            gate.gateway.metrics = Failing("1")
            async with session.get(f"{gate.url}/metrics") as response:
                assert response.status == 500
                error = (await response.json())["error"]
                assert error["code"] == "internal"
                assert "secret" not in error["message"]
                mark = error["message"].split()[-1]
                assert any(f"[{mark}]" in record.getMessage() for record in caplog.records)
            async with session.get(f"{gate.url}/healthz") as response:
                assert response.status == 200

    run(scenario)
