"""What fits a query: words by how rare they are, meaning by vectors, and age a little.

Relevance is absolute, 0 to 1, so that what does not fit can be left out: the share of the query's
words (weighed by rarity) that a passage has, or its likeness in meaning, whichever says more.
"""

import math
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field

from xclaw.memory.meaning import Embedder
from xclaw.memory.passages import Hit, Passage
from xclaw.memory.words import Term, terms_of

_CANDIDATES = 300
_AGE_WEIGHT = 0.15
_ORDER_WEIGHT = 0.1
"""How much BM25, which also knows how long a passage is, orders those that have the same words."""
_LEAST = 0.05
_SUPPOSED = 20
_ENOUGH_WORDS = 6


@dataclass(slots=True)
class _Candidate:
    covered: float = 0.0
    bm25: float = 0.0
    likeness: float = 0.0
    row: tuple[str, str, str, str, str, float] = field(default=("", "", "", "", "", 0.0))


def search(
    base: sqlite3.Connection,
    query: str,
    embedder: Embedder | None,
    *,
    sources: Sequence[str] | None,
    now: float,
    half_life_s: float | None,
) -> list[Hit]:
    """The candidates in the order of their score."""
    base.execute("CREATE TEMP TABLE asked (source TEXT PRIMARY KEY)")
    if sources is not None:
        base.executemany("INSERT OR IGNORE INTO asked VALUES (?)", [(source,) for source in sources])
    within = "" if sources is None else " AND passages.source IN (SELECT source FROM asked)"
    found: dict[int, _Candidate] = {}
    _by_words(base, terms_of(query), within, found)
    if embedder is not None and query.strip():
        _by_meaning(base, query, embedder, within, found)
    _read_rows(base, found)
    hits = [_hit(candidate, embedder is not None, now, half_life_s) for candidate in found.values()]
    return sorted((hit for hit in hits if hit.relevance >= _LEAST), key=lambda hit: -hit.score)


def _by_words(base: sqlite3.Connection, terms: list[Term], within: str, found: dict[int, _Candidate]) -> None:
    total: tuple[int] = base.execute(f"SELECT count(*) FROM passages WHERE 1{within}").fetchone()
    if not total[0] or not terms:
        return
    together = " OR ".join(term.pattern for term in terms)
    join = "FROM found JOIN passages ON passages.number = found.rowid WHERE found MATCH ?"
    best: list[tuple[int, float]] = base.execute(
        f"SELECT found.rowid, bm25(found, 1.0, 0.3) AS rank {join}{within} ORDER BY rank LIMIT {_CANDIDATES}",
        (together,),
    ).fetchall()
    top = max((-rank for _, rank in best), default=0.0) or 1.0
    for number, rank in best:
        found[number] = _Candidate(bm25=-rank / top)
    rarities: list[float] = []
    for term in terms:
        rows: list[tuple[int]] = base.execute(
            f"SELECT found.rowid {join}{within}", (term.pattern,)
        ).fetchall()
        rarity = term.weight * _rarity(len(rows), total[0])
        rarities.append(rarity)
        for (number,) in rows:
            if number in found:
                found[number].covered += rarity
    # Of a long message a few rare words are enough: most of it is about something else.
    asked = min(sum(rarities), _ENOUGH_WORDS * max(rarities)) or 1.0
    for candidate in found.values():
        candidate.covered = min(1.0, candidate.covered / asked)


def _rarity(having: int, total: int) -> float:
    """What a word says, by how many of all passages have it. A word that none has counts as one that one
    has, and a small collection as a larger one: of five notes, one in two says little about rarity."""
    return math.log((total + _SUPPOSED + 1) / (max(having, 1) + 0.5))


def _by_meaning(
    base: sqlite3.Connection, query: str, embedder: Embedder, within: str, found: dict[int, _Candidate]
) -> None:
    rows: list[tuple[int, bytes]] = base.execute(
        f"SELECT number, vector FROM passages WHERE model = ? AND vector IS NOT NULL{within}",
        (embedder.name,),
    ).fetchall()
    if not rows:
        return
    near = embedder.likeness(embedder.query(query), [vector for _, vector in rows])
    ordered = sorted(zip(near, rows, strict=True), key=lambda pair: -pair[0])
    for at, (likeness, (number, _)) in enumerate(ordered):
        if number in found or (at < _CANDIDATES and likeness > 0):
            found.setdefault(number, _Candidate()).likeness = likeness


def _read_rows(base: sqlite3.Connection, found: dict[int, _Candidate]) -> None:
    for number, candidate in found.items():
        candidate.row = base.execute(
            "SELECT source, key, text, place, author, at FROM passages WHERE number = ?", (number,)
        ).fetchone()


def _hit(candidate: _Candidate, by_meaning: bool, now: float, half_life_s: float | None) -> Hit:
    source, key, text, place, author, at = candidate.row
    relevance = candidate.covered
    if by_meaning:
        more, less = sorted((candidate.covered, candidate.likeness), reverse=True)
        relevance = 0.7 * more + 0.3 * less
    score = relevance * (1 + _ORDER_WEIGHT * candidate.bm25)
    if half_life_s is not None:
        age = max(0.0, now - at)
        score *= 1 - _AGE_WEIGHT * (1 - 0.5 ** (age / half_life_s))
    return Hit(source, Passage(key, text, place, author, at), round(relevance, 4), score)
