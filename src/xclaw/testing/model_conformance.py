"""What any `Model` of the chat-completions wire must do, checked against a `FakeProvider`.

    @pytest.mark.parametrize("check", MODEL_CHECKS, ids=check_name)
    def test_the_adapter_conforms(check: ModelCheck) -> None:
        async def main() -> None:
            async with FakeProvider() as provider:
                await check(my_factory, provider)

        asyncio.run(main())

The factory gets the provider's URL and opens one model: native tools, streaming, no retries of its
own (a chain retries). Each check fails with an `AssertionError` that says what was expected.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

from xclaw.contracts.errors import (
    ContextTooLong,
    ModelError,
    ModelInterrupted,
    ModelRejected,
    ModelUnavailable,
)
from xclaw.contracts.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from xclaw.contracts.models import Finish, Model, ModelReply, ModelRequest, ToolSpec
from xclaw.contracts.usage import Usage
from xclaw.testing.fake_provider import FakeProvider
from xclaw.testing.fake_replies import (
    DONE,
    Calls,
    Cut,
    Hang,
    Raw,
    Reply,
    Status,
    Text,
    Until,
    delta,
    sse,
    usage_chunk,
)
from xclaw.testing.recording_sink import RecordingSink
from xclaw.testing.wire_reading import last_user_text, wire_messages

ModelFactory = Callable[[str], AbstractAsyncContextManager[Model]]
"""Opens a model on a base URL (".../v1"); leaving the context closes what it holds."""
ModelCheck = Callable[[ModelFactory, FakeProvider], Awaitable[None]]

WAIT_S = 5.0
"""Whatever a check waits for comes within this many seconds."""
CLOSE_S = 1.0
"""A cancelled call's connection is closed within this many seconds."""

_TOOLS = (ToolSpec("look", "Looks.", {"type": "object", "properties": {"at": {"type": "string"}}}),)


async def check_text_is_streamed(factory: ModelFactory, provider: FakeProvider) -> None:
    """Deltas reach the sink as they come, in order, and together are the message's text."""
    seen = asyncio.Event()
    provider.queue(
        Raw(delta("Hello "), Until(seen), delta("wörld, "), delta("你好"), delta(finish="stop"), DONE)
    )
    sink = RecordingSink(on_first_text=seen.set)
    reply = await _ask(factory, provider, "hi", sink)
    assert sink.deltas[0] == "Hello ", f"the first delta was not handed on by itself: {sink.deltas}"
    assert sink.text == reply.message.text == "Hello wörld, 你好", f"streamed {sink.text!r}, {reply.message=}"
    assert reply.message.tool_calls == ()


async def check_any_cut_of_the_bytes_reads_the_same(factory: ModelFactory, provider: FakeProvider) -> None:
    """Characters, lines and events may be cut anywhere; CRLF and comments are framing (S06, S07, S08)."""
    stream = (
        b": keep-alive\n\n"
        + delta("né你🙂")
        + delta("!").replace(b"\n", b"\r\n")
        + delta(finish="stop")
        + usage_chunk((5, 3))
        + DONE
    )
    provider.queue(Raw(*(stream[at : at + 1] for at in range(len(stream)))))
    sink = RecordingSink()
    reply = await _ask(factory, provider, "hi", sink)
    assert sink.text == reply.message.text == "né你🙂!", f"streamed {sink.text!r}, {reply.message=}"


async def check_cancelling_closes_the_connection(factory: ModelFactory, provider: FakeProvider) -> None:
    """Before the first byte and in the middle of the answer; the connection ends within a second."""
    started = asyncio.Event()
    endless = Raw(delta("begun"), Until(asyncio.Event()))
    for number, held in enumerate((Hang(), endless)):
        provider.queue(held)
        async with factory(provider.url) as model:
            call = asyncio.create_task(model.reply(_request("hi"), RecordingSink(started.set)))
            async with asyncio.timeout(WAIT_S):
                request = (await provider.wait_requests(number + 1))[number]
                if held is endless:
                    await started.wait()
            call.cancel()
            try:
                async with asyncio.timeout(CLOSE_S):
                    await request.closed.wait()
            except TimeoutError:
                raise AssertionError(f"the connection was still open {CLOSE_S} s after the cancel") from None
            try:
                await call
            except asyncio.CancelledError:
                continue
            raise AssertionError("a cancelled reply() returned instead of raising CancelledError")


