"""Text that anybody may have written: whether it is any, and its normal forms in time that grows with its length alone."""

import unicodedata
from typing import Literal

MARKS_TOGETHER = 30
"""Combining marks that are put in order with one another. No writing has as many on one letter (UAX 15)."""


def is_unicode(text: str) -> bool:
    """Whether it can be written as UTF-8, and so be given to a program or to a disk: half of a character, which
    JSON can hold, cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


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
