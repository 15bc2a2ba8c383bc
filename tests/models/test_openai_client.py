"""Streams as servers really send them, through the adapter and over a socket."""

import asyncio
import gzip

import pytest
from aiohttp import web
from wire_asking import KEY, REQUEST, STOP, asked, choice, opened, refused, run, stream

from xclaw.contracts.errors import (
    ContextTooLong,
    ModelError,
    ModelInterrupted,
    ModelRejected,
    ModelUnavailable,
    UsageError,
)
from xclaw.contracts.messages import UserMessage
from xclaw.contracts.models import ModelRequest
from xclaw.contracts.usage import Usage
from xclaw.models.openai.client import Endpoint
from xclaw.testing.fake_provider import (
    DONE,
    Cut,
    FakeProvider,
    Hang,
    Pause,
    Raw,
    Status,
    Text,
    Until,
    delta,
    sse,
)
from xclaw.testing.recording_sink import RecordingSink

USAGE = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}


@pytest.mark.parametrize("nothing", [[], None, {}, "", 0])
def test_chunks_without_choices_are_no_text_and_may_carry_usage(nothing: object) -> None:
    """S01."""

    async def main() -> None:
        reply, _ = await asked(
            stream(
                {"choices": nothing}, choice({"content": "你好"}), STOP, {"choices": nothing, "usage": USAGE}
            )
        )
        assert reply.message.text == "你好"
        assert reply.usage == Usage(10, 2)

    run(main)


def test_usage_in_every_chunk_is_counted_once() -> None:
    """S01, U01: some servers repeat or grow it."""

    async def main() -> None:
        growing = [
            choice({"content": "a"}) | {"usage": {"prompt_tokens": 10, "completion_tokens": 1}},
            choice({"content": "b"}) | {"usage": USAGE},
            STOP | {"usage": None},
        ]
        reply, _ = await asked(stream(*growing))
        assert reply.usage == Usage(10, 2)

    run(main)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({**USAGE, "prompt_tokens_details": {"cached_tokens": 4}}, Usage(10, 2, 4)),
        ({**USAGE, "prompt_cache_hit_tokens": 4}, Usage(10, 2, 4)),
        ({**USAGE, "completion_tokens_details": {"reasoning_tokens": 1}}, Usage(10, 2, 0, 1)),
        ({**USAGE, "prompt_tokens_details": {"cached_tokens": 99}}, Usage(10, 2, 10)),
        ({**USAGE, "prompt_tokens_details": [1], "completion_tokens_details": "x"}, Usage(10, 2)),
        ({"input_tokens": 10, "output_tokens": 2.0}, Usage(10, 2)),
    ],
)
def test_usage_is_read_in_every_spelling(usage: dict[str, object], expected: Usage) -> None:
    async def main() -> None:
        reply, _ = await asked(stream(choice({"content": "x"}), STOP, {"choices": [], "usage": usage}))
        assert reply.usage == expected

    run(main)


@pytest.mark.parametrize(
    "usage",
    [None, {}, "many", {"prompt_tokens": -5, "completion_tokens": "2"}, {"prompt_tokens": True}, [1, 2]],
)
def test_usage_that_says_nothing_is_estimated_and_marked_so(usage: object) -> None:
    """U03: unknown is not 0."""

    async def main() -> None:
        reply, _ = await asked(
            stream(choice({"content": "some words"}), STOP, {"choices": [], "usage": usage})
        )
        assert reply.usage.estimated
        assert reply.usage.input_tokens > 0
        assert reply.usage.output_tokens > 0

    run(main)


@pytest.mark.parametrize(
    "broken",
    [
        Raw(DONE),
        Raw(),
        Raw(b"\n\n: ping\n\n"),
        Raw(b'data: {"choices":[{"delta":{"content":"x'),
        stream(STOP),
        stream(choice({"content": "  \n"}), STOP),
        stream(choice({"content": "half"})),
        stream(choice({"content": "half"}), choice({}, "")),
        stream(choice({"content": "half"}), choice({}, 7)),
        stream(choice({"content": "half"}), choice({}, "error")),
        Raw(delta("half"), Cut()),
        Raw(delta("half"), Cut(reset=False)),
        Raw(delta("half"), b"data: {oops}\n\n", delta(finish="stop"), DONE),
        Raw(b'{"choices": [{"message": {"content": "hal', content_type="application/json"),
    ],
    ids=str,
)
def test_what_did_not_end_is_no_answer(broken: Raw) -> None:
    """S02, S11."""

    async def main() -> None:
        assert isinstance(await refused(broken), ModelInterrupted)

    run(main)


