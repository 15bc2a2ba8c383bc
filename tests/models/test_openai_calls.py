"""Tool calls, however a server spreads them over its deltas."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire_asking import STEADY, asked, choice, run, stream

from xclaw.models.openai.calls import CallAssembler

Fragment = dict[str, object]
X = ("view_file", '{"path":"x.txt"}')
Y = ("view_file", '{"path":"y.txt"}')


def part(
    index: object = None, call_id: object = None, name: object = None, arguments: object = None
) -> Fragment:
    fragment: Fragment = {"function": {"name": name, "arguments": arguments}}
    if index is not None:
        fragment["index"] = index
    return fragment if call_id is None else fragment | {"id": call_id}


def assembled(*deltas: object) -> list[tuple[str, str]]:
    calls = CallAssembler()
    for delta in deltas:
        calls.add(delta)
    return [(call.name, call.arguments) for call in calls.calls()]


def test_interleaved_fragments_are_grouped_by_index() -> None:
    """S03, its id that changes on the way too."""
    assert assembled(
        part(0, "a", "view_file", '{"pa'),
        part(1, "b", "view_file", '{"path":'),
        part(0, None, None, 'th":"x.txt"}'),
        part(1, None, None, '"y.txt"}'),
        part(1, "b2", None, ""),
    ) == [X, Y]


@pytest.mark.parametrize(
    "deltas",
    [
        [part(None, "a", "view_file", '{"path":'), part(None, None, None, '"x.txt"}'), part(None, "b", *Y)],
        [part(None, "a", "view_file", '{"path":'), part(None, "a", None, '"x.txt"}'), part(None, "b", *Y)],
        [part(0, "a", *X), part(None, "b", *Y)],
        [part(None, "a", *X), part(1, "b", *Y)],
        [part(None, None, *X), part(None, None, *Y)],
        [[part(None, None, *X), part(None, None, *Y)]],
        [part(0, "a", *X), part(0, "b", *Y)],
        [part("0", "a", *X), part("1", "b", *Y)],
        [part(0.0, "a", *X), part(1.0, "b", *Y)],
        [part(None, "a", "view_file", '{"path":'), part(0, None, None, '"x.txt"}'), part(1, "b", *Y)],
        [part(1, "b", *Y), part(0, "a", *X)],
        [part(0, "a", "view_"), part(0, "a", "file"), part(0, "a", None, X[1]), part(1, "b", *Y)],
        [part(0, "a", "view_file", '{"path":'), part(0, "a", "view_file", '"x.txt"}'), part(1, "b", *Y)],
        [part(0, "a", "view_file", "{}"), part(0, None, None, X[1]), part(1, "b", *Y)],
        [part(0, "a", *X), part(0, "a", None, X[1]), part(1, "b", *Y)],
        [part(0, "a", "view_file", {"path": "x.txt"}), part(1, "b", *Y), part(2, None, "", "")],
        [{"index": 0, "name": X[0], "arguments": X[1]}, part(1, "b", *Y)],
    ],
    ids=range(17),
)
def test_two_calls_are_two_calls_in_order(deltas: list[object]) -> None:
    """S05 and its neighbours: no index, no id, repeated names, arguments as an object."""
    assert assembled(*deltas) == [X, Y]


def test_a_legacy_function_call_is_a_call() -> None:
    async def main() -> None:
        pieces = [{"name": "view_file", "arguments": '{"path":'}, {"arguments": '"x.txt"}'}]
        chunks = [choice({"function_call": piece}) for piece in pieces]
        reply, _ = await asked(stream(*chunks, choice({}, "function_call")))
        assert [(call.name, call.arguments) for call in reply.message.tool_calls] == [X]
        assert reply.finish == "tool_calls"

    run(main)


@pytest.mark.parametrize(
    ("finish", "expected"), [("stop", "tool_calls"), ("length", "length"), ("eos", "tool_calls")]
)
def test_the_finish_reason_tells_whole_calls_from_cut_ones(finish: str, expected: str) -> None:
    """S16: a call that the output limit cut keeps its half arguments and the finish "length"."""

    async def main() -> None:
        calls = choice({"tool_calls": [part(0, "a", "deliver", '{"summary":"aaaa')]})
        reply, _ = await asked(stream(calls, choice({}, finish)))
        assert reply.finish == expected
        assert reply.message.tool_calls[0].arguments == '{"summary":"aaaa'

    run(main)


def test_a_finish_that_promises_calls_without_any_is_a_plain_stop() -> None:
    async def main() -> None:
        reply, _ = await asked(stream(choice({"content": "done"}), choice({}, "tool_calls")))
        assert reply.finish == "stop"

    run(main)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["index", "id", "function", "name", "arguments", "type", "x"]), inner, max_size=5
        )
    ),
    max_leaves=20,
)


@STEADY
@given(st.lists(json_values, max_size=5))
def test_no_value_makes_it_raise(deltas: list[object]) -> None:
    calls = CallAssembler()
    for delta in deltas:
        calls.add(delta)
        calls.add_legacy(delta)
    for call in calls.calls():
        assert call.id
        assert (call.name + call.arguments) != ""
