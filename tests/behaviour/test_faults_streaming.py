"""Faults of classes 03 and 04 through the whole runtime: streams, retries, fallback."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from harness import Seen, ask, follow, settings_for
from wire import DIALECTS, act, messages, outputs, play, spoken

from xclaw.app import App, open_app
from xclaw.contracts.events import AttemptFailed, ModelAnswered, RunEnded, TextDelta, ToolCallStarted
from xclaw.models.settings import ProviderSettings
from xclaw.runtime.runs import RunRequest
from xclaw.testing import FakeProvider
from xclaw.testing.fake_provider import (
    DONE,
    Calls,
    Cut,
    Hang,
    Pause,
    Raw,
    Reply,
    Status,
    Text,
    delta,
    sse,
    usage_chunk,
)

Pair = tuple[App, FakeProvider, FakeProvider]


def with_two(
    home: Path, scenario: Callable[[App, FakeProvider, FakeProvider], Awaitable[None]], **models: object
) -> None:
    """An app whose chain is two providers, A and then B."""

    async def main() -> None:
        async with asyncio.timeout(20), FakeProvider() as first, FakeProvider() as second:
            settings = settings_for(home, "aa:fake", "bb:fake")
            providers = {
                name: ProviderSettings(base_url=provider.url, api_key="sk-test")
                for name, provider in (("aa", first), ("bb", second))
            }
            chosen = replace(settings.models, providers=providers, backoff_s=0.001, retries=0)
            chosen = replace(chosen, **models)  # pyright: ignore[reportArgumentType] - test shorthand
            async with open_app(replace(settings, models=chosen)) as app:
                await scenario(app, first, second)

    asyncio.run(main())


def shown(seen: Seen) -> str:
    """What a watcher ends up with who takes back what is retracted."""
    text = ""
    for entry in seen.entries:
        match entry.event:
            case TextDelta(more):
                text += more
            case AttemptFailed():
                text = ""
            case _:
                pass
    return text


def call_delta(index: int | None, call_id: str | None, name: str | None, arguments: str | None) -> bytes:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    fields: dict[str, object] = {"function": function}
    fields |= {key: value for key, value in (("index", index), ("id", call_id)) if value is not None}
    return delta(tool_calls=[fields])


FIRST_CHUNKS: list[Reply] = [
    Raw(sse({"choices": []}), delta("你好"), delta(finish="stop"), usage_chunk((10, 2)), DONE),
    Raw(sse({"choices": None}), delta("你好"), delta(finish="stop"), usage_chunk((10, 2)), DONE),
    Raw(*(bytes([byte]) for byte in delta("你好") + delta(finish="stop") + usage_chunk((10, 2)) + DONE)),
    Raw(
        b": PROCESSING\n\n",
        b":\n\n",
        delta("你"),
        b": ping\n\n",
        delta("好", finish="stop"),
        usage_chunk((10, 2)),
        DONE,
    ),
    Raw((delta("你") + delta("好", finish="stop") + usage_chunk((10, 2)) + DONE).replace(b"\n", b"\r\n")),
]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("reply", FIRST_CHUNKS)
def test_odd_but_legal_streams_are_one_answer_everywhere(tmp_path: Path, reply: Reply, dialect: str) -> None:
    """S01, S06, S07, S08: the same text in the stream, the journal and the result; usage once."""
    played = play(tmp_path, {"START": [reply]}, dialect=dialect)
    assert played.seen.result.text == played.seen.text == shown(played.seen) == "你好"
    [answered] = played.seen.events(ModelAnswered)
    assert answered.message.text == "你好"
    assert played.seen.result.spend.usage.total_tokens == 12


INTERLEAVED: list[Reply] = [
    Raw(
        call_delta(0, "a", "view_file", '{"pa'),
        call_delta(1, "b", "view_file", '{"path":'),
        call_delta(0, None, None, 'th":"x.txt"}'),
        call_delta(1, None, None, '"y.txt"}'),
        call_delta(1, "b2", None, ""),
        delta(finish="tool_calls"),
    ),
    Raw(
        call_delta(None, "a", "view_file", '{"path":'),
        call_delta(None, None, None, '"x.txt"}'),
        call_delta(None, "b", "view_file", '{"path":"y.txt"}'),
        delta(finish="tool_calls"),
    ),
    Raw(
        call_delta(0, "a", "view_file", '{"path":"x.txt"}'),
        call_delta(None, "b", "view_file", '{"path":"y.txt"}'),
        delta(finish="stop"),
    ),
]


@pytest.mark.parametrize("reply", INTERLEAVED)
def test_fragments_of_calls_are_put_together_by_call(tmp_path: Path, reply: Reply) -> None:
    """S03, S05"""
    write = act(
        "native",
        ("write_file", {"path": "x.txt", "content": "X"}),
        ("write_file", {"path": "y.txt", "content": "Y"}),
    )
    played = play(tmp_path, {"START": [write, reply, Text("ok")]})
    assert outputs(played.asked["START"][2])[2:] == ["X", "Y"]


BROKEN: list[Reply] = [
    Raw(delta("Hello, wor"), Cut()),
    Raw(delta("Hello, wor"), Cut(reset=False)),
    Raw(delta("Hello, wor")),
    Raw(delta("Hello, wor"), DONE),
    Raw(delta("Hello, wor"), sse({"error": {"message": "Overloaded", "code": 529}})),
    Raw(sse({"error": {"message": "Overloaded", "code": 529}})),
    Raw(b"event: error\n" + sse({"error": {"message": "Overloaded"}})),
    Raw(delta("Hello, wor"), delta(finish="error"), DONE),
    Raw(delta("Hello, wor"), b"data: {broken\n\n"),
    Raw(b"\xff\xfe\x00garbage\n\n" * 50),
    Raw(),
    Raw(DONE),
    Status(503),
    Status(500, b"\xff" * 100_000),
    Status(401, {"error": {"message": "bad key sk-test"}}),
    Status(404, {"error": {"message": "no such model"}}),
]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("reply", BROKEN)
def test_a_failed_answer_is_taken_back_and_the_next_model_starts_afresh(
    tmp_path: Path, reply: Reply, dialect: str
) -> None:
    """S11, S13, S14, V04, V06: nothing is spliced, nothing is prefilled, one end."""

    async def scenario(app: App, first: FakeProvider, second: FakeProvider) -> None:
        first.queue(reply)
        second.queue(Text("Hello, world!", chunk=3))
        seen = await follow(await app.runs.start(RunRequest("START", "s", dialect=dialect)))
        assert (seen.result.outcome, seen.result.text) == ("success", "Hello, world!")
        assert shown(seen) == "Hello, world!"
        assert [m["role"] for m in messages(second.requests[0].body)][-1] == "user"
        assert "Hello, wor" not in spoken(second.requests[0].body)
        [failed] = seen.events(AttemptFailed)
        assert (failed.model, failed.next_model) == ("aa:fake", "bb:fake")
        assert "sk-test" not in failed.error
        assert len(failed.error) < 5_000
        assert len(seen.events(RunEnded)) == 1
        assert len(first.requests) == 1
        second.queue(Text("again"))
        first.queue(Text("again"))
        again = await ask(app, "and?")
        assert again.result.text == "again"
        stored = "\n".join(spoken(r.body) for r in [*first.requests[1:], *second.requests[1:]])
        assert stored.count("Hello, wor") == 1

    with_two(tmp_path, scenario)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_broken_stream_of_the_only_model_is_tried_again(tmp_path: Path, dialect: str) -> None:
    """V08"""
    played = play(tmp_path, {"START": [Raw(delta("par"), Cut()), Text("partial done")]}, dialect=dialect)
    assert (played.seen.result.text, shown(played.seen)) == ("partial done", "partial done")
    assert len(played.asked["START"]) == 2


@pytest.mark.parametrize("dialect", DIALECTS)
def test_calls_of_an_answer_that_broke_off_are_never_run(tmp_path: Path, dialect: str) -> None:
    """S11, S14: also when every call in it is complete."""
    call: dict[str, object] = {
        "index": 0,
        "id": "a",
        "function": {"name": "write_file", "arguments": '{"path":"a","content":"x"}'},
    }
    broken = (
        Raw(delta(tool_calls=[call]), Cut())
        if dialect == "native"
        else Raw(delta('{"action":"write_file","path":"a","content":"x"}'), Cut())
    )
    played = play(tmp_path, {"START": [broken, Text("ok")]}, dialect=dialect)
    assert played.seen.result.text == "ok"
    assert played.seen.events(ToolCallStarted) == []
    assert shown(played.seen) == "ok"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_call_cut_off_at_the_output_limit_is_never_run_and_not_asked_for_ever(
    tmp_path: Path, dialect: str
) -> None:
    """S16"""
    half = '{"path":"a.txt","content":"aaaa'
    reply = (
        Calls(("c", "deliver", half), finish="length")
        if dialect == "native"
        else Text('{"action":"deliver",' + half[1:], finish="length")
    )
    played = play(tmp_path, {"START": [reply]}, dialect=dialect)
    assert len(played.asked["START"]) <= 4
    assert played.seen.result.outcome in ("stuck", "exhausted", "error")
    assert "output limit" in spoken(played.asked["START"][1])
    assert played.seen.events(ToolCallStarted) == []
    assert "aaaa" not in shown(played.seen)
    assert "aaaa" not in played.seen.result.text


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_complete_call_whose_answer_was_cut_off_is_not_run_either(tmp_path: Path, dialect: str) -> None:
    """S16: what came after it is missing."""
    arguments = '{"path":"a.txt","content":"a"}'
    reply = (
        Calls(("c", "deliver", arguments), finish="length")
        if dialect == "native"
        else Text('{"action":"deliver",' + arguments[1:], finish="length")
    )
    played = play(tmp_path, {"START": [reply, Text("ok")]}, dialect=dialect)
    assert played.seen.result.text == "ok"
    assert not list(tmp_path.rglob("a.txt"))


@pytest.mark.parametrize(
    ("value", "least", "most"), [("0.2", 0.2, 1.0), ("soon", 0, 0.5), ("-5", 0, 0.5), ("999999", 0.3, 1.0)]
)
def test_what_a_provider_asks_for_is_waited_and_no_longer_than_the_cap(
    tmp_path: Path, value: str, least: float, most: float
) -> None:
    """V01, V02"""

    async def scenario(app: App, first: FakeProvider, second: FakeProvider) -> None:
        first.queue(Status(429, headers={"retry-after": value}), Text("ok"))
        seen = await ask(app, "START")
        assert seen.result.text == "ok"
        waited = first.requests[1].at - (first.requests[0].ended_at or 0)
        assert least <= waited < most
        assert second.requests == []

    with_two(tmp_path, scenario, retries=1, max_retry_wait_s=0.3)


def test_a_wait_never_goes_past_the_deadline_of_the_run(tmp_path: Path) -> None:
    """V02, C09: an absurd Retry-After of the only model ends the worker at once, with the reason."""
    busy = Status(429, {"error": {"message": "quota for key X"}}, headers={"Retry-After": "50"})
    roles: dict[str, list[Reply]] = {
        "TASK": [busy],
        "START": [
            act("native", ("delegate", {"agent": "coder", "task": "TASK: say hello"})),
            Text("it is busy"),
        ],
    }
    began = time.monotonic()
    played = play(tmp_path, roles, worker_timeout_s=5.0)
    assert time.monotonic() - began < 3
    told = outputs(played.asked["START"][1])[0]
    assert "quota for key X" in told
    assert "429" in told


def test_every_refusal_of_a_request_leaves_the_model_in_service(tmp_path: Path) -> None:
    """V04: client errors open no breaker."""

    async def scenario(app: App, first: FakeProvider, second: FakeProvider) -> None:
        for code in (400, 401, 403, 404, 422) * 3:
            first.queue(Status(code, {"error": {"message": "no"}}))
            second.queue(Text("ok"))
            assert (await ask(app, "START", f"s{code}")).result.text == "ok"
        assert len(first.requests) == 15

    with_two(tmp_path, scenario)


HOSTILE: list[tuple[Reply, str]] = [
    (Raw(*([delta("x" * 1_000)] * 9_000)), "longer than"),
    (Raw(delta("x" * 9_000_000), delta(finish="stop")), "longer than"),
    (Raw(b"data: " + b"x" * 20_000_000), "more than"),
    (Raw(sse({"choices": [{"delta": {"content": [[["deep"]]]}, "finish_reason": "stop"}]})), "empty"),
    (Raw(b"data: " + b"[" * 200_000 + b"\n\n"), "JSON"),
    (Raw(b"data: " + b'{"choices":' * 50_000 + b"\n\n"), "JSON"),
    (Raw(sse({"choices": [{"delta": 5, "finish_reason": {"a": 1}}]})), "before it began"),
    (
        Raw(sse({"choices": [{"delta": {"tool_calls": [{"index": -1e300, "id": 5, "function": 0}]}}]})),
        "finish",
    ),
    (Calls(*((f"c{n}", "list_dir", "{}") for n in range(500))), "128 tool calls"),
    (Raw(b"<html>" * 100_000, content_type="text/html"), "fake"),
    (Status(302, headers={"location": "http://127.0.0.1:1/"}), "302"),
]


@pytest.mark.parametrize(("reply", "reason"), HOSTILE)
def test_a_hostile_provider_ends_in_one_bounded_error(tmp_path: Path, reply: Reply, reason: str) -> None:
    """S02, S11 and their kind: huge, deep, endless or absurd."""
    began = time.monotonic()
    played = play(tmp_path, {"START": [reply]})
    assert played.seen.result.outcome == "error"
    assert reason in played.seen.result.reason
    assert len(played.seen.result.reason) < 5_000
    assert shown(played.seen) == ""
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("piece", ["\n", " ", "{", '{"action": "x", ', "x ", "```\n", "字", "\x1b[2J\x00"])
def test_a_stream_of_a_million_tiny_pieces_is_read_in_time(tmp_path: Path, dialect: str, piece: str) -> None:
    """S06's kind: time linear in the length, while others are served."""
    pieces = delta(piece) * 20_000
    reply = Raw(
        delta("{" if piece == "x " else piece), *([pieces] * 5), delta(finish="stop"), usage_chunk((1, 1))
    )
    began = time.monotonic()
    played = play(tmp_path, {"START": [reply, Text("ok")]}, dialect=dialect)
    assert time.monotonic() - began < 6
    assert played.seen.result.outcome in ("success", "error")


