"""Server-sent events: everything once, in order, for as long as somebody reads."""

import asyncio
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Self

import pytest
from starlette.types import Message

from gateway.api_client import Api, Scene, Told, at_the_api
from xclaw.contracts.errors import JournalError, UsageError
from xclaw.gateway.channels.sse import EventStream, Opening, Pace, event_text
from xclaw.gateway.wire import DeltaFrame, ErrorFrame, EventFrame, ServerFrame
from xclaw.testing.fake_replies import Calls, Hang, Raw, Text, Until, stream_of

LINES = DeltaFrame(request="m", session="s", run="r", agent="a", after=1, offset=0, content="a\n\nb\r\nid: 7")


def stored(told: list[Told]) -> list[int]:
    return [each.id for each in told if each.id is not None]


def test_a_client_that_comes_back_with_its_last_id_gets_the_rest_once_in_order(tmp_path: Path) -> None:
    """G01: dropped after every single event, it still has all of them, the terminal one included."""

    async def body(scene: Scene) -> None:
        scene.provider.queue(
            Calls(("c1", "list_dir", '{"path": "."}')),
            Calls(("c2", "list_dir", '{"path": "."}')),
            Text("done"),
        )
        accepted = await scene.owner.say("s", "look")
        whole = await scene.owner.reply(accepted)
        path = f"/sessions/s/events?after={accepted['after']}"
        seen: list[Told] = []
        headers: dict[str, str] = {}
        while not seen or seen[-1].event != "reply":
            async with scene.owner.stream(path, **headers) as stream:
                seen += await stream.until(lambda told: told.id is not None)
            headers = {"Last_Event_ID": str(seen[-1].id)}
        assert stored(seen) == stored(whole)
        assert stored(seen) == sorted(set(stored(seen)))
        assert [told.data for told in seen] == [told.data for told in whole if told.id is not None]

    at_the_api(tmp_path, body)