def test_a_finish_reason_ends_the_answer_whatever_happens_after_it() -> None:
    """[DONE] is missing; the line end is; the connection is reset: the provider had finished."""

    async def main() -> None:
        text, finish = delta("whole"), delta(finish="stop")
        for ending in (Raw(text, finish), Raw(text, finish.rstrip()), Raw(text, finish, Cut(reset=False))):
            reply, _ = await asked(ending)
            assert reply.message.text == "whole"

    run(main)


def test_a_character_cut_anywhere_stays_whole() -> None:
    """S06."""

    async def main() -> None:
        event = sse(choice({"content": "你好🌍"}))
        reply, _ = await asked(Raw(*(bytes([byte]) for byte in event), delta(finish="stop"), DONE))
        assert reply.message.text == "你好🌍"

    run(main)


def test_a_surrogate_pair_escaped_in_two_chunks_is_one_character() -> None:
    """S06: servers that cut UTF-16 send half a character in each chunk."""

    async def main() -> None:
        halves = (
            rb'data: {"choices":[{"delta":{"content":"a\ud83c"}}]}' + b"\n\n",
            rb'data: {"choices":[{"delta":{"content":"\udf0db\ud83c"}}]}' + b"\n\n",
            rb'data: {"choices":[{"delta":{"content":"c"}}]}' + b"\n\n",
        )
        reply, _ = await asked(Raw(*halves, delta(finish="stop"), DONE))
        assert reply.message.text == "a🌍b�c"

    run(main)


@pytest.mark.parametrize(
    ("delta_fields", "text", "reasoning"),
    [
        ({"content": None, "reasoning_content": "hm"}, "", "hm"),
        ({"content": "", "reasoning": "hm"}, "", "hm"),
        ({"thinking": "hm", "content": "yes"}, "yes", "hm"),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "ab", ""),
        ({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, "b"]}, "b", "hm"),
        ({"content": 5, "reasoning": {"x": 1}, "tool_calls": "x", "function_call": 3}, "", ""),
        ({"refusal": "I cannot."}, "I cannot.", ""),
        (None, "", ""),
        ([], "", ""),
        ("text", "", ""),
    ],
    ids=str,
)
def test_content_comes_in_every_shape(delta_fields: object, text: str, reasoning: str) -> None:
    async def main() -> None:
        reply, _ = await asked(stream(choice(delta_fields), choice({"content": "."}), STOP))
        assert (reply.message.text, reply.message.reasoning) == (text + ".", reasoning)

    run(main)


@pytest.mark.parametrize("encoding", ["event", "plain"])
@pytest.mark.parametrize(
    ("error", "kind", "status"),
    [
        ({"error": {"message": "Overloaded", "code": 529}}, ModelUnavailable, 529),
        ({"error": "it broke"}, ModelUnavailable, None),
        ({"error": {"message": "slow down", "type": "rate_limit_error"}}, ModelUnavailable, 429),
        ({"error": {"message": "no such key", "code": "401"}}, ModelRejected, 401),
        ({"error": {"message": "too big", "code": "context_length_exceeded"}}, ContextTooLong, 400),
        ({"object": "error", "message": "it broke", "code": 500}, ModelUnavailable, 500),
        ([{"error": {"message": "it broke", "status": 503}}], ModelUnavailable, 503),
        ({"choices": [{"error": {"code": 502, "message": "it broke"}, "delta": {}}]}, ModelUnavailable, 502),
    ],
    ids=str,
)
def test_an_error_inside_a_200_is_an_error(
    error: object, kind: type[ModelError], status: int | None, encoding: str
) -> None:
    """S13, and the same errors in a plain JSON answer."""

    async def main() -> None:
        body = sse(error) if encoding == "event" else sse(error)[6:]
        failure = await refused(Raw(body))
        assert isinstance(failure, kind)
        assert failure.status == status

    run(main)


@pytest.mark.parametrize("data", [b'{"message": "Overloaded"}', b"Overloaded", b'"Overloaded"', b"[]"])
def test_an_event_named_error_is_an_error(data: bytes) -> None:
    """S13."""

    async def main() -> None:
        failure = await refused(Raw(delta("so f"), b"event: error\ndata: " + data + b"\n\n", DONE))
        assert isinstance(failure, ModelUnavailable)
        assert failure.partial == "so f"

    run(main)


