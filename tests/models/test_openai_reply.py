"""Hostile chunks: nothing but a `ModelError` ever comes out of the reader."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from wire_asking import STEADY

from xclaw.contracts.errors import ModelError
from xclaw.models.failures import FailureReader
from xclaw.models.openai.reply import ReplyAssembler

KEYS = (
    "choices", "delta", "message", "content", "text", "type", "reasoning", "thinking", "tool_calls",
    "function_call", "function", "name", "arguments", "index", "id", "finish_reason", "usage", "error",
    "code", "status", "prompt_tokens", "completion_tokens", "prompt_tokens_details", "cached_tokens",
    "x_groq", "refusal", "metadata", "raw", "detail",
)  # fmt: skip
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(min_value=-(2**63), max_value=2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "stop", "tool_calls", "text", "thinking", "503", "rate_limit_error", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=30,
)
choices = st.dictionaries(st.sampled_from(("delta", "message", "finish_reason", "index")), values, max_size=4)
chunks = values | st.fixed_dictionaries({"choices": st.lists(choices, max_size=2)})


@STEADY
@given(st.lists(chunks, max_size=6))
def test_no_chunk_makes_it_raise_anything_else(items: list[object]) -> None:
    answer = ReplyAssembler(FailureReader("openai:x"))
    try:
        for item in items:
            answer.add((b"", msgspec.json.encode(item)))
        answer.take_text()
        message, finish = answer.message()
    except ModelError:
        return
    assert message.text.strip() or message.tool_calls
    assert (finish == "tool_calls") == bool(message.tool_calls) or finish in ("length", "content_filter")
    answer.handed_on.encode()


@STEADY
@given(st.binary(max_size=60), st.sampled_from([b"", b"error", b"message"]))
def test_no_bytes_make_it_raise_anything_else(data: bytes, name: bytes) -> None:
    answer = ReplyAssembler(FailureReader("openai:x"))
    try:
        answer.add((name, data))
        answer.message()
    except ModelError as error:
        str(error).encode()
