"""Framing: the same bytes mean the same events, however the network cut them."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire_asking import STEADY

from xclaw.contracts.errors import ModelInterrupted
from xclaw.models.openai.sse import Event, EventDecoder

LINES = (
    b"data: a",
    b"data:b",
    b'data: {"content": "\xe4\xbd\xa0\xf0\x9f\x8c\x8d"}',
    b"data",
    b"data: ",
    b"data:  two spaces",
    b": comment",
    b":",
    b"event: error",
    b"event:ping",
    b"id: 1",
    b"retry: 10",
    b"unknown: field",
    b"dataset: not data",
    b"\xef\xbb\xbfdata: late mark",
    b"",
    b"",
)
ENDS = (b"\n", b"\r\n", b"\r")


def decoded(*chunks: bytes) -> list[Event]:
    decoder = EventDecoder()
    return [event for chunk in chunks for event in decoder.feed(chunk)]


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(stream) + 1) for place in places), len(stream)]
    return [stream[start:end] for start, end in pairwise(edges)]


def lines_of(stream: bytes) -> list[bytes]:
    return stream.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")[:-1]


def by_the_letter(stream: bytes) -> list[Event]:
    """The grammar of the HTML standard, written the slow way."""
    events: list[Event] = []
    data: list[bytes] = []
    name = b""
    for line in lines_of(stream.removeprefix(b"\xef\xbb\xbf")):
        if not line:
            if data:
                events.append((name, b"\n".join(data)))
            data, name = [], b""
            continue
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value
    return events


def written(mark: bytes, lines: list[tuple[bytes, bytes]]) -> bytes:
    return mark + b"".join(line + end for line, end in lines)


streams = st.builds(
    written,
    st.sampled_from((b"", b"\xef\xbb\xbf")),
    st.lists(st.tuples(st.sampled_from(LINES), st.sampled_from(ENDS)), max_size=30),
)


@STEADY
@given(streams, st.lists(st.integers(min_value=0, max_value=10_000), max_size=40))
def test_any_cut_of_a_stream_gives_the_events_of_the_standard(stream: bytes, places: list[int]) -> None:
    """S06, S07, S08."""
    assert decoded(*cut(stream, places)) == by_the_letter(stream)


@STEADY
@given(streams)
def test_a_byte_at_a_time_gives_the_same_events(stream: bytes) -> None:
    """S06, S08."""
    assert decoded(*(stream[at : at + 1] for at in range(len(stream)))) == by_the_letter(stream)


def test_a_cut_between_cr_and_lf_ends_one_line() -> None:
    """S08."""
    assert decoded(b"data: a\r", b"\n\r", b"\ndata: b\r\n\r\n") == [(b"", b"a"), (b"", b"b")]


def test_comments_dispatch_nothing() -> None:
    """S07."""
    assert decoded(b": OPENROUTER PROCESSING\n\n:\n\nevent: ping\n\n") == []


def test_an_unfinished_event_is_given_only_when_the_stream_is_closed() -> None:
    decoder = EventDecoder()
    assert decoder.feed(b"data: [DONE]") == []
    assert decoder.close() == [(b"", b"[DONE]")]
    assert decoder.close() == []


@pytest.mark.parametrize("part", [b"x" * 40, b"data: xxxxxxxx\n"])
def test_an_event_without_an_end_is_refused_at_the_limit(part: bytes) -> None:
    """A server must not be able to fill the memory with one line, or with one event of many lines."""
    decoder = EventDecoder(max_event_bytes=100)
    decoder.feed(b"data: ")

    def feed_for_ever() -> None:
        for _ in range(50):
            decoder.feed(part)

    with pytest.raises(ModelInterrupted, match="more than 100 bytes"):
        feed_for_ever()
