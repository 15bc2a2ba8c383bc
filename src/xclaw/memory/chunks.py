"""Documents in passages: a few paragraphs each, with where they stand."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from xclaw.memory.documents import Kind
from xclaw.memory.passages import Passage

WEIGHT = 1_200
"""Of one passage, about: characters, Chinese ones counted twice, since each says more."""
MAX_PASSAGES = 20_000
_HEADING = re.compile(r"(#{1,6})\s+")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])")
_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_SHOWN_HEADING = 80


@dataclass(slots=True)
class _Open:
    """The passage that is being filled."""

    place: str
    first_line: int
    last_line: int = 0
    weight: int = 0
    lines: list[str] = field(default_factory=list[str])

    @property
    def is_empty(self) -> bool:
        return not any(line.strip() for line in self.lines)


def passages_of(pages: list[str], kind: Kind) -> list[Passage]:
    """At most `MAX_PASSAGES`; a document has fewer, bounded as its text is."""
    found: list[Passage] = []
    for number, page in enumerate(pages, 1):
        for part in _parts(page, has_headings=kind in ("markdown", "html")):
            place = f"page {number}" if kind == "pdf" else _place(part, with_lines=kind != "html")
            found.append(Passage(str(len(found) + 1), "\n".join(part.lines).strip(), place))
            if len(found) == MAX_PASSAGES:
                return found
    return found


def _place(part: _Open, *, with_lines: bool) -> str:
    lines = (
        f"line {part.first_line}"
        if part.first_line == part.last_line
        else (f"lines {part.first_line}–{part.last_line}")
    )
    return ", ".join(piece for piece in (part.place, lines if with_lines else "") if piece)


def _parts(text: str, *, has_headings: bool) -> Iterator[_Open]:
    """Passages end before a heading, and where they are long enough."""
    headings: dict[int, str] = {}
    part = _Open("", 1)
    in_fence = False
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        if _FENCE.match(line):
            in_fence = not in_fence
        heading = _HEADING.match(line) if has_headings and not in_fence else None
        if heading is not None:
            if not part.is_empty and part.weight > 0:
                yield part
            headings = {level: name for level, name in headings.items() if level < len(heading[1])}
            name = line[heading.end() :].rstrip().rstrip("#").rstrip()
            headings[len(heading[1])] = name[:_SHOWN_HEADING]
            part = _Open(" › ".join(headings.values()), number, number, 0, [line])
            continue
        for piece in _pieces(line):
            weight = _weight(piece)
            if part.weight and part.weight + weight > WEIGHT:
                yield part
                part = _Open(part.place, number)
            if not part.lines and not piece.strip():
                part.first_line = number + 1
                continue
            part.lines.append(piece)
            part.weight += weight
            part.last_line = number if piece.strip() else part.last_line
    if not part.is_empty:
        yield part


def _pieces(line: str) -> Iterator[str]:
    """A line, or a line that is too long as sentences, or as parts of a sentence that is too long."""
    if _weight(line) <= WEIGHT:
        yield line
        return
    gathered = ""
    for sentence in _SENTENCE.split(line):
        for at in range(0, len(sentence), WEIGHT // 2) or (0,):
            part = sentence[at : at + WEIGHT // 2]
            if gathered and _weight(gathered) + _weight(part) > WEIGHT:
                yield gathered
                gathered = ""
            gathered = f"{gathered} {part}".strip() if at == 0 and part.isascii() else gathered + part
    yield gathered


def _weight(text: str) -> int:
    return len(text) + (0 if text.isascii() else len(_HAN.findall(text)))
