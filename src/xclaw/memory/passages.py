"""What can be found, and what was: the words between an index and those who ask it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a source."""

    key: str
    """Names it in its source."""
    text: str
    place: str = ""
    """Where in the source it is, for people: a heading, a page, lines."""
    author: str = ""
    at: float = 0.0
    """Unix time, seconds."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that fits, the better the nearer `relevance` is to 1; `score` weighs its age in."""

    source: str
    passage: Passage
    relevance: float
    score: float