@pytest.mark.parametrize("text", ["a\x00b", "\x1b[2J", "\ufeffhi", "a\u2028b", "a\rb", "\u202etxt", "🌍" * 3])
def test_control_characters_travel_unchanged_and_break_nothing(tmp_path: Path, text: str) -> None:
    """S06: in the answer, in a file name, in a task, in a result."""
    calls = act(
        "native",
        ("write_file", {"path": text, "content": text}),
        ("delegate", {"agent": "coder", "task": f"TASK: say {text}"}),
    )
    form = json.dumps({"status": "success", "summary_data": {text: text}, "artifact_pointers": {}})
    played = play(tmp_path, {"TASK": [Text(form)], "START": [calls, Text(text)]})
    assert (played.seen.result.outcome, played.seen.result.text) == ("success", text)
    assert len(outputs(played.asked["START"][1])) == 2


def test_a_silent_provider_is_left_for_the_next_one(tmp_path: Path) -> None:
    """C09: no answer at all, and an answer that stops in the middle."""

    async def scenario(app: App, first: FakeProvider, second: FakeProvider) -> None:
        for number, reply in enumerate([Hang(), Raw(delta("Hel"), Pause(30))]):
            first.queue(reply)
            second.queue(Text("Hello"))
            seen = await ask(app, "START", f"s{number}")
            assert (seen.result.text, shown(seen)) == ("Hello", "Hello")
            async with asyncio.timeout(1):
                await first.requests[number].closed.wait()

    with_two(tmp_path, scenario, first_byte_timeout_s=0.2, idle_timeout_s=0.2)
