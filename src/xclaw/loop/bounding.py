"""Outputs that are too long for the conversation: both ends stay, the middle is told of."""

from dataclasses import dataclass

from xclaw.contracts.tokens import share_inline

NOTICE_CHARS = 150
"""About what stands in place of the middle."""
_GENERIC = "the middle is left out. Read the rest in parts, by offset, or ask for less"
_TAIL = 4
"""The end gets one part in so many."""
_LINE_SEARCH = 5
"""One part in so many is given up at most for an end to begin or stop with a line."""


@dataclass(frozen=True, slots=True)
class Ends:
    head: str
    tail: str


def bound_output(content: str, limit_chars: int) -> str:
    """`content` within `limit_chars`; of what is longer, the beginning, a notice and the end.

    The limit is for ASCII text. Text that costs more tokens per character, such as Chinese, gets as
    many tokens, so fewer characters.
    """
    share = share_inline(content, limit_chars)
    if share == 1:
        return content
    room = int(len(content) * share)
    notice = f"\n[... {len(content)} characters in all; {_GENERIC} ...]\n"
    room -= len(notice)
    if room < 20:
        return content[: max(0, min(limit_chars, room + len(notice)))]
    tail = room // _TAIL
    return f"{content[: room - tail]}{notice}{content[len(content) - tail :]}"


def both_ends(content: str, limit_chars: int) -> Ends | None:
    """The beginning and the end of what does not fit, in whole lines where that costs little; None when all
    of it fits, or next to nothing would."""
    share = share_inline(content, limit_chars)
    room = int(len(content) * share)
    if share == 1 or room < 20:
        return None
    tail = room // _TAIL
    head, end = content[: room - tail], content[len(content) - tail :]
    stop = head.rfind("\n", len(head) - len(head) // _LINE_SEARCH) + 1
    start = end.find("\n", 0, len(end) // _LINE_SEARCH) + 1
    return Ends(head[:stop] if stop else head, end[start:])


def joined(ends: Ends, content: str, path: str, *, can_view: bool) -> str:
    """What is shown of an output whose whole is kept in the file `path`: both ends of it, and where the
    rest is. `can_view`: whoever reads it has `view_file`."""
    left_out = len(content) - len(ends.head) - len(ends.tail)
    offset = len(ends.head.encode("utf-8", "backslashreplace"))
    how = f"; view_file with offset {offset} reads on from here" if can_view else ""
    middle = f"[... {len(content)} characters in all; {left_out} are left out here{how} ...]"
    before = "" if ends.head.endswith("\n") else "\n"
    return f"{ends.head}{before}{middle}\n{ends.tail}\n[the whole output ({len(content)} characters) is in {path}]"
