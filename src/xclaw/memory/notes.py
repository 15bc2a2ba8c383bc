"""The text of a memory file: Markdown in which each list item is a note. No I/O.

    - [m3f9a2c41d0 · 2026-11-30T12:31Z · coder] The user prefers tabs.
      A second line of the same note.
    - A note that a person wrote by hand: no brackets needed.

Everything else is a person's too: a paragraph is a note, headings and comments are none. What cannot
be read is left as it is. Lines end in a line feed and nothing else, so no other character can part a note.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

_HEADER = re.compile(
    r"\[(?P<id>m[0-9a-f]{4,32}) · (?P<at>\d{4}-\d\d-\d\dT\d\d:\d\dZ) · (?P<author>[^\]\n]{0,200})\] ?(?P<text>.*)",
    re.DOTALL,
)
_TORN = re.compile(r"\[m[0-9a-f]{0,32}(?: ·[^\]\n]*)?\Z")
_ITEM = re.compile(r"(?:[-*+]|\d{1,4}[.)])[ \t]+")
_HEADING = re.compile(r"#{1,6}(?:\s|$)")
_FENCE = re.compile(r"```+|~~~+")
_INDENT = "  "


@dataclass(frozen=True, slots=True)
class Note:
    """One note in a file: `lines` from the first (counted from 0) up to, without, the last."""

    id: str
    text: str
    author: str
    """Empty for one that a person wrote."""
    at: float | None
    """Unix time, seconds; None for one that a person wrote."""
    first_line: int
    end_line: int


def title(whom: str) -> str:
    """How a new file begins."""
    name = " ".join(whom.split())
    return (
        f"# Memory of {name}\n\n"
        "<!-- Edit freely: each list item is one memory. In brackets: its id, when (UTC), who. -->\n\n"
    )


def rendered(note_id: str, at: float, author: str, text: str) -> str:
    """A note as lines of the file. No text can end it early or begin another."""
    stamp = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%MZ")
    lines = text.split("\n")
    body = "\n".join([lines[0], *(f"{_INDENT}{line}" if line.strip() else "" for line in lines[1:])])
    return f"- [{note_id} · {stamp} · {_one_line(author)}] {body}\n"


def _one_line(author: str) -> str:
    return " ".join(re.sub(r"[\[\]·\x00-\x1f]", " ", author).split())[:100] or "unknown"


def cleaned(text: str) -> str:
    """Text as it can be kept: no control characters but line feeds and tabs, no blank edges."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]", " ", text)
    text = text.encode("utf-8", "replace").decode("utf-8")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(line.rstrip() for line in text.split("\n"))).strip()


def notes_in(text: str) -> list[Note]:
    """The notes of a file, in order; each has an id of its own."""
    counts: Counter[str] = Counter()
    found: list[Note] = []
    lines = text.split("\n")
    for first, end in _blocks(lines):
        note = _note(lines, first, end)
        if note is None:
            continue
        counts[note.id] += 1
        note_id = note.id if counts[note.id] == 1 else f"{note.id}-{counts[note.id]}"
        found.append(Note(note_id, note.text, note.author, note.at, first, end))
    return found


def torn_lines(text: str) -> int:
    """How many list items were begun by a program and not finished."""
    return sum(
        1 for line in text.split("\n") if (item := _ITEM.match(line)) and _TORN.fullmatch(line[item.end() :])
    )


def without(text: str, note: Note) -> str:
    """The file without one note; every other character stays."""
    lines = text.split("\n")
    return "\n".join([*lines[: note.first_line], *lines[note.end_line :]])


def _note(lines: list[str], first: int, end: int) -> Note | None:
    item = _ITEM.match(lines[first])
    if item is None:
        text = "\n".join(lines[first:end]).strip()
    else:
        rest = [line.removeprefix("\t").removeprefix(_INDENT) for line in lines[first + 1 : end]]
        text = "\n".join([lines[first][item.end() :], *rest]).strip()
    if not text or _TORN.fullmatch(text):
        return None
    header = _HEADER.fullmatch(text) if item else None
    if header is not None:
        body = header["text"].strip()
        at = _time_of(header["at"])
        if body and at is not None:
            return Note(header["id"], body, header["author"].strip(), at, first, end)
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
    return Note(f"h{digest[:8]}", text, "", None, first, end)


def _time_of(written: str) -> float | None:
    try:
        return datetime.strptime(written, "%Y-%m-%dT%H:%MZ").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def _blocks(lines: list[str]) -> Iterator[tuple[int, int]]:
    """The line ranges of items and paragraphs; headings, comments and blank lines are in none."""
    at = 0
    last_close = max((number for number, line in enumerate(lines) if "-->" in line), default=-1)
    while at < len(lines):
        line = lines[at]
        if not line.strip() or _HEADING.match(line):
            at += 1
        elif line.startswith("<!--"):
            # A comment that is never closed is one line, so that it hides nothing.
            at = _end_of_comment(lines, at) if at <= last_close else at + 1
        else:
            end = _end_of_item(lines, at) if _ITEM.match(line) else _end_of_paragraph(lines, at)
            yield at, end
            at = end


def _end_of_comment(lines: list[str], first: int) -> int:
    """Of one that is closed somewhere."""
    return next(at + 1 for at in range(first, len(lines)) if "-->" in lines[at])


def _end_of_item(lines: list[str], first: int) -> int:
    """An item goes on with indented lines, also after blank ones, and with plain lines right below it."""
    end = at = first + 1
    while at < len(lines):
        line = lines[at]
        if line.startswith((_INDENT, "\t")) and line.strip():
            end = at + 1
        elif line.strip() and not (at == end and _goes_on(line)):
            break
        elif line.strip():
            end = at + 1
        at += 1
    return end


def _end_of_paragraph(lines: list[str], first: int) -> int:
    fence = _FENCE.match(lines[first])
    if fence is not None:
        for at in range(first + 1, len(lines)):
            if lines[at].startswith(fence[0]):
                return at + 1
    at = first + 1
    while at < len(lines) and lines[at].strip() and _goes_on(lines[at]):
        at += 1
    return at


def _goes_on(line: str) -> bool:
    return not (_ITEM.match(line) or _HEADING.match(line) or line.startswith("<!--"))
