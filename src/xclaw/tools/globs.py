"""File name patterns, as in `.gitignore` and as models write them. Matching takes time that is bounded by the
product of both lengths, whoever wrote the pattern: it never goes back further than to the last star."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

_DEEP = "**"
_MAX_ALTERNATIVES = 64
_MAX_CHARS = 200
"""Of a pattern; a longer one matches nothing."""
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")

One = TypeVar("One")
_Accepts = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Glob:
    """One pattern. `anchored`: it is compared with the whole path, not with the name alone."""

    segments: tuple[tuple[_Accepts | None, ...] | None, ...]
    """Tests of single characters, None for a star; None for a `**`."""
    anchored: bool

    def matches(self, parts: Sequence[str]) -> bool:
        compared = parts if self.anchored else parts[-1:]
        return _fits(self.segments, compared, _fits_name)


def parse_glob(pattern: str) -> Glob:
    """One pattern without braces. A slash anywhere but at its end anchors it."""
    if len(pattern) > _MAX_CHARS:
        return Glob(((_never,),), anchored=False)
    anchored = "/" in pattern.rstrip("/")
    names = [name for name in pattern.split("/") if name]
    return Glob(tuple(None if name == _DEEP else tuple(_tokens(name)) for name in names), anchored)


def parse_globs(pattern: str) -> tuple[Glob, ...]:
    """One pattern with braces: `*.{ts,tsx}` is two."""
    waiting, done = [pattern[: _MAX_CHARS + 1]], list[str]()
    while waiting and len(waiting) + len(done) <= _MAX_ALTERNATIVES:
        text = waiting.pop()
        found = _BRACES.search(text)
        if found is None:
            done.append(text)
        else:
            waiting += [text[: found.start()] + one + text[found.end() :] for one in found[1].split(",")]
    return tuple(map(parse_glob, done))


def _fits_name(tokens: tuple[_Accepts | None, ...] | None, name: str) -> bool:
    return tokens is not None and _fits(
        tokens, name, lambda token, character: bool(token and token(character))
    )


def _fits(pattern: Sequence[One | None], text: Sequence[str], fits: Callable[[One, str], bool]) -> bool:
    """Whether all of `text` fits, where None in the pattern is any number of anything."""
    at = star = place = 0
    has_star = False
    index = 0
    while index < len(text):
        part = pattern[at] if at < len(pattern) else None
        if at < len(pattern) and part is None:
            has_star, star, place = True, at, index
            at += 1
        elif part is not None and fits(part, text[index]):
            at, index = at + 1, index + 1
        elif has_star:
            place += 1
            at, index = star + 1, place
        else:
            return False
    return all(part is None for part in pattern[at:])


def _never(_: str) -> bool:
    return False


def _tokens(name: str) -> list[_Accepts | None]:
    found: list[_Accepts | None] = []
    for escaped, group, star, other in re.findall(r"\\(.)|\[((?:[!^])?\]?[^\]]*)\]|(\*+)|([\s\S])", name):
        if star:
            found.append(None)
        elif group:
            found.append(_group(group))
        elif other == "?":
            found.append(lambda _: True)
        else:
            found.append((escaped or other).__eq__)
    return found


def _group(text: str) -> _Accepts:
    """`[a-z]`, `[!abc]`."""
    inverse = text.startswith(("!", "^"))
    ranges = [
        (low, high or low)
        for low, high in re.findall(r"([\s\S])(?:-([\s\S]))?", text.lstrip("!^") if inverse else text)
    ]
    return lambda character: any(low <= character <= high for low, high in ranges) != inverse
