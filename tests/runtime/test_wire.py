"""The line between the runtime and a worker: what goes in comes out, and what is no line is refused."""

import pytest

from xclaw.contracts.errors import (
    AllModelsFailed,
    ContextTooLong,
    Fenced,
    LimitReached,
    ModelUnavailable,
    NoModel,
    SpawnRefused,
    UsageError,
)
from xclaw.contracts.events import Address, Entry, MessageAdded
from xclaw.contracts.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from xclaw.contracts.models import ModelRequest, ToolSpec
from xclaw.contracts.usage import Usage
from xclaw.runtime.wire import (
    Answered,
    Append,
    Ask,
    WireChain,
    WireEntry,
    WireError,
    WireRequest,
    chain_of,
    decode_down,
    decode_up,
    encode,
)
from xclaw.testing.sample_events import sample_events


def test_every_event_comes_out_as_it_went_in() -> None:
    for event in sample_events():
        entry = Entry(Address("r", "root", "p", "s"), 3, 1.5, event, 7)
        said = decode_up(encode(Append(number=1, entries=(WireEntry.of(entry),))))
        assert isinstance(said, Append)
        assert said.entries[0].entry() == entry


def test_a_lone_surrogate_is_mended_and_breaks_no_line() -> None:
    entry = Entry(Address("r", "r", "", "s"), 1, 0.0, MessageAdded("a\ud800b", "agent"))
    line = encode(Append(number=1, entries=(WireEntry.of(entry),)))
    assert b"\n" not in line
    said = decode_up(line)
    assert isinstance(said, Append)
    assert said.entries[0].entry().event == MessageAdded("a\ufffdb", "agent")


def test_a_request_comes_out_with_its_whole_conversation() -> None:
    messages = [
        UserMessage("hi", "agent"),
        AssistantMessage("calling", (ToolCall("1", "t", "{}"),), "because"),
        ToolMessage("1", "t", "done", ok=False),
    ]
    tools = (ToolSpec("t", "a tool", {"type": "object"}, "acts"),)
    request = ModelRequest("be good", messages, tools, {"type": "object"}, 100, 0.5)
    said = decode_up(encode(Ask(id=1, run="r", request=WireRequest.of(request))))
    assert isinstance(said, Ask)
    assert said.request.conversation() == messages
    assert said.request.tools == tools
    assert (said.request.output_schema, said.request.max_output_tokens) == ({"type": "object"}, 100)


@pytest.mark.parametrize(
    "error",
    [
        LimitReached("usd", "no money"),
        ModelUnavailable("busy", status=429, usage=Usage(1, 2), partial="x", retry_after_s=2.0),
        ContextTooLong("too long", status=400),
        AllModelsFailed("all", (ModelUnavailable("one", status=503), ContextTooLong("two"))),
        SpawnRefused("no"),
        NoModel("none"),
        Fenced("another"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_cross_as_themselves(error: Exception) -> None:
    said = decode_down(encode(Answered(id=1, error=WireError.of(error))))
    assert isinstance(said, Answered)
    assert said.error is not None
    crossed = said.error.error()
    assert type(crossed) is type(error)
    assert str(crossed) == str(error)
    for name in ("limit", "status", "usage", "partial", "retry_after_s"):
        assert getattr(crossed, name, None) == getattr(error, name, None)
    if isinstance(error, AllModelsFailed):
        assert isinstance(crossed, AllModelsFailed)
        assert [type(failure) for failure in crossed.failures] == [ModelUnavailable, ContextTooLong]


def test_an_unknown_error_is_a_model_s_that_says_what_it_was() -> None:
    assert str(WireError.of(RuntimeError("out of luck")).error()) == "RuntimeError: out of luck"


@pytest.mark.parametrize(
    "line", [b"", b"x", b"[]", b'{"type": "root"}', b'{"type": "ask"}', b'{"type": "past"}']
)
def test_what_is_no_line_of_a_worker_s_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError):
        decode_up(line)


def test_a_chain_that_is_not_known_is_a_usage_error() -> None:
    known = {("a:b",): WireChain(("a:b",), error=WireError.of(NoModel("no key")))}
    with pytest.raises(UsageError, match="not known"):
        chain_of(["x:y"], known)
    with pytest.raises(NoModel, match="no key"):
        chain_of(["a:b"], known)
