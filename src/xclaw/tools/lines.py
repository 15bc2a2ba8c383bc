"""Lines of a file with their numbers, however long the file and its lines are."""

import os
from dataclasses import dataclass

from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.tokens import ascii_length

LINE_CHARS = 1_000
"""What is shown of one line."""
_MAX_SCAN = 1_000_000_000
"""Bytes that are gone through to count lines."""
_CHUNK = 1 << 20
_PROBE = 8_192
"""Bytes looked at to tell text from binary."""


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    """Offset in the file."""
    end: int
    """Behind its line end."""
    shown: str


def numbered_lines(descriptor: int, from_line: int, count: int, room: int) -> str:
    """Lines from `from_line` on, at most `count` (0: no such limit) and no more than fit `room` characters.

    Empty for a binary file. Raises `ToolFailed` for a line too far behind the beginning.
    """
    if b"\0" in os.pread(descriptor, _PROBE, 0):
        return ""
    at, before = _offset_of(descriptor, from_line)
    if at is None:
        return f"[the file has {before} lines: nothing at line {from_line}]" if before else "[empty file]"
    shown: list[str] = []
    taken = 0.0
    line = _line_at(descriptor, at)
    while line is not None and (not count or len(shown) < count):
        text = f"{from_line + len(shown)}\t{line.shown}"
        taken += ascii_length(text) + 1
        if shown and taken - 1 > room:  # behind the last line stands no line end
            break
        shown.append(text)
        line = _line_at(descriptor, line.end)
    last = from_line + len(shown) - 1
    end = ", the end" if line is None else f"; go on with from_line {last + 1}"
    return "\n".join([*shown, f"[lines {from_line} to {last}{end}]"])


def _offset_of(descriptor: int, number: int) -> tuple[int | None, int]:
    """Where a line begins; None, and how many lines there are, when there is no such line."""
    at, seen = 0, 0
    last = b"\n"
    while chunk := os.pread(descriptor, _CHUNK, at):
        newlines = chunk.count(b"\n")
        if seen + newlines >= number - 1:
            place = 0
            for _ in range(number - 1 - seen):
                place = chunk.index(b"\n", place) + 1
            start = at + place
            return (start, 0) if os.pread(descriptor, 1, start) else (None, number - 1)
        seen, at, last = seen + newlines, at + len(chunk), chunk[-1:]
        if at > _MAX_SCAN:
            raise ToolFailed(f"line {number} is more than {_MAX_SCAN} bytes into the file; use offset")
    return None, seen + (last != b"\n")


def _line_at(descriptor: int, start: int) -> _Line | None:
    first = os.pread(descriptor, 4 * LINE_CHARS, start)
    if not first:
        return None
    place = first.find(b"\n")
    if place >= 0:
        return _Line(start, start + place + 1, _shown(first[:place], start, start + place))
    end = start + len(first)
    while chunk := os.pread(descriptor, _CHUNK, end):
        place = chunk.find(b"\n")
        if place >= 0:
            return _Line(start, end + place + 1, _shown(first, start, end + place))
        end += len(chunk)
        if end - start > _MAX_SCAN:
            break
    return _Line(start, end, _shown(first, start, end))


def _shown(raw: bytes, start: int, end: int) -> str:
    """A line, or its beginning and where the rest is."""
    text = raw.removesuffix(b"\r").decode("utf-8", "replace").replace("\0", "␀")
    if len(text) <= LINE_CHARS and start + len(raw) == end:
        return text
    kept = text[:LINE_CHARS]
    behind = start + min(len(kept.encode()), len(raw))
    return f"{kept}… [{end - behind} more bytes of this line, from offset {behind}]"
