"""Streams of chat completions over a real socket."""

import asyncio
import json
from pathlib import Path

import pytest

from gateway.openai_scene import USER, Events, Scene, at_the_wire, deltas, joined
from xclaw.testing.fake_replies import Calls, Cut, Raw, Status, Text, Until, delta

LONG = "This is a rather long answer, sentence after sentence. " * 12


@pytest.mark.parametrize("with_usage", [True, False])
def test_a_stream_has_the_shape_that_clients_expect(tmp_path: Path, with_usage: bool) -> None:
    """O04."""

    async def body(scene: Scene) -> None:
        scene.provider.queue(Calls(("c", "list_dir", "{}"), text="Let me look."), Text(LONG, chunk=9))
        options = {"stream_options": {"include_usage": True}} if with_usage else {}
        events = await scene.chat_stream(**options)
        assert events[-1] == "[DONE]"
        chunks = [json.loads(data) for data in events[:-1]]
        for chunk in chunks:
            assert {"id", "object", "created", "model", "choices"} <= set(chunk)
            assert (chunk["object"], chunk["model"]) == ("chat.completion.chunk", "xclaw/coder")
        assert len({(chunk["id"], chunk["created"]) for chunk in chunks}) == 1
        assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
        finishes = [choice["finish_reason"] for chunk in chunks for choice in chunk["choices"]]
        assert [reason for reason in finishes if reason] == ["stop"]
        empty = [chunk for chunk in chunks if chunk["choices"] == []]
        assert empty == (chunks[-1:] if with_usage else [])
        assert ([chunk["usage"]["total_tokens"] for chunk in empty] == [24]) == with_usage
        assert joined(events) == LONG
        assert joined(events, "reasoning_content") == "Let me look.\n[coder] list_dir\n"
        assert sum("content" in each for each in deltas(events)) > 1

    at_the_wire(tmp_path, body)


def test_a_streamed_answer_is_the_one_that_is_not(tmp_path: Path) -> None:
    """O04."""

    async def body(scene: Scene) -> None:
        for text in ("short", LONG, "  with space\n\n", "字" * 500):
            replies = (Calls(("c", "list_dir", "{}"), text="Hm."), Text(text, chunk=5))
            scene.provider.queue(*replies, *replies)
            got = await scene.chat()
            events = await scene.chat_stream()
            assert joined(events) == got.text == text
            told = got.json["choices"][0]["message"]["reasoning_content"]
            assert joined(events, "reasoning_content") == f"{told}\n"

    at_the_wire(tmp_path, body)


def test_text_reaches_the_client_while_the_model_still_writes(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        goes_on = asyncio.Event()
        scene.provider.queue(
            Raw(delta(LONG), Until(goes_on), delta("End."), delta(finish="stop"), b"data: [DONE]\n\n")
        )
        sent = {"model": "xclaw/coder", "messages": USER, "stream": True}
        async with scene.request("POST", "/chat/completions", sent) as response:
            seen: list[str] = []
            async for data in Events(response).read():
                seen.append(data)
                if joined(seen) == LONG:
                    goes_on.set()
        assert joined(seen) == LONG + "End."

    at_the_wire(tmp_path, body, within_s=10)


def test_a_silent_model_is_covered_by_comments_from_the_first_moment(tmp_path: Path) -> None:
    """O04."""

    async def body(scene: Scene) -> None:
        goes_on = asyncio.Event()
        answer = (delta("Hello"), delta(finish="stop"), b"data: [DONE]\n\n")
        scene.provider.queue(Raw(Until(goes_on), *answer))
        sent = {"model": "xclaw/coder", "messages": USER, "stream": True}
        async with scene.request("POST", "/chat/completions", sent) as response:
            events = Events(response)
            reading = events.read()
            first = json.loads(await anext(reading))
            assert first["choices"][0]["delta"]["role"] == "assistant"
            goes_on.set()
            rest = [data async for data in reading]
        assert rest[-1] == "[DONE]"
        assert joined(rest) == "Hello"
        assert ": keep-alive" in events.comments

    at_the_wire(tmp_path, body, keepalive_s=0.05)


@pytest.mark.parametrize("stream", [False, True])
def test_a_run_that_fails_before_it_said_anything_is_an_http_error(tmp_path: Path, stream: bool) -> None:
    async def body(scene: Scene) -> None:
        scene.provider.queue(Status(400))
        got = await scene.chat(stream=stream)
        assert got.error == (502, "run_failed")
        assert got.json["error"]["type"] == "server_error"
        assert got.headers["x-should-retry"] == "false"
        assert str(tmp_path) not in got.body.decode()

    at_the_wire(tmp_path, body)


def test_a_run_that_fails_later_ends_the_stream_with_an_error(tmp_path: Path) -> None:
    """O04: as an event, not as text, and without [DONE]."""

    async def body(scene: Scene) -> None:
        scene.provider.queue(Calls(("c", "list_dir", "{}")), Status(400))
        events = await scene.chat_stream()
        error = json.loads(events[-1])["error"]
        assert (error["code"], error["type"]) == ("run_failed", "server_error")
        assert joined(events) == ""
        assert "[DONE]" not in events

    at_the_wire(tmp_path, body)


@pytest.mark.parametrize("again", ["another answer altogether", LONG])
def test_what_a_failed_model_said_is_never_followed_by_something_else(tmp_path: Path, again: str) -> None:
    """S14."""

    async def body(scene: Scene) -> None:
        cut = Raw(delta(LONG[:500]), Cut(reset=False))
        scene.provider.queue(cut, Text(again), cut, Text(again))
        events = await scene.chat_stream()
        if again == LONG:
            assert joined(events) == LONG
            assert events[-1] == "[DONE]"
        else:
            assert joined(events) == LONG[:500]
            assert json.loads(events[-1])["error"]["code"] == "text_retracted"
        assert (await scene.chat()).text == again

    at_the_wire(tmp_path, body)


def test_progress_can_be_switched_off(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        scene.provider.answer_with(lambda body: Text("ok") if body["messages"][-2]["role"] == "tool" else Calls(("c", "list_dir", "{}")))  # type: ignore[index]  # fmt: skip
        assert "reasoning_content" in (await scene.chat()).json["choices"][0]["message"]
        by_field = await scene.chat(xclaw={"progress": False})
        sent = {"model": "xclaw/coder", "messages": USER}
        by_header = await scene.call("POST", "/chat/completions", sent, X_Xclaw_Progress="off")
        for got in (by_field, by_header):
            assert "reasoning_content" not in got.json["choices"][0]["message"]

    at_the_wire(tmp_path, body)


def test_the_work_of_others_is_told_in_lines_and_never_in_the_answer(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        task = json.dumps(
            {"agent": "coder", "task": "TASK: look into the workspace and say how many files it has"}
        )
        result = '{"status":"success","summary_data":{"n":0},"artifact_pointers":{}}'
        replies = (
            Calls(("c", "delegate", task)),
            Calls(("d", "list_dir", "{}"), text=LONG),
            Text(result),
            Text("None."),
        )
        scene.provider.queue(*replies)
        events = await scene.chat_stream(model="xclaw/orchestrator")
        assert joined(events) == "None."
        lines = joined(events, "reasoning_content").splitlines()
        assert lines == ["[orchestrator] delegate", "[coder] working...", "[coder] list_dir", "[coder] done"]

    at_the_wire(tmp_path, body)