async def check_a_truncated_stream_is_no_answer(factory: ModelFactory, provider: FakeProvider) -> None:
    """A missing finish reason, a dropped connection or nothing at all: `ModelInterrupted`, with the
    text that had been streamed (S02, S11)."""
    said = delta("half an ans")
    got = asyncio.Event()
    for name, broken in {
        "connection reset": Raw(said, Until(got), Cut()),
        "connection closed": Raw(said, Cut(reset=False)),
        "no finish reason": Raw(said),
        "[DONE] without a finish reason": Raw(said, DONE),
        "half a line": Raw(said, delta("wer")[:30]),
    }.items():
        provider.queue(broken)
        error = await _failure(factory, provider, name, RecordingSink(got.set))
        assert isinstance(error, ModelInterrupted), f"{name}: {error!r} is no ModelInterrupted"
        assert error.partial == "half an ans", f"{name}: {error.partial=}"
    provider.queue(Raw(), Raw(DONE))
    for name in ("an empty body", "only [DONE]"):
        error = await _failure(factory, provider, name)
        assert isinstance(error, ModelInterrupted), f"{name}: {error!r} is no ModelInterrupted"


async def check_errors_say_what_to_do_next(factory: ModelFactory, provider: FakeProvider) -> None:
    """HTTP statuses map to the classes of `contracts.errors`, with status and Retry-After (V01, V04)."""
    too_long: dict[str, object] = {
        "error": {
            "message": "This model's maximum context length is 100 tokens. You sent 200 tokens.",
            "code": "context_length_exceeded",
        }
    }
    cases: list[tuple[Status, type[ModelError]]] = [
        *((Status(code), ModelRejected) for code in (400, 401, 403, 404)),
        *((Status(code), ModelUnavailable) for code in (429, 500, 502, 503, 529)),
        (Status(502, b"<html>Bad gateway</html>", {"Content-Type": "text/html"}), ModelUnavailable),
        (Status(400, too_long), ContextTooLong),
    ]
    for status, kind in cases:
        provider.queue(status)
        error = await _failure(factory, provider, f"status {status.code}")
        assert isinstance(error, kind), f"{status}: {error!r} is no {kind.__name__}"
        assert error.status == status.code, f"{status}: {error.status=}"
    provider.queue(Status(429, headers={"Retry-After": "7"}))
    error = await _failure(factory, provider, "Retry-After")
    assert isinstance(error, ModelUnavailable), f"429: {error!r} is no ModelUnavailable"
    assert error.retry_after_s == 7.0, f"Retry-After 7 became {error.retry_after_s=}"


async def check_an_error_inside_a_stream_is_an_error(factory: ModelFactory, provider: FakeProvider) -> None:
    """An error object in a 200 stream is no answer, whatever comes after it (S13)."""
    oops = sse({"error": {"message": "overloaded", "code": 503}})
    provider.queue(Raw(delta("so f"), oops, DONE), Raw(oops))
    for partial in ("so f", ""):
        error = await _failure(factory, provider, "an error in the stream")
        assert isinstance(error, ModelUnavailable | ModelInterrupted), f"{error!r}"
        assert error.partial == partial, f"{error.partial=}"


async def check_an_unreachable_provider_is_unavailable(factory: ModelFactory, provider: FakeProvider) -> None:
    """Nobody listens: `ModelUnavailable`."""
    async with FakeProvider() as gone:
        url = gone.url
    async with factory(url) as model:
        error = await _error_of(model, "hi", RecordingSink())
    assert isinstance(error, ModelUnavailable), f"{error!r} is no ModelUnavailable"


async def check_usage_is_reported_or_estimated(factory: ModelFactory, provider: FakeProvider) -> None:
    """The provider's numbers as they are (S01); without them an estimate that says so."""
    provider.queue(Text("counted", usage=(11, 4)), Text("not counted", usage=None))
    counted = await _ask(factory, provider, "hi")
    assert counted.usage == Usage(11, 4), f"{counted.usage=}"
    guessed = await _ask(factory, provider, "hi")
    assert guessed.usage.estimated, f"{guessed.usage=}"
    assert guessed.usage.input_tokens > 0, f"{guessed.usage=}"
    assert guessed.usage.output_tokens > 0, f"{guessed.usage=}"


async def check_finish_is_told(factory: ModelFactory, provider: FakeProvider) -> None:
    """ "stop", "length" and "content_filter" come through (S16)."""
    finishes: tuple[Finish, ...] = ("stop", "length", "content_filter")
    for finish in finishes:
        provider.queue(Text("some", finish=finish))
        reply = await _ask(factory, provider, "hi")
        assert reply.finish == finish, f"{finish} became {reply.finish}"


