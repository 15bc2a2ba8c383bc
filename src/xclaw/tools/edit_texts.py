"""What a model is told of an edit: what has changed, or why nothing could be."""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

CONTEXT_LINES = 2
MAX_PLACES = 3
"""Of an edit in many places, how many are shown."""
MAX_LINES = 12
"""Of one place, on each side."""
MAX_LINE_CHARS = 200
_COMPARED_LINES = 20_000
_COMPARED_CHARS = 160
_NEAREST_OF = 5_000
"""Lines that are compared one by one."""
_MATCHED = 200
"""Of those, how many are compared in order: that takes milliseconds for one."""
_CLOSE = 0.6
_NAMED_LINES = 10


@dataclass(frozen=True, slots=True)
class Replaced:
    """What was done to a file."""

    content: bytes
    """As it was."""
    old: bytes
    new: bytes
    places: tuple[int, ...]
    """Offsets of `old`, in order."""


def shown_edit(path: str, done: Replaced) -> str:
    """A short diff, with the line numbers of before for what is gone and of now for what is there."""
    count = len(done.places)
    head = f"edited {path}" + (f" in {count} places" if count > 1 else "")
    shown = [_shown_place(done, index) for index in range(min(count, MAX_PLACES))]
    more = [f"[{count - MAX_PLACES} more places]"] if count > MAX_PLACES else []
    return "\n".join([head, *shown, *more])


def _shown_place(done: Replaced, index: int) -> str:
    """One place as whole lines: what stands beside the replaced text on its lines belongs to it."""
    at, content = done.places[index], done.content
    start = content.rfind(b"\n", 0, at) + 1
    end = content.find(b"\n", at + len(done.old))
    end = len(content) if end < 0 else end + 1
    before, after = content[start:at], content[at + len(done.old) : end]
    gone, there = _lines(before + done.old + after), _lines(before + done.new + after)
    first, last = _same_ends(gone, there)
    above = [*_lines(content[_back(content, start) : start]), *gone[:first]][-CONTEXT_LINES:]
    below = [*gone[len(gone) - last :], *_lines(content[end:], CONTEXT_LINES)][:CONTEXT_LINES]
    number = content.count(b"\n", 0, start) + 1 + first
    shifted = number + index * (done.new.count(b"\n") - done.old.count(b"\n"))
    added = there[first : len(there) - last]
    return "\n".join(
        [
            *_numbered(shifted - len(above), " ", above),
            *_numbered(number, "-", gone[first : len(gone) - last]),
            *_numbered(shifted, "+", added),
            *_numbered(shifted + len(added), " ", below),
        ]
    )


def _same_ends(gone: list[str], there: list[str]) -> tuple[int, int]:
    """How many lines at the beginning, and at the end, are the same on both sides."""
    shorter = min(len(gone), len(there))
    first = next((n for n in range(shorter) if gone[n] != there[n]), shorter)
    last = next((n for n in range(shorter - first) if gone[-1 - n] != there[-1 - n]), shorter - first)
    return first, last


def _back(content: bytes, start: int) -> int:
    """Where the lines begin that stand right before `start`, the beginning of a line."""
    for _ in range(CONTEXT_LINES):
        start = content.rfind(b"\n", 0, max(start - 1, 0)) + 1
    return start


def _numbered(first: int, mark: str, lines: list[str]) -> Iterator[str]:
    for number, line in enumerate(lines[:MAX_LINES], first):
        yield f"{number}\t{mark} {_cut(line)}"
    if len(lines) > MAX_LINES:
        yield f"\t{mark} [{len(lines) - MAX_LINES} more lines]"


def not_unique(content: bytes, old: bytes, places: list[int]) -> str:
    numbers = [content.count(b"\n", 0, at) + 1 for at in places[:_NAMED_LINES]]
    more = f" and {len(places) - _NAMED_LINES} more" if len(places) > _NAMED_LINES else ""
    return (
        f"old occurs {len(places)} times, in lines {', '.join(map(str, numbers))}{more}: add lines before or "
        "after it until it is unique, or set all to true"
    )


def not_found(content: bytes, old: bytes, new: bytes) -> str:
    """Why the text is not there, as far as that can be told, with what is there instead."""
    lines = _lines(content, _COMPARED_LINES)
    wanted = _lines(old)
    same = _alike_but_for_blanks(lines, wanted)
    if same is not None:
        stretch = _shown_stretch(lines, same, len(wanted))
        return (
            f"old was not found: line {same + 1} and what follows differ from it only in blanks, tabs or "
            f"line ends. Copy the text exactly as it is:\n{stretch}"
        )
    if new.strip() and new in content:
        number = content.count(b"\n", 0, content.find(new)) + 1
        return f"old was not found, but new is there already, in line {number}: the edit may have been made before"
    near = _nearest(lines, wanted)
    if near is None:
        return "old was not found, nor anything like it; view the file and copy the text exactly"
    return (
        "old was not found. The nearest lines are these; copy the text exactly:\n"
        f"{_shown_stretch(lines, near, min(len(wanted), MAX_LINES))}"
    )


def _alike_but_for_blanks(lines: list[str], wanted: list[str]) -> int | None:
    """Where the lines of `wanted` are, when blanks are left out of account. The first and the last one may
    be parts of lines."""
    plain = ["".join(line.split()) for line in wanted]
    if not any(plain):
        return None
    squeezed = ["".join(line.split()) for line in lines]
    if len(plain) == 1:
        return next((index for index, line in enumerate(squeezed) if plain[0] in line), None)
    last = len(plain) - 1
    for index in range(len(squeezed) - last):
        if (
            squeezed[index].endswith(plain[0])
            and squeezed[index + last].startswith(plain[last])
            and squeezed[index + 1 : index + last] == plain[1:last]
        ):
            return index
    return None


def _nearest(lines: list[str], wanted: list[str]) -> int | None:
    """The line that is most like the longest one that was looked for, as the start of the whole."""
    at, longest = max(enumerate(wanted), key=lambda item: len(item[1].strip()))
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(longest.strip()[:_COMPARED_CHARS])
    likely: list[tuple[float, int]] = []
    for index, line in enumerate(lines[:_NEAREST_OF]):
        matcher.set_seq1(line.strip()[:_COMPARED_CHARS])
        if matcher.real_quick_ratio() > _CLOSE and (at_most := matcher.quick_ratio()) > _CLOSE:
            likely.append((at_most, -index))
    best, best_ratio = None, _CLOSE
    for at_most, negative in sorted(likely, reverse=True)[:_MATCHED]:
        if at_most <= best_ratio:
            break
        matcher.set_seq1(lines[-negative].strip()[:_COMPARED_CHARS])
        if (ratio := matcher.ratio()) > best_ratio:
            best, best_ratio = -negative, ratio
    return None if best is None else max(best - at, 0)


def _shown_stretch(lines: list[str], start: int, count: int) -> str:
    stretch = lines[start : start + min(count, MAX_LINES)]
    return "\n".join(f"{number}\t{_cut(line)}" for number, line in enumerate(stretch, start + 1))


def _cut(line: str) -> str:
    return line if len(line) <= MAX_LINE_CHARS else f"{line[:MAX_LINE_CHARS]}…"


def _lines(raw: bytes, limit: int | None = None) -> list[str]:
    """Lines without their ends, at most `limit`. Decoding never fails."""
    parts = raw.split(b"\n", -1 if limit is None else limit)
    if parts[-1] == b"" or (limit is not None and len(parts) > limit):
        parts.pop()
    return [part.removesuffix(b"\r").decode("utf-8", "replace").replace("\0", "␀") for part in parts]
