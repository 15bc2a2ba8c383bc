"""The fake provider over a real socket, in this process."""

import asyncio
import io
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import aiohttp
import msgspec
import pytest

from xclaw.testing import (
    DONE,
    Calls,
    Cut,
    FakeProvider,
    Hang,
    Pause,
    Raw,
    Status,
    Text,
    Until,
    delta,
    usage_chunk,
)

STREAMED: dict[str, object] = {"stream": True, "stream_options": {"include_usage": True}}


class Client:
    """Posts to one provider on a pool of its own."""

    def __init__(self, provider: FakeProvider, http: aiohttp.ClientSession) -> None:
        self.provider = provider
        self.http = http

    async def post(self, body: dict[str, object]) -> tuple[int, bytes]:
        async with self.http.post(f"{self.provider.url}/chat/completions", json=body) as response:
            return response.status, await response.read()

    async def get(self, path: str) -> object:
        async with self.http.get(self.provider.url.removesuffix("/v1") + path) as response:
            return msgspec.json.decode(await response.read())


@asynccontextmanager
async def _opened() -> AsyncGenerator[Client]:
    async with asyncio.timeout(5), FakeProvider() as provider, aiohttp.ClientSession() as http:
        yield Client(provider, http)


def _run(test: Callable[[Client], Awaitable[None]]) -> None:
    async def main() -> None:
        async with _opened() as client:
            await test(client)

    asyncio.run(main())


def _events(stream: bytes) -> list[object]:
    lines = [line.removeprefix(b"data: ") for line in stream.split(b"\n\n") if line]
    assert lines[-1] == b"[DONE]"
    return [msgspec.json.decode(line) for line in lines[:-1]]


def test_a_text_streams_in_chunks_with_finish_and_usage() -> None:
    async def test(client: Client) -> None:
        client.provider.queue(Text("hällo", chunk=2, usage=(7, 3)))
        status, stream = await client.post(STREAMED)
        assert status == 200
        events = msgspec.convert(_events(stream), list[dict[str, object]])
        assert [event["choices"] for event in events] == [
            [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}],
            [{"index": 0, "delta": {"content": "hä"}, "finish_reason": None}],
            [{"index": 0, "delta": {"content": "ll"}, "finish_reason": None}],
            [{"index": 0, "delta": {"content": "o"}, "finish_reason": None}],
            [{"index": 0, "delta": {}, "finish_reason": "stop"}],
            [],
        ]
        assert events[-1]["usage"] == {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}

    _run(test)


def test_usage_is_streamed_only_when_it_is_asked_for() -> None:
    async def test(client: Client) -> None:
        client.provider.queue(Text("a"), Text("a", usage=None))
        for body in ({"stream": True}, STREAMED):
            assert b"usage" not in (await client.post(dict(body)))[1]

    _run(test)


def test_a_request_that_does_not_stream_gets_one_document() -> None:
    async def test(client: Client) -> None:
        client.provider.queue(Calls(("id1", "look", '{"at": 1}'), text="I look."))
        _, document = await client.post({})
        answer = msgspec.json.decode(document, type=dict[str, object])
        function = {"name": "look", "arguments": '{"at": 1}'}
        assert answer["choices"] == [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "I look.",
                    "tool_calls": [{"id": "id1", "type": "function", "function": function}],
                },
                "finish_reason": "tool_calls",
            }
        ]

    _run(test)


def test_raw_bytes_arrive_as_they_are() -> None:
    async def test(client: Client) -> None:
        go = asyncio.Event()
        parts = (b": hi\r\n", b"data: \xe4", Pause(0.0), b"\xbd", Until(go), b"\xa0")
        client.provider.queue(Raw(*parts))
        go.set()
        assert await client.post({}) == (200, b": hi\r\ndata: \xe4\xbd\xa0")

    _run(test)


def test_an_event_holds_an_answer_back() -> None:
    async def test(client: Client) -> None:
        go = asyncio.Event()
        client.provider.queue(Raw(b"first", Until(go), b"second"))
        async with client.http.post(f"{client.provider.url}/chat/completions", json={}) as response:
            assert await response.content.readexactly(5) == b"first"
            assert not client.provider.requests[0].finished.is_set()
            go.set()
            assert await response.content.read() == b"second"
            await client.provider.requests[0].finished.wait()

    _run(test)


@pytest.mark.parametrize("cut", [Cut(), Cut(reset=False)])
def test_a_cut_drops_the_connection_in_the_middle(cut: Cut) -> None:
    async def test(client: Client) -> None:
        client.provider.queue(Raw(b"half", cut), Text("next"))
        with pytest.raises(aiohttp.ClientPayloadError):
            await client.post({})
        assert client.provider.requests[0].finished.is_set(), "a planned cut is an answer as planned"
        assert (await client.post({}))[0] == 200
        assert client.provider.connections == 2

    _run(test)