async def check_tool_calls_keep_their_order(factory: ModelFactory, provider: FakeProvider) -> None:
    """Several calls of one message, whole and in order, beside text; deltas may be mixed (S03)."""
    wanted = [("look", '{"at": "ä"}'), ("look", '{"at": "b"}'), ("look", "{}")]
    provider.queue(
        Calls(*((f"id{n}", name, arguments) for n, (name, arguments) in enumerate(wanted)), text="Looking."),
        _mixed(wanted),
    )
    for kind in ("one after another", "mixed"):
        reply = await _ask(factory, provider, "hi")
        got = [(call.name, call.arguments) for call in reply.message.tool_calls]
        assert got == wanted, f"deltas {kind}: {got}"
        assert reply.finish == "tool_calls", f"deltas {kind}: {reply.finish=}"


async def check_concurrent_replies_do_not_mix(factory: ModelFactory, provider: FakeProvider) -> None:
    """Twenty at once on one model: every caller gets its own answer, and so does its sink."""

    def echo(body: dict[str, object]) -> Reply:
        return Text(last_user_text(wire_messages(body.get("messages"))), chunk=1)

    provider.answer_with(echo)
    async with factory(provider.url) as model:

        async def ask(text: str) -> None:
            sink = RecordingSink()
            reply = await model.reply(_request(text), sink)
            assert sink.text == reply.message.text == text, f"asked {text!r}: {sink.text!r}, {reply.message=}"

        async with asyncio.timeout(WAIT_S), asyncio.TaskGroup() as group:
            for number in range(20):
                group.create_task(ask(f"answer number {number}"))


async def check_the_conversation_is_sent(factory: ModelFactory, provider: FakeProvider) -> None:
    """Instructions, messages in order, each tool result after its call, and the tools."""
    provider.queue(Text("fine"))
    conversation = (
        UserMessage("first question"),
        AssistantMessage("I look.", (ToolCall("c1", "look", '{"at": "x"}'),)),
        ToolMessage("c1", "look", "seen: x"),
        UserMessage("second question"),
    )
    async with asyncio.timeout(WAIT_S), factory(provider.url) as model:
        await model.reply(ModelRequest("Be brief.", conversation, _TOOLS), RecordingSink())
    body = provider.requests[-1].body
    sent = [(message.role, message.text) for message in wire_messages(body.get("messages"))]
    assert sent == [
        ("system", "Be brief."),
        ("user", "first question"),
        ("assistant", "I look."),
        ("tool", "seen: x"),
        ("user", "second question"),
    ], f"{sent}"
    assert body.get("stream") is True, "the request does not ask for a stream"
    assert "look" in str(body.get("tools")), "the tools were not sent"


def check_name(check: Callable[..., object]) -> str:
    """For the ids of a parametrized test."""
    return check.__name__.removeprefix("check_")


MODEL_CHECKS: tuple[ModelCheck, ...] = (
    check_text_is_streamed,
    check_any_cut_of_the_bytes_reads_the_same,
    check_cancelling_closes_the_connection,
    check_a_truncated_stream_is_no_answer,
    check_errors_say_what_to_do_next,
    check_an_error_inside_a_stream_is_an_error,
    check_an_unreachable_provider_is_unavailable,
    check_usage_is_reported_or_estimated,
    check_finish_is_told,
    check_tool_calls_keep_their_order,
    check_concurrent_replies_do_not_mix,
    check_the_conversation_is_sent,
)


def _request(text: str) -> ModelRequest:
    return ModelRequest("You are a test.", (UserMessage(text),), _TOOLS)


async def _ask(
    factory: ModelFactory, provider: FakeProvider, text: str, sink: RecordingSink | None = None
) -> ModelReply:
    async with asyncio.timeout(WAIT_S), factory(provider.url) as model:
        return await model.reply(_request(text), sink or RecordingSink())


async def _failure(
    factory: ModelFactory, provider: FakeProvider, name: str, sink: RecordingSink | None = None
) -> ModelError:
    async with factory(provider.url) as model:
        return await _error_of(model, name, sink or RecordingSink())


async def _error_of(model: Model, name: str, sink: RecordingSink) -> ModelError:
    try:
        async with asyncio.timeout(WAIT_S):
            reply = await model.reply(_request(name), sink)
    except ModelError as error:
        return error
    raise AssertionError(f"{name}: no ModelError but {reply.message}")


def _mixed(calls: list[tuple[str, str]]) -> Raw:
    """All heads first, then every call's arguments one character at a time, by turns."""
    heads = [
        delta(tool_calls=[{"index": n, "id": f"id{n}", "type": "function", "function": {"name": name}}])
        for n, (name, _) in enumerate(calls)
    ]
    longest = max(len(arguments) for _, arguments in calls)
    pieces = [
        delta(tool_calls=[{"index": n, "function": {"arguments": arguments[at]}}])
        for at in range(longest)
        for n, (_, arguments) in enumerate(calls)
        if at < len(arguments)
    ]
    return Raw(*heads, *pieces, delta(finish="tool_calls"), DONE)
