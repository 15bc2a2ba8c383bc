"""What a watcher sees of a reply while it streams, whatever pieces it comes in."""

from hypothesis import given
from hypothesis import strategies as st

from xclaw.loop.streaming import Gate


def stream(pieces: list[str], *, anywhere: bool) -> tuple[str, str]:
    """What was shown while it came, and what was held to its end."""
    gate = Gate(anywhere=anywhere)
    return "".join(gate.feed(piece) for piece in pieces), gate.rest()


def cuts(text: str) -> st.SearchStrategy[list[str]]:
    places = st.lists(st.integers(0, len(text)), max_size=12).map(sorted)
    return places.map(lambda at: [text[a:b] for a, b in zip([0, *at], [*at, len(text)], strict=True)])


PARTS = st.lists(
    st.sampled_from(["\n", " ", "words ", "{", "`", "```", "~~~", "[", "a", "\t", "字"]), max_size=20
)


@given(st.data())
def test_nothing_is_lost_and_no_line_that_may_be_an_action_is_shown(data: st.DataObject) -> None:
    """P09, S06: however a text is cut."""
    text = "".join(data.draw(PARTS))
    shown, held = stream(data.draw(cuts(text)), anywhere=True)
    assert shown + held == text
    assert not any(line.lstrip(" \t").startswith(("{", "[", "```", "~~~")) for line in shown.split("\n"))


@given(st.data())
def test_where_calls_have_their_own_channel_only_a_reply_that_is_json_from_its_start_is_held(
    data: st.DataObject,
) -> None:
    """P09"""
    text = "".join(data.draw(PARTS))
    shown, held = stream(data.draw(cuts(text)), anywhere=False)
    assert shown + held == text
    if text.strip() and not text.strip().startswith(("{", "[")):
        assert shown.strip()


def test_words_are_shown_at_once() -> None:
    gate = Gate(anywhere=True)
    assert [gate.feed(piece) for piece in ["Hel", "lo", "\n", "wor", "ld {x}"]] == [
        "Hel",
        "lo",
        "\n",
        "wor",
        "ld {x}",
    ]


def test_a_fence_that_comes_in_pieces_is_held() -> None:
    gate = Gate(anywhere=True)
    assert [gate.feed(piece) for piece in ["Sure:\n", "`", "``json\n", '{"action": "x"}']] == [
        "Sure:\n",
        "",
        "",
        "",
    ]
    assert gate.rest() == '```json\n{"action": "x"}'