@pytest.mark.parametrize("error", [None, "", {}, False, []])
def test_an_empty_error_field_is_no_error(error: object) -> None:
    async def main() -> None:
        reply, _ = await asked(stream(choice({"content": "fine"}) | {"error": error}, STOP))
        assert reply.message.text == "fine"

    run(main)


def test_usage_of_a_failed_attempt_is_kept() -> None:
    """U03."""

    async def main() -> None:
        chunk = choice({"content": "a"}) | {"usage": {"prompt_tokens": 30, "completion_tokens": 1}}
        known = await refused(stream(chunk, {"error": {"message": "it broke"}}))
        assert known.usage == Usage(30, 1)
        unknown = await refused(Raw(delta("some words"), Cut()))
        assert unknown.usage is not None
        assert unknown.usage.estimated
        nothing = await refused(Status(503))
        assert nothing.usage is None

    run(main)


def test_a_plain_json_answer_to_a_stream_request_is_read() -> None:
    async def main() -> None:
        body = sse(
            {"choices": [{"message": {"role": "assistant", "content": "whole"}, "finish_reason": "stop"}]}
        )
        for content_type in ("application/json", "text/event-stream", "application/octet-stream"):
            reply, sink = await asked(Raw(b"\n " + body[6:], content_type=content_type))
            assert sink.deltas == ["whole"]
            assert reply.finish == "stop"

    run(main)


def test_events_of_any_content_type_are_read() -> None:
    async def main() -> None:
        for content_type in ("application/json", "text/plain", "text/html"):
            reply, _ = await asked(
                Raw(b"\xef\xbb\xbf", delta("x"), delta(finish="stop"), content_type=content_type)
            )
            assert reply.message.text == "x"

    run(main)


def test_a_web_page_is_an_outage_and_its_text_is_shown() -> None:
    async def main() -> None:
        page = b"<!DOCTYPE html><style>p{}</style><h1>Bad  gateway</h1>"
        failure = await refused(Status(502, page, {"Content-Type": "text/html"}))
        assert isinstance(failure, ModelUnavailable)
        assert "HTTP 502: Bad gateway" in str(failure)
        assert isinstance(await refused(Raw(page, content_type="text/html")), ModelUnavailable)

    run(main)


def test_a_redirect_is_not_followed_with_the_key() -> None:
    async def main() -> None:
        async with FakeProvider() as thief:
            failure = await refused(Status(307, b"", {"Location": f"{thief.url}/chat/completions"}))
            assert isinstance(failure, ModelRejected)
            assert "redirects to" in str(failure)
            assert thief.requests == []

    run(main)


def test_no_error_shows_the_key() -> None:
    async def main() -> None:
        echo = {"error": {"message": f"bad key {KEY}" + "x" * 5000}}
        for reply in (Status(401, echo), stream(echo), Status(500, f"Bearer {KEY}")):
            failure = await refused(reply)
            assert KEY not in str(failure)
            assert "[redacted]" in str(failure)
            assert len(str(failure)) < 2_200
        assert KEY not in repr(Endpoint("http://127.0.0.1/v1", KEY, {"X-Key": KEY}))

    run(main)


def test_a_silent_server_is_given_up() -> None:
    async def main() -> None:
        assert isinstance(await refused(Hang(), first_byte_timeout_s=0.05), ModelUnavailable)
        held = Raw(delta("half"), Until(asyncio.Event()))
        assert isinstance(await refused(held, idle_timeout_s=0.2), ModelInterrupted)

    run(main)


def test_keep_alive_comments_do_not_hold_a_call_for_ever() -> None:
    async def main() -> None:
        pings = [part for _ in range(100) for part in (b": ping\n\n", Pause(0.02))]
        failure = await refused(Raw(*pings), idle_timeout_s=1.0, call_timeout_s=0.2)
        assert isinstance(failure, ModelInterrupted)

    run(main)


def test_calls_after_one_another_share_a_connection() -> None:
    """Every stream is read to its HTTP end, errors too."""

    async def main() -> None:
        async with FakeProvider() as provider, opened(provider.url) as model:
            provider.queue(
                Text("a"), Text("b", chunk=1), Status(429), Raw(delta("c"), delta(finish="stop"), DONE)
            )
            for _ in range(4):
                try:
                    await model.reply(REQUEST, RecordingSink())
                except ModelUnavailable:
                    continue
            assert provider.connections == 1

    run(main)


