"""Whatever a guest says, xclaw's side neither crashes nor grows (SPEC F3, J1)."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xclaw.sandbox.kvm.guest_line import (
    LINE_BYTES,
    NOISE_BYTES,
    TEXT,
    Began,
    Ended,
    Failed,
    GuestLine,
    Misbehaved,
    Output,
    Ready,
    understood,
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ("id", "out", "end", "code", "left", "dropped", "failed", "began", "ready")
MESSAGES = st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=6).map(
    lambda message: json.dumps(message).encode()
)


def test_what_an_agent_says_is_understood() -> None:
    assert understood(b'{"ready": "6.1"}') == Ready()
    assert understood(b'{"id": 3, "began": true}') == Began(3)
    said = base64.b64encode(b"\xff\0x").decode()
    assert understood(json.dumps({"id": 3, "out": said}).encode()) == Output(3, b"\xff\0x")
    ended = {"id": 3, "end": "memory", "code": 137, "left": 2, "dropped": 9}
    assert understood(json.dumps(ended).encode()) == Ended(3, "memory", 137, 2, 9)
    assert understood(b'{"id": 3, "failed": "no such\\u001b[2Jfile"}') == Failed(3, "no such [2Jfile")


@pytest.mark.parametrize(
    "line",
    [
        b"", b"\xff\xfe", b"null", b"[]", b"7", b"{", b"[" * 30_000, b'{"a":' * 5_000, b"9" * 20_000,
        b'{"id": true, "end": "exited", "code": 0}', b'{"id": -1, "end": "exited", "code": 0}',
        b'{"id": 1.0, "out": ""}', b'{"id": 1, "out": "%%%"}', b'{"id": 1, "out": "YQ"}', b'{"id": 1, "out": 5}',
        b'{"id": 1, "end": "won", "code": 0}', b'{"id": 1, "end": "exited", "code": 256}',
        b'{"id": 1, "end": "exited", "code": -1}', b'{"id": 1, "end": "exited", "code": "0"}',
        b'{"id": 1, "end": "exited", "code": 0, "left": -5}', b'{"id": 1, "end": ["exited"], "code": 0}',
        b'{"id": 1, "end": "exited", "code": 0, "dropped": 1e400}', b'{"id": 1e400, "end": "exited", "code": 0}',
        '{"id": 1, "out": "\u00e9"}'.encode(), b'{"id": 99999999999999999999, "end": "exited", "code": 0}',
    ],
)  # fmt: skip
def test_what_no_agent_says_is_nothing(line: bytes) -> None:
    assert understood(line) is None


@given(st.binary(max_size=400) | MESSAGES)
def test_no_line_is_an_error(line: bytes) -> None:
    """Fuzzed."""
    said = understood(line)
    if isinstance(said, Ended):
        assert 0 <= said.code < 256
        assert said.left >= 0
    if isinstance(said, Failed):
        assert len(said.text) <= TEXT
        assert said.text.isprintable() or not said.text


@given(st.lists(MESSAGES, max_size=8), st.integers(min_value=1, max_value=97))
def test_lines_are_the_same_however_they_come(lines: list[bytes], size: int) -> None:
    """Fuzzed."""
    stream = b"".join(line + b"\n" for line in lines)
    pieces = GuestLine()
    found = [said for at in range(0, len(stream), size) for said in pieces.feed(stream[at : at + size])]
    assert found == [said for line in lines if (said := understood(line)) is not None]


def test_a_line_that_never_ends_is_not_kept() -> None:
    line = GuestLine()
    line.feed(b"x" * LINE_BYTES)
    with pytest.raises(Misbehaved, match="too long"):
        line.feed(b"x")


def test_a_line_that_is_too_long_is_not_read() -> None:
    with pytest.raises(Misbehaved, match="too long"):
        GuestLine().feed(b"x" * (LINE_BYTES + 1) + b"\n")


@pytest.mark.parametrize("line", [b"\n", b"{}\n", b'{"id": 1, "out": "' + b"eHh4" * 300 + b'"}\n'])
def test_a_guest_that_talks_without_being_asked_is_given_up(line: bytes) -> None:
    """Before it has cost more than a moment."""
    talk = GuestLine(lambda: 0.0)

    def listen() -> None:
        for _ in range(NOISE_BYTES // len(line) + 2):
            talk.feed(line)

    with pytest.raises(Misbehaved, match="more than it was asked for"):
        listen()


def test_lines_that_come_slowly_may_be_many() -> None:
    """A command that says a word now and then, for hours."""
    now = 0.0
    talk = GuestLine(lambda: now)
    talk.expect(10_000_000)
    for _ in range(20_000):
        now += 0.01
        assert talk.feed(b'{"id": 1, "out": "eA=="}\n') == [Output(1, b"x")]


def test_a_command_may_say_what_it_may_and_its_end_is_heard() -> None:
    """Base64 is a third longer than what it holds."""
    line = GuestLine()
    line.expect(10_000_000)
    piece = base64.b64encode(b"x" * 24_576).decode()
    message = json.dumps({"id": 1, "out": piece}).encode() + b"\n"
    total = 0
    while total < 10_000_000:
        total += sum(len(said.content) for said in line.feed(message) if isinstance(said, Output))
    assert line.feed(b'{"id": 1, "end": "exited", "code": 0}\n') == [Ended(1, "exited", 0, 0, 0)]
