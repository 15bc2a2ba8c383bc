"""Untrusted text cannot control the terminal that shows it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xclaw.cli.text import money, one_line, printable, seconds, tokens, unfinished_sequence


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\nnext", "plain\ttext\nnext"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]52;c;Zm9v\x07", ""),
        ("\x1b[2J\x1b[H\x1bc", ""),
        ("over\rwrite", "over␍write"),
        ("a\r\nb", "a\nb"),
        ("bell\x07 back\x08 del\x7f nul\x00", "bell␇ back␈ del␡ nul␀"),
        ("\x9b31mC1", "�31mC1"),
        ("ab\u202egpj.exe", "abgpj.exe"),
        ("half \ud800 pair", "half ? pair"),
        ("你好 🌍 é", "你好 🌍 é"),
    ],
)
def test_escape_sequences_and_control_characters_lose_their_power(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.lists(st.text(alphabet=st.sampled_from("\x1b[]31;mHJ\x07\x9b\\ab\n\r\x00P_^")), max_size=6))
def test_nothing_that_controls_a_terminal_survives_however_it_is_cut(pieces: list[str]) -> None:
    shown = "".join(printable(piece) for piece in pieces)
    assert all(character.isprintable() or character in "\n\t" for character in shown)


def test_the_beginning_of_a_sequence_is_found_at_the_end_of_a_piece() -> None:
    assert unfinished_sequence("red \x1b[3") == "\x1b[3"
    assert unfinished_sequence("red \x1b[31m text") == ""
    assert unfinished_sequence("title \x1b]0;abc") == "\x1b]0;abc"


def test_one_line_is_one_short_line() -> None:
    assert one_line("a\n\n  b\x1b[31m c", 10) == "a b c"
    assert one_line("x" * 200, 10) == "x" * 9 + "…"


def test_figures_are_for_people_and_an_unknown_cost_is_never_zero() -> None:
    assert [seconds(value) for value in (0.04, 9.96, 59.4, 61, 3661)] == [
        "0.0s",
        "10.0s",
        "59s",
        "1m 01s",
        "1h 01m",
    ]
    assert [tokens(count) for count in (0, 9_999, 12_345, 2_500_000)] == ["0", "9,999", "12k", "2.5M"]
    assert tokens(5, estimated=True) == "~5"
    assert [money(usd) for usd in (0.0, 0.00001, 0.0123, 12.5, None)] == [
        "$0.00",
        "under $0.0001",
        "$0.0123",
        "$12.50",
        "cost unknown",
    ]
