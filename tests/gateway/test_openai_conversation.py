"""Conversations as clients send them, brought into the order that every model takes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xclaw.contracts.messages import Said
from xclaw.gateway.protocols.openai.chat_reading import read_chat
from xclaw.gateway.protocols.openai.conversation import NO_RESULT, ConversationReader, WrittenCall
from xclaw.gateway.protocols.openai.refused import Refused
from xclaw.gateway.protocols.openai.responses_reading import read_responses


def call(call_id: str = "c1", name: str = "add", arguments: str = "{}") -> WrittenCall:
    return WrittenCall(call_id, name, arguments)


def said(history: tuple[Said, ...]) -> list[tuple[str, str]]:
    return [(item.role, item.text) for item in history]


def is_paired(history: tuple[Said, ...]) -> bool:
    """Whether the results of an assistant's calls come right after it, one each."""
    waiting: set[str] = set()
    for item in history:
        if item.role == "tool":
            if item.call_id not in waiting:
                return False
            waiting.remove(item.call_id)
            continue
        if waiting:
            return False
        waiting = {each.id for each in item.tool_calls}
    return not waiting


def test_the_last_thing_that_the_user_said_is_asked_and_the_rest_is_history() -> None:
    reader = ConversationReader()
    reader.instruct("be brief")
    reader.say_user("one")
    reader.say_assistant("two")
    reader.say_user("three")
    text, history = reader.asked("messages")
    assert (text, said(history), reader.note) == (
        "three",
        [("user", "one"), ("assistant", "two")],
        "be brief",
    )


def test_after_a_tools_result_there_is_nothing_new_to_ask() -> None:
    reader = ConversationReader()
    reader.say_user("one")
    reader.say_assistant("", [call()])
    reader.give_result("c1", "4", "messages[2]")
    text, history = reader.asked("messages")
    assert (text, said(history)) == ("", [("user", "one"), ("assistant", ""), ("tool", "4")])
    assert history[2].name == "add"


def test_a_call_without_a_result_is_given_one_that_says_so() -> None:
    """H02: what an interrupted client sends."""
    reader = ConversationReader()
    reader.say_user("one")
    reader.say_assistant("", [call("a"), call("b")])
    reader.give_result("b", "4", "messages[2]")
    reader.say_user("go on")
    text, history = reader.asked("messages")
    assert text == "go on"
    assert said(history)[2:] == [("tool", "4"), ("tool", NO_RESULT)]
    assert is_paired(history)


def test_what_the_user_says_between_a_call_and_its_result_stands_after_it() -> None:
    reader = ConversationReader()
    reader.say_user("one")
    reader.say_assistant("", [call()])
    reader.say_user("hurry")
    reader.give_result("c1", "4", "messages[3]")
    text, history = reader.asked("messages")
    assert (text, history[-1].text) == ("hurry", "4")


@pytest.mark.parametrize("call_id", ["", "other", "c1"])
def test_a_result_without_an_open_call_is_refused(call_id: str) -> None:
    reader = ConversationReader()
    reader.say_user("one")
    reader.say_assistant("", [call()])
    reader.give_result("c1", "4", "messages[2]")
    with pytest.raises(Refused, match=r"messages\[3\]") as refused:
        reader.give_result(call_id, "5", "messages[3]")
    assert (refused.value.status, refused.value.param) == (400, "messages[3]")


def test_calls_with_the_same_id_are_told_apart() -> None:
    """H04: providers and clients reuse ids."""
    reader = ConversationReader()
    reader.say_user("one")
    for result in ("4", "5"):
        reader.say_assistant("", [call("same")])
        reader.give_result("same", result, "messages")
    _, history = reader.asked("messages")
    ids = [each.id for item in history for each in item.tool_calls]
    assert len(set(ids)) == 2
    assert [item.text for item in history if item.role == "tool"] == ["4", "5"]
    assert is_paired(history)


def test_calls_that_come_one_by_one_belong_to_the_answer_before_them() -> None:
    """The items of the responses wire."""
    reader = ConversationReader()
    reader.say_user("one")
    reader.say_assistant("I add.")
    reader.join_call(call("a"))
    reader.join_call(call("b"))
    reader.give_result("a", "1", "input")
    reader.join_call(call("c"))
    reader.give_result("b", "2", "input")
    reader.give_result("c", "3", "input")
    _, history = reader.asked("input")
    assert said(history) == [
        ("user", "one"),
        ("assistant", "I add."),
        ("tool", "1"),
        ("tool", "2"),
        ("tool", "3"),
    ]
    assert is_paired(history)


@pytest.mark.parametrize("last", ["assistant", "nobody"])
def test_a_conversation_that_asks_nothing_is_refused(last: str) -> None:
    reader = ConversationReader()
    if last == "assistant":
        reader.say_user("one")
        reader.say_assistant("The answer is")
    reader.say_user("  ")
    with pytest.raises(Refused, match="nothing to answer"):
        reader.asked("messages")


_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("user"), st.sampled_from(["x", ""])),
        st.tuples(st.just("assistant"), st.sampled_from(["y", ""])),
        st.tuples(st.just("call"), st.sampled_from(["a", "b", ""])),
        st.tuples(st.just("result"), st.sampled_from(["a", "b", ""])),
    ),
    max_size=12,
)


@given(_STEPS)
def test_whatever_is_sent_becomes_a_conversation_in_which_calls_have_their_results(
    steps: list[tuple[str, str]],
) -> None:
    reader = ConversationReader()
    reader.say_user("begin")
    refusals: list[Refused] = []
    for kind, value in steps:
        try:
            match kind:
                case "user":
                    reader.say_user(value)
                case "assistant":
                    reader.say_assistant(value, [call(value)] if value else [])
                case "call":
                    reader.join_call(call(value))
                case _:
                    reader.give_result(value, "result", "messages")
        except Refused as refused:
            refusals.append(refused)
    reader.say_user("end")
    text, history = reader.asked("messages")
    assert text == "end"
    assert is_paired(history)
    assert {refused.status for refused in refusals} <= {400}


class NoAgents:
    """A registry in which every name is an agent's."""

    def get(self, name: str) -> None:
        return None

    def resolve(self, name: str) -> str | None:
        return name

    def roster(self) -> dict[str, str]:
        return {}

    @property
    def names(self) -> tuple[str, ...]:
        return ()


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.sampled_from(["", "x", "user", "tool", "function", "text"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["role", "content", "type", "text", "tool_calls", "function", "name", "id"]),
            inner,
        )
    ),
    max_leaves=12,
)


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "messages",
                "input",
                "text",
                "tools",
                "tool_choice",
                "response_format",
                "n",
                "stream",
                "max_tokens",
            ]
        ),
        _JSON,
    )
)
def test_whatever_the_body_is_it_is_read_or_refused(fields: dict[str, object]) -> None:
    """O01, of any kind: never an error of ours."""
    body = {"model": "xclaw/a", "messages": [{"role": "user", "content": "x"}], "input": "x", **fields}
    statuses: list[int] = []
    for read in (read_chat, read_responses):
        try:
            read(json.dumps(body).encode(), NoAgents(), with_progress=True)
            statuses.append(200)
        except Refused as refused:
            statuses.append(refused.status)
    assert set(statuses) <= {200, 400}


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[]", b"null", b'"x"', b"\xff", b"[" * 100_000, b'{"messages": []}']
)
def test_a_body_that_is_none_is_refused(raw: bytes) -> None:
    with pytest.raises(Refused) as refused:
        read_chat(raw, NoAgents(), with_progress=True)
    assert refused.value.status == 400