def test_a_server_that_never_closes_after_done_holds_nobody_up() -> None:
    async def main() -> None:
        reply, _ = await asked(Raw(delta("x"), delta(finish="stop"), DONE, Until(asyncio.Event())))
        assert reply.message.text == "x"

    run(main)


def test_compressed_answers_are_read_and_broken_ones_are_errors() -> None:
    async def main() -> None:
        whole = gzip.compress(delta("zip") + delta(finish="stop") + DONE)
        for body, fine in ((whole, True), (b"not gzip at all", False), (whole[:-12], False)):
            async with Serving(body, {"Content-Encoding": "gzip"}) as url, opened(url) as model:
                try:
                    reply = await model.reply(REQUEST, RecordingSink())
                    assert reply.message.text == "zip"
                except ModelError:
                    assert not fine

    run(main)


def test_endless_answers_are_cut_off() -> None:
    async def main() -> None:
        mouthful = delta("x" * 1_000_000)
        assert isinstance(await refused(Raw(*[mouthful] * 9, delta(finish="stop"))), ModelInterrupted)
        call: dict[str, object] = {"index": 0, "function": {"name": "f", "arguments": "x" * 1_000_000}}
        flood = [delta(tool_calls=[call])] * 9
        assert isinstance(await refused(Raw(*flood, delta(finish="tool_calls"))), ModelInterrupted)
        many: list[dict[str, object]] = [
            {"index": n, "function": {"name": "f", "arguments": "{}"}} for n in range(1000)
        ]
        assert isinstance(await refused(Raw(delta(tool_calls=many), delta(finish="stop"))), ModelInterrupted)

    run(main)


@pytest.mark.parametrize("depth", [500, 800, 900, 950, 980, 100_000])
def test_deep_nesting_is_an_error_and_no_crash(depth: int) -> None:
    async def main() -> None:
        nested = b'{"choices":[{"delta":{"reasoning":' + b"[" * depth + b"]" * depth + b"}}]}"
        failure = await refused(Raw(b"data: " + nested + b"\n\n", DONE))
        assert isinstance(failure, ModelInterrupted)

    run(main)


def test_a_content_filter_is_told_apart_from_an_answer() -> None:
    async def main() -> None:
        reply, _ = await asked(stream(choice({"content": "part"}), choice({}, "content_filter")))
        assert reply.finish == "content_filter"
        assert isinstance(await refused(stream(choice({}, "content_filter"))), ModelRejected)

    run(main)


def test_a_body_of_several_megabytes_is_sent() -> None:
    async def main() -> None:
        request = ModelRequest("", (UserMessage("字" * 1_000_000),))
        reply, _ = await asked(Text("fine"), request=request)
        assert reply.message.text == "fine"

    run(main)


@pytest.mark.parametrize("base_url", ["", "localhost:8000/v1", "ftp://host/v1", "http://", "http://[::1"])
def test_a_base_url_that_is_none_is_a_usage_error(base_url: str) -> None:
    with pytest.raises(UsageError, match="base_url"):
        Endpoint(base_url).url()


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        ("http://h/v1", "http://h/v1/chat/completions"),
        ("http://h/v1/", "http://h/v1/chat/completions"),
        ("http://h/v1/chat/completions", "http://h/v1/chat/completions"),
        ("https://h/openai?api-version=1", "https://h/openai/chat/completions?api-version=1"),
    ],
)
def test_a_base_url_is_completed(base_url: str, url: str) -> None:
    assert str(Endpoint(base_url).url()) == url


class Serving:
    """A server that answers every request with one body."""

    def __init__(self, body: bytes, headers: dict[str, str]) -> None:
        self._body = body
        self._headers = headers

    async def __aenter__(self) -> str:
        async def answer(_request: web.BaseRequest) -> web.Response:
            return web.Response(body=self._body, headers=self._headers)

        self._server = web.Server(answer)
        listener = await asyncio.get_running_loop().create_server(self._server, "127.0.0.1", 0)
        self._listener = listener
        return f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1"

    async def __aexit__(self, *_details: object) -> None:
        self._listener.close()
        await self._server.shutdown(0)
