"""Text for terminals: what models, tools and files wrote can be read, and controls nothing."""

import re

_VISIBLE = {code: 0x2400 + code for code in range(0x20) if code not in (0x09, 0x0A)}
_CONTROLS = dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
_DIRECTIONS = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C])
_TABLE: dict[int, int | None] = {**_VISIBLE, 0x7F: 0x2421, **_CONTROLS, **_DIRECTIONS}
_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor movement, clearing
    r"|\x1b[\]PX^_][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)"  # OSC, DCS and their like: titles, links, clipboard
    r"|\x1b[ -/]*[0-~]"
)


_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]{0,200}\x1b?|[ -/]*)\Z")


def unfinished_sequence(text: str) -> str:
    """The end of `text` that may be the beginning of an escape sequence."""
    found = _UNFINISHED.search(text)
    return found[0] if found else ""


def printable(text: str) -> str:
    """`text` without terminal escape sequences; other control characters become visible symbols.

    Marks that reorder text are dropped, and unpaired surrogates become `?`: neither can be shown for
    what it is. Safe piece by piece: a sequence cut in two loses its escape character all the same.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _SEQUENCE.sub("", text.replace("\r\n", "\n"))
    return text.translate(_TABLE).encode("utf-8", "replace").decode("utf-8")


def one_line(text: str, limit: int = 100) -> str:
    """`text` on one line of at most `limit` characters."""
    flat = " ".join(printable(text[: limit * 4]).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def seconds(value: float) -> str:
    """A duration for people."""
    if value < 10:
        return f"{value:.1f}s"
    if value < 60:
        return f"{value:.0f}s"
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes:02}m" if hours else f"{minutes}m {rest:02}s"


def tokens(count: int, *, estimated: bool = False) -> str:
    """A number of tokens for people; `~` says that a part of it is an estimate."""
    mark = "~" if estimated else ""
    if count < 10_000:
        return f"{mark}{count:,}"
    return f"{mark}{count / 1000:.0f}k" if count < 1_000_000 else f"{mark}{count / 1_000_000:.1f}M"


def money(usd: float | None) -> str:
    """US dollars; an unknown cost is said to be unknown."""
    if usd is None:
        return "cost unknown"
    if 0 < usd < 0.0001:
        return "under $0.0001"
    return f"${usd:.4f}" if 0 < usd < 1 else f"${usd:.2f}"
