"""Unicode's normal forms of text that anybody may have written, in time that grows with its length alone."""

import unicodedata
from typing import Literal

MARKS_TOGETHER = 30
"""Combining marks that are put in order with one another. No writing has as many on one letter (UAX 15)."""


def normal_form(form: Literal["NFC", "NFKC"], text: str) -> str:
    """`text` in that form. Marks beyond `MARKS_TOGETHER` in a row are not put in order with those before:
    the standard library takes a time that grows with the square of their number."""
    if text.isascii():
        return text
    parts: list[str] = []
    begin = marks = 0
    for at, character in enumerate(text):
        marks = marks + 1 if unicodedata.combining(character) else 0
        if marks > MARKS_TOGETHER:
            parts.append(text[begin:at])
            begin, marks = at, 1
    parts.append(text[begin:])
    return "".join(unicodedata.normalize(form, part) for part in parts)
