"""Memory files as text: what is read from them, and that nothing of them is lost (SPEC I2)."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xclaw.memory.notes import cleaned, notes_in, rendered, title, torn_lines, without

AT = 1_796_000_000.0
FILE = """# Memory of coder

<!-- Edit freely.
- not a memory: it is in a comment -->

- [m0123456789 · 2026-11-30T12:31Z · coder] The user prefers tabs.
  A second line.

  A paragraph of the same note.
- By hand, without brackets
* another bullet
  - and one below it
1. a numbered one

## Preferences

A paragraph that a person wrote,
in two lines.
```
code - is one memory
```
- [ ] a check box is text
"""


def texts(file: str) -> list[str]:
    return [note.text for note in notes_in(file)]


def test_items_and_paragraphs_are_notes_and_headings_and_comments_are_none() -> None:
    assert texts(FILE) == [
        "The user prefers tabs.\nA second line.\n\nA paragraph of the same note.",
        "By hand, without brackets",
        "another bullet\n- and one below it",
        "a numbered one",
        "A paragraph that a person wrote,\nin two lines.\n```\ncode - is one memory\n```",
        "[ ] a check box is text",
    ]


def test_a_note_of_an_agent_has_its_id_author_and_time_and_one_by_hand_has_none() -> None:
    first, second, *_ = notes_in(FILE)
    assert (first.id, first.author, first.at) == ("m0123456789", "coder", 1796041860.0)
    assert (second.author, second.at) == ("", None)
    assert second.id.startswith("h")


def test_the_id_of_a_note_by_hand_stays_while_its_text_does() -> None:
    ids = {note.text: note.id for note in notes_in(FILE)}
    moved = {note.text: note.id for note in notes_in("- new\n\n- By hand, without brackets\n")}
    assert moved["By hand, without brackets"] == ids["By hand, without brackets"]


def test_two_notes_of_the_same_text_or_id_have_ids_of_their_own() -> None:
    ids = [note.id for note in notes_in("- same\n- same\n")]
    assert len(set(ids)) == 2
    twice = rendered("m01234567", AT, "coder", "one") + rendered("m01234567", AT, "coder", "two")
    assert [note.id for note in notes_in(twice)] == ["m01234567", "m01234567-2"]


def test_what_a_killed_writer_left_is_no_note_and_is_counted() -> None:
    """D06."""
    for torn in ("- [m0123", "- [m0123456789 · 2026-11", "- [m0123456789 · 2026-11-30T12:31Z · cod"):
        file = f"- one\n{torn}\n- two\n"
        assert texts(file) == ["one", "two"]
        assert torn_lines(file) == 1
    assert texts("- [maybe] later\n") == ["[maybe] later"]


def test_an_impossible_date_makes_it_a_note_by_hand() -> None:
    (note,) = notes_in("- [m01234567 · 2026-13-45T99:99Z · coder] text\n")
    assert (note.author, note.at) == ("", None)
    assert note.text == "[m01234567 · 2026-13-45T99:99Z · coder] text"


def test_forgetting_a_note_leaves_every_other_character() -> None:
    note = notes_in(FILE)[0]
    expected = "".join(
        line
        for number, line in enumerate(FILE.splitlines(keepends=True))
        if not note.first_line <= number < note.end_line
    )
    assert without(FILE, note) == expected
    assert texts(expected) == texts(FILE)[1:]


def test_an_author_cannot_break_the_brackets() -> None:
    (note,) = notes_in(rendered("m01234567", AT, "a] · [b\n- c", "text"))
    assert (note.id, note.text) == ("m01234567", "text")
    assert "]" not in note.author


@given(st.lists(st.text(max_size=200), max_size=6))
def test_any_texts_come_back_as_they_were_kept(written: list[str]) -> None:
    """I3: no text can end its note early or begin another, whatever Markdown it holds."""
    kept = [text for text in map(cleaned, written) if text]
    file = title("coder") + "".join(
        rendered(f"m{number:08x}", AT, "coder", text) for number, text in enumerate(kept)
    )
    assert texts(file) == kept
    assert [note.id for note in notes_in(file)] == [f"m{number:08x}" for number in range(len(kept))]


@given(st.text(max_size=300))
def test_any_file_can_be_read_and_forgotten_from_note_by_note(file: str) -> None:
    while notes := notes_in(file):
        shorter = without(file, notes[-1])
        assert len(shorter) < len(file)
        file = shorter


@pytest.mark.parametrize(
    "line", ["- the same\n", "the same\n\n", "<!--\n", "<!-- -->\n", "```\n~~~\n", "- [m12 ·\n"]
)
def test_a_file_of_any_nonsense_is_read_in_linear_time(line: str) -> None:
    """D06's kind: 1 MB takes about a second; anything quadratic takes minutes."""
    began = time.process_time()
    notes = notes_in(line * (400_000 // len(line)))
    assert time.process_time() - began < 4
    assert len({note.id for note in notes}) == len(notes)
