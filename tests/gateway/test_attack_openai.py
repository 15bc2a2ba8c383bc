"""Requests of the OpenAI wire that were written to hold the gateway up for everybody else."""

import json
import time
from typing import Any

import pytest

from gateway.test_openai_conversation import NoAgents
from xclaw.gateway.protocols.openai.chat_reading import read_chat
from xclaw.gateway.protocols.openai.conversation import ConversationReader, WrittenCall
from xclaw.gateway.protocols.openai.responses_reading import read_responses

Json = dict[str, Any]
USER: list[Json] = [{"role": "user", "content": "hi"}]
MANY = 18_000
"""So many fit into a request of a megabyte."""
SOON_S = 10.0
"""Reading them took from seconds to minutes when it took the square of their number."""


def call(call_id: str) -> Json:
    return {"id": call_id, "function": {"name": "x"}}


def result(call_id: str) -> Json:
    return {"role": "tool", "tool_call_id": call_id, "content": ""}


PIECES = [{"role": "assistant", "content": "a"}] * MANY
CALLS = [call(str(n)) for n in range(MANY)]


@pytest.mark.parametrize(
    "messages",
    [
        [*USER, {"role": "assistant", "tool_calls": [call("same")] * MANY}, *USER],
        [*USER, {"role": "assistant", "tool_calls": [call("")] * MANY}, *USER],
        [*USER, {"role": "assistant", "tool_calls": CALLS}, *[result(str(n)) for n in reversed(range(MANY))]],
        [*USER, *[{"role": "assistant", "tool_calls": [each]} for each in CALLS], *USER],
        [*USER * MANY, {"role": "assistant", "tool_calls": [call("c")]}, *PIECES, *USER],
    ],
    ids=["one id", "no id", "results reversed", "calls in pieces", "texts in pieces"],
)
def test_a_conversation_takes_no_longer_to_read_than_it_is_long(messages: list[Json]) -> None:
    body = json.dumps({"model": "xclaw", "messages": messages}).encode()
    begun = time.monotonic()
    ask = read_chat(body, NoAgents(), with_progress=True)
    assert time.monotonic() - begun < SOON_S
    assert ask.history


def test_calls_that_are_items_take_no_longer_to_read_than_there_are() -> None:
    items = [{"type": "function_call", "call_id": str(n), "name": "x"} for n in range(MANY)]
    body = json.dumps({"model": "xclaw", "input": [*USER, *items, *USER]}).encode()
    begun = time.monotonic()
    ask, _ = read_responses(body, NoAgents(), with_progress=True)
    assert time.monotonic() - begun < SOON_S
    assert len(ask.history[1].tool_calls) == MANY


def test_ids_that_look_like_those_that_tell_others_apart_stay_apart() -> None:
    reader = ConversationReader()
    reader.say_user("hi")
    written = ["a", "a_2", "a", "a_2", "a_3", "a", ""]
    reader.say_assistant("", [WrittenCall(each, "x", "{}") for each in written])
    for each in written:
        reader.give_result(each, f"of {each}", "here")
    _, history = reader.asked("here")
    ids = [one.id for one in history[1].tool_calls]
    assert len(set(ids)) == len(written)
    assert [(said.call_id, said.text) for said in history[2:]] == [
        (one, f"of {each}") for one, each in zip(ids, written, strict=True)
    ]