def test_events_are_named_like_frames_and_only_stored_ones_have_an_id(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        gate = asyncio.Event()
        scene.provider.queue(
            Raw(stream_of(Text("one two three", chunk=3), False), Until(gate), stream_of(Text("!"), True))
        )
        accepted = await scene.owner.say("s", "hi")
        async with scene.owner.stream(f"/sessions/s/events?after={accepted['after']}") as stream:
            assert stream.response.headers["Content-Type"] == "text/event-stream; charset=utf-8"
            told = await stream.until(lambda each: each.event == "delta")
            gate.set()
            told += await stream.to_reply()
        for each in told:
            assert each.event == each.data["type"]
            assert each.id == each.data.get("id")
            assert (each.id is None) == (each.event == "delta")
            assert (each.data["request"], each.data["session"]) == (accepted["request"], "s")
        assert {"event", "delta", "reply"} == {each.event for each in told}

    at_the_api(tmp_path, body)


def test_a_text_cannot_break_out_of_its_event() -> None:
    lines = event_text(LINES).decode().split("\n")
    assert lines[0] == "event: delta"
    assert lines[1].startswith("data: {")
    assert lines[2:] == ["", ""]


def test_the_events_of_a_run_are_those_of_its_tree_and_end_with_its_reply(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        gate = asyncio.Event()
        scene.provider.queue(Raw(Until(gate), stream_of(Text("first"), True)), Text("second"))
        first = await scene.owner.say("s", "one")
        second = await scene.owner.say("s", "two")
        async with scene.owner.stream(f"/sessions/s/events?after={first['after']}") as stream:
            run = (await stream.until(lambda told: told.event == "event"))[-1].data["run"]
        async with scene.owner.stream(f"/runs/{run}/events") as stream:
            gate.set()
            live = await stream.to_end()
        await scene.owner.reply(second)
        assert {told.data["root"] for told in live if told.id} == {run}
        assert (live[-1].event, live[-1].data["content"]) == ("reply", "first")
        assert live[0].data["data"]["kind"] == "run_started"
        async with scene.owner.stream(f"/runs/{run}/events") as stream:
            told = await stream.to_end()
        assert [each.data for each in told] == [each.data for each in live if each.id]
        async with scene.owner.stream(f"/runs/{run}/events", Last_Event_ID=str(told[-2].id)) as stream:
            assert [each.event for each in await stream.to_end()] == ["reply"]
        rest = await scene.owner.get(f"/runs/{run}/events?after={told[-1].id}")
        assert (rest.status, rest.body) == (204, b"")

    at_the_api(tmp_path, body)


@pytest.mark.parametrize("given", ["x", "-1", "1.5", "9" * 40, "9" * 19, "0" * 40, "٣"])
def test_an_id_that_is_none_is_refused(tmp_path: Path, given: str) -> None:
    async def body(scene: Scene) -> None:
        got = await scene.owner.get("/sessions/s/events", Last_Event_ID=given)
        assert got.error == (400, "bad_request")
        if given.isascii():
            assert (await scene.owner.get(f"/sessions/s/events?after={given}")).error == (400, "bad_request")

    at_the_api(tmp_path, body)


def test_while_nothing_happens_there_are_signs_of_life(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        scene.provider.queue(Hang())
        await scene.owner.say("s", "hi")
        async with scene.owner.stream("/sessions/s/events") as stream:
            async for raw in stream.response.content:
                if raw.startswith(b": still here"):
                    break

    at_the_api(tmp_path, body, keepalive_s=0.05)


def test_a_stream_ends_when_the_gateway_closes_and_when_its_session_is_deleted(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        scene.provider.queue(Text("hello"))
        await scene.owner.ask("s", "hi")
        async with (
            scene.owner.stream("/sessions/s/events") as deleted,
            scene.owner.stream("/sessions/t/events") as other,
        ):
            assert (await scene.owner.delete("/sessions/s")).status == 204
            assert await deleted.to_end() == []
            await scene.served.gateway.drain(0)
            assert await other.to_end() == []

    at_the_api(tmp_path, body)


def test_a_stream_ends_when_its_token_is_revoked(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        bob = scene.as_user("bob")
        async with bob.stream("/sessions/s/events") as stream:
            scene.served.tokens.revoke("bob")
            assert await stream.to_end() == []

    at_the_api(tmp_path, body, keepalive_s=0.05)


def test_a_client_that_goes_away_leaves_nothing_behind(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        before = len(asyncio.all_tasks())
        readers = [await _reader(scene.owner, "/sessions/s/events") for _ in range(5)]
        feed = scene.served.gateway._feeds["s"]  # pyright: ignore[reportPrivateUsage] - who watches is told nowhere else
        assert len(feed.readers) == 5
        for reader in readers:
            reader.close()
        while feed.readers or len(asyncio.all_tasks()) > before:
            await scene.owner.get("/agents")

    at_the_api(tmp_path, body)


def test_a_client_that_reads_nothing_is_dropped_and_holds_nobody_up(tmp_path: Path) -> None:
    """G03: over a real socket; the run ends, another reader has it all, the silent one is gone."""

    async def body(scene: Scene) -> None:
        scene.provider.queue(Text("x" * 6_000_000))
        silent = await _reader(scene.owner, "/sessions/s/events")
        feed = scene.served.gateway._feeds["s"]  # pyright: ignore[reportPrivateUsage] - who watches is told nowhere else
        told = await scene.owner.ask("s", "much")
        assert len(told[-1].data["content"]) == 6_000_000
        while feed.readers:
            await scene.owner.get("/agents")
        silent.close()

    at_the_api(tmp_path, body, stall_s=0.3)


async def _reader(api: Api, path: str) -> socket.socket:
    """A connection that has asked, been answered, and then reads nothing."""
    host, _, port = api.url.removeprefix("http://").partition(":")
    reader = socket.socket()
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    reader.connect((host, int(port)))
    reader.setblocking(False)
    loop = asyncio.get_running_loop()
    head = f"GET /api/v1{path} HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {api.token}\r\n\r\n"
    await loop.sock_sendall(reader, head.encode())
    answer = b""
    while b": welcome" not in answer:
        answer += await loop.sock_recv(reader, 4096)
    return reader


# --- the stream alone, where a socket would hide what happens


class Frames:
    """Frames that come when they are put in; `JournalError` when that is."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[ServerFrame | JournalError | None] = asyncio.Queue()
        self.open = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ServerFrame:
        item = await self.queue.get()
        if item is None:
            raise StopAsyncIteration
        if isinstance(item, JournalError):
            raise item
        return item

    @asynccontextmanager
    async def opening(self) -> AsyncGenerator[AsyncIterator[ServerFrame]]:
        self.open = True
        try:
            yield self
        finally:
            self.open = False


PATIENT = Pace(60, 60)


class Line:
    """Both ends of an ASGI connection."""

    def __init__(self) -> None:
        self.sent: list[Message] = []
        self._sent_more = asyncio.Condition()
        self.reads = asyncio.Event()
        self.reads.set()
        self.gone = asyncio.Event()

    async def receive(self) -> Message:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        await self.reads.wait()
        self.sent.append(message)
        async with self._sent_more:
            self._sent_more.notify_all()

    async def until(self, wanted: Callable[[str], bool]) -> None:
        """Wait until what was sent is what is wanted."""
        async with self._sent_more:
            await self._sent_more.wait_for(lambda: wanted(self.text))

    @property
    def text(self) -> str:
        return b"".join(message.get("body", b"") for message in self.sent).decode()

    async def serve(self, opening: Opening, pace: Pace = PATIENT, *, welcome: bool = True) -> None:
        async with asyncio.timeout(5):
            await EventStream(opening, pace, lambda: welcome)({"type": "http"}, self.receive, self.send)


def event(number: int) -> EventFrame:
    return EventFrame(
        request="m",
        session="s",
        id=number,
        seq=number,
        at=0.0,
        run="r",
        root="r",
        parent="",
        run_session="s",
        data={"kind": "warned", "code": "late", "text": "t"},
    )


def _has(number: int, signs: int, text: str) -> bool:
    return f"id: {number}\n" in text and text.count(": still here") >= signs


def test_signs_of_life_lose_no_frame() -> None:
    async def main() -> None:
        frames, line = Frames(), Line()
        serving = asyncio.create_task(line.serve(frames.opening(), Pace(0.001, 60)))
        for number in range(1, 200):
            frames.queue.put_nowait(event(number))
            await line.until(partial(_has, number, number // 40))
        frames.queue.put_nowait(None)
        await serving
        assert line.text.count("id: ") == 199
        assert line.sent[-1] == {"type": "http.response.body", "body": b"", "more_body": False}

    asyncio.run(main())


def test_a_client_that_reads_nothing_is_dropped_without_an_end() -> None:
    """G03."""

    async def main() -> None:
        frames, line = Frames(), Line()
        serving = asyncio.create_task(line.serve(frames.opening(), Pace(60, 0.05)))
        await line.until(lambda text: ": welcome" in text)
        line.reads.clear()
        frames.queue.put_nowait(event(1))
        await serving
        assert not frames.open
        assert line.sent[-1]["more_body"] is True

    asyncio.run(main())


def test_a_client_that_goes_away_ends_the_watch() -> None:
    async def main() -> None:
        frames, line = Frames(), Line()
        serving = asyncio.create_task(line.serve(frames.opening()))
        await line.until(lambda text: ": welcome" in text)
        assert frames.open
        line.gone.set()
        await serving
        assert not frames.open
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


def test_a_watch_that_cannot_be_opened_is_an_error_and_no_stream() -> None:
    @asynccontextmanager
    async def refused() -> AsyncGenerator[AsyncIterator[ServerFrame]]:
        raise UsageError("no such thing")
        yield Frames()

    async def main() -> None:
        line = Line()
        await line.serve(refused())
        assert line.sent[0]["status"] == 400
        assert "no such thing" in line.text

    asyncio.run(main())


def test_a_journal_that_cannot_be_read_ends_the_stream_with_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        frames, line = Frames(), Line()
        frames.queue.put_nowait(event(1))
        frames.queue.put_nowait(JournalError("/secret/path is damaged"))
        await line.serve(frames.opening())
        assert "event: error" in line.text
        assert "secret" not in line.text
        assert line.sent[-1]["more_body"] is False

    asyncio.run(main())
    assert "/secret/path" in caplog.text


def test_an_error_frame_is_an_event_without_an_id() -> None:
    assert event_text(ErrorFrame(code="closing", content="bye")).startswith(b"event: error\ndata: ")