def test_a_status_has_its_headers_and_body() -> None:
    async def test(client: Client) -> None:
        html = Status(502, b"<html>", {"content-type": "text/html"})
        client.provider.queue(Status(429, headers={"Retry-After": "3"}), html)
        async with client.http.post(f"{client.provider.url}/chat/completions", json={}) as response:
            assert (response.status, response.headers["Retry-After"]) == (429, "3")
            assert response.content_type == "application/json"
            error = msgspec.json.decode(await response.read(), type=dict[str, dict[str, object]])
            assert error["error"]["message"] == "fake error 429"
        async with client.http.post(f"{client.provider.url}/chat/completions", json={}) as response:
            assert response.headers.getall("Content-Type") == ["text/html"]
            assert (response.status, await response.read()) == (502, b"<html>")

    _run(test)


def test_a_client_that_goes_away_is_noticed() -> None:
    """C02: whoever cancels a call can be seen to have ended it."""

    async def test(client: Client) -> None:
        client.provider.queue(Hang(), Raw(b"begun", Until(asyncio.Event())))
        for number in range(2):
            call = asyncio.create_task(client.post({}))
            request = (await client.provider.wait_requests(number + 1))[number]
            call.cancel()
            await request.closed.wait()
            assert request.ended_at is not None
            assert request.ended_at >= request.at
            assert not request.finished.is_set()
        assert client.provider.stats.abandoned == 2

    _run(test)


def test_requests_are_recorded_as_they_came() -> None:
    async def test(client: Client) -> None:
        client.provider.queue(Text("a"), Text("b"))
        body: dict[str, object] = {"model": "m", "messages": [{"role": "user", "content": "hé"}]}
        for _ in range(2):
            await client.post(body)
        first, second = client.provider.requests
        assert first.body == body
        assert first.path == "/v1/chat/completions"
        assert first.headers["content-type"] == "application/json"
        assert first.client_port == second.client_port, "the connection was kept"
        assert client.provider.connections == 1

    _run(test)


def test_the_queue_goes_before_the_function_and_nothing_is_said_clearly() -> None:
    async def test(client: Client) -> None:
        status, body = await client.post({})
        assert status == 400
        assert b"no reply is queued" in body
        client.provider.answer_with(lambda request: Text(str(request["n"])))
        client.provider.queue(Text("queued"))
        assert b"queued" in (await client.post({"n": 1}))[1]
        assert b'"content":"2"' in (await client.post({"n": 2}))[1]

    _run(test)


@pytest.mark.parametrize("body", [b"no json", b"[]", b"\xff"])
def test_a_body_that_is_no_object_is_refused(body: bytes) -> None:
    async def test(client: Client) -> None:
        async with client.http.post(f"{client.provider.url}/chat/completions", data=body) as response:
            assert response.status == 400

    _run(test)


def test_stats_show_what_was_answered_twice() -> None:
    async def test(client: Client) -> None:
        client.provider.answer_with(lambda _: Text("ok"))
        once: dict[str, object] = {"messages": [{"role": "user", "content": "once"}]}
        twice: dict[str, object] = {"messages": [{"role": "user", "content": [{"text": "twice"}]}]}
        for body in (once, twice, twice):
            await client.post(body)
        stats = msgspec.convert(await client.get("/stats"), dict[str, object])
        assert (stats["requests"], stats["finished"], stats["connections"]) == (3, 3, 1)
        for key in ("by_messages", "by_last_user"):
            assert sorted(msgspec.convert(stats[key], dict[str, int]).values()) == [1, 2], key
        async with client.http.post(client.provider.url.removesuffix("/v1") + "/reset"):
            pass
        after = msgspec.convert(await client.get("/stats"), dict[str, object])
        assert (after["requests"], after["by_messages"]) == (0, {})

    _run(test)


def test_a_long_conversation_is_no_problem() -> None:
    async def test(client: Client) -> None:
        client.provider.queue(Text("ok"))
        long = io.BytesIO(msgspec.json.encode({"messages": [{"role": "user", "content": "x" * 3_000_000}]}))
        async with client.http.post(f"{client.provider.url}/chat/completions", data=long) as response:
            assert response.status == 200

    _run(test)


def test_a_failing_answer_function_fails_the_test_that_uses_it() -> None:
    async def test(client: Client) -> None:
        def fail(body: dict[str, object]) -> Text:
            raise LookupError("no such case")

        client.provider.answer_with(fail)
        assert (await client.post({}))[0] == 500

    with pytest.raises(LookupError, match="no such case"):
        _run(test)


def test_leaving_ends_what_hangs_at_once() -> None:
    async def main() -> None:
        async with asyncio.timeout(5), aiohttp.ClientSession() as http:
            async with FakeProvider() as provider:
                provider.queue(Hang())
                call = asyncio.create_task(Client(provider, http).post({}))
                await provider.wait_requests(1)
            with pytest.raises(aiohttp.ClientError):
                await call

    asyncio.run(main())


def test_helpers_build_the_same_wire_as_answers() -> None:
    async def test(client: Client) -> None:
        client.provider.queue(Text("a", usage=(1, 1)))
        _, stream = await client.post(STREAMED)
        assert stream.endswith(delta("a") + delta(finish="stop") + usage_chunk((1, 1)) + DONE)

    _run(test)
