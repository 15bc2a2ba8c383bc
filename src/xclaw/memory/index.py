"""An index of passages: by their words (FTS5), and by vectors where there is an embedder.

Made of sources, each put as a whole. Blocks; call it in a thread.
"""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from xclaw.memory.database import IndexFile
from xclaw.memory.meaning import Embedder
from xclaw.memory.passages import Hit, Passage
from xclaw.memory.ranking import search
from xclaw.memory.words import grams_of, plain, storable, words_of

FORMAT = 1
_EMBEDDED_AT_ONCE = 64
_SCHEMA = """
CREATE TABLE sources (
    source TEXT PRIMARY KEY, stamp TEXT NOT NULL, digest TEXT NOT NULL, about TEXT NOT NULL
) STRICT;
CREATE TABLE passages (
    number INTEGER PRIMARY KEY, source TEXT NOT NULL, key TEXT NOT NULL, text TEXT NOT NULL,
    place TEXT NOT NULL, author TEXT NOT NULL, at REAL NOT NULL, model TEXT NOT NULL, vector BLOB
) STRICT;
CREATE INDEX passages_of ON passages (source);
CREATE VIRTUAL TABLE found USING fts5 (
    words, grams, tokenize = "porter unicode61 remove_diacritics 2"
);
"""

Embedded = tuple[str, bytes | None]
"""The embedder's name and the vector; empty and None where it has not been made."""


@dataclass(frozen=True, slots=True)
class Source:
    """A source as the index knows it."""

    source: str
    stamp: str
    """Says cheaply whether it may have changed."""
    digest: str
    """Of its content."""
    about: str = ""
    """What the owner of the index keeps beside it."""


@dataclass(frozen=True, slots=True)
class Update:
    """What a source is now."""

    source: Source
    passages: Sequence[Passage] | None
    """None: the same as before."""


class PassageIndex:
    """The passages of any number of sources in the file `path`. Any number of processes may use it.

    Every method raises `UsageError` when the file cannot be used.
    """

    def __init__(self, path: Path, embedder: Embedder | None, *, durable: bool) -> None:
        self._file = IndexFile(path, _SCHEMA, FORMAT, durable=durable)
        self._embedder = embedder

    def sources(self) -> dict[str, Source]:
        def work(base: sqlite3.Connection) -> list[tuple[str, str, str, str]]:
            return base.execute("SELECT source, stamp, digest, about FROM sources").fetchall()

        return {row[0]: Source(*row) for row in self._file.read(work, [])}

    def put(self, source: Source, passages: Sequence[Passage]) -> None:
        """Make these the passages of a source. What was there already stays, with its vectors."""
        kept = [_storable(passage) for passage in passages]
        known = {row[1] for row in self._file.read(lambda base: _standing(base, source.source), [])}
        # Cutting into words takes long, so it is not done under the lock.
        found_by = {passage: _found_by(passage) for passage in kept if passage not in known}
        self._file.change(lambda base: _put(base, source, kept, found_by))

    def follow(self, name: str, read: Callable[[Source | None], Update | None]) -> None:
        """Bring a source up to date. `read` is told what is known of it, and answers what it is now (None:
        that still holds). It is called under the lock: of two who follow at once, the later reads the newer.
        """

        def work(base: sqlite3.Connection) -> None:
            row: tuple[str, str, str, str] | None = base.execute(
                "SELECT source, stamp, digest, about FROM sources WHERE source = ?", (name,)
            ).fetchone()
            update = read(None if row is None else Source(*row))
            if update is None:
                return
            if update.passages is None:
                _put_source(base, update.source)
            else:
                _put(base, update.source, [_storable(passage) for passage in update.passages], {})

        self._file.change(work)

    def touch(self, source: str, stamp: str) -> None:
        """Its content is the same under a new stamp."""

        def work(base: sqlite3.Connection) -> None:
            base.execute("UPDATE sources SET stamp = ? WHERE source = ?", (stamp, source))

        self._file.change(work)

    def remove(self, sources: Sequence[str]) -> None:
        def work(base: sqlite3.Connection) -> None:
            for source in sources:
                _delete(base, [number for number, _, _ in _standing(base, source)])
                base.execute("DELETE FROM sources WHERE source = ?", (source,))

        self._file.change(work)

    def embed(self, most: int, progress: Callable[[int, int], None] | None = None) -> int:
        """Make up to `most` vectors that are missing; answers how many were made.

        `progress` is told how many are made, and of how many.
        """
        if self._embedder is None:
            return 0
        name = self._embedder.name
        total = min(most, self._file.read(lambda base: _count_without(base, name), 0))
        made = 0
        while made < total:
            part = self._file.read(lambda base: _without(base, name), [])
            if not part:
                break
            vectors = self._embedder.passages([text for _, text in part])
            rows = [(name, vector, *row) for row, vector in zip(part, vectors, strict=True)]
            self._file.change(lambda base, rows=rows: _add_vectors(base, rows))
            made += len(part)
            if progress is not None:
                progress(min(made, total), total)
        return made

    def search(
        self, query: str, limit: int, *, now: float, half_life_s: float | None, sources: Sequence[str] | None
    ) -> list[Hit]:
        """The passages that fit best, of these sources (None: all), the best first.

        `half_life_s`: after this age a passage counts a little less; None: age does not matter.
        """

        def work(base: sqlite3.Connection) -> list[Hit]:
            return search(base, query, self._embedder, sources=sources, now=now, half_life_s=half_life_s)

        return self._file.read(work, [])[:limit]


def _put(
    base: sqlite3.Connection,
    source: Source,
    kept: Sequence[Passage],
    found_by: Mapping[Passage, tuple[str, str]],
) -> None:
    standing = _standing(base, source.source)
    vectors = {passage.text: embedded for _, passage, embedded in standing if embedded[0]}
    wanted, there = set(kept), {passage for _, passage, _ in standing}
    _delete(base, [number for number, passage, _ in standing if passage not in wanted])
    for passage in dict.fromkeys(kept):
        if passage not in there:
            words = found_by.get(passage) or _found_by(passage)
            _insert(base, source.source, passage, vectors.get(passage.text, ("", None)), words)
    _put_source(base, source)


def _put_source(base: sqlite3.Connection, source: Source) -> None:
    base.execute(
        "INSERT OR REPLACE INTO sources VALUES (?, ?, ?, ?)",
        (source.source, source.stamp, source.digest, source.about),
    )


def _standing(base: sqlite3.Connection, source: str) -> list[tuple[int, Passage, Embedded]]:
    rows: list[tuple[int, str, str, str, str, float, str, bytes | None]] = base.execute(
        "SELECT number, key, text, place, author, at, model, vector FROM passages WHERE source = ?", (source,)
    ).fetchall()
    return [(row[0], Passage(*row[1:6]), (row[6], row[7])) for row in rows]


def _delete(base: sqlite3.Connection, numbers: Sequence[int]) -> None:
    rows = [(number,) for number in numbers]
    base.executemany("DELETE FROM found WHERE rowid = ?", rows)
    base.executemany("DELETE FROM passages WHERE number = ?", rows)


def _count_without(base: sqlite3.Connection, model: str) -> int:
    row: tuple[int] = base.execute("SELECT count(*) FROM passages WHERE model != ?", (model,)).fetchone()
    return row[0]


def _without(base: sqlite3.Connection, model: str) -> list[tuple[int, str]]:
    """Some passages that have no vector of this model."""
    return base.execute(
        "SELECT number, text FROM passages WHERE model != ? LIMIT ?", (model, _EMBEDDED_AT_ONCE)
    ).fetchall()


def _add_vectors(base: sqlite3.Connection, rows: Sequence[tuple[str, bytes, int, str]]) -> None:
    base.executemany("UPDATE passages SET model = ?, vector = ? WHERE number = ? AND text = ?", rows)


def _storable(passage: Passage) -> Passage:
    return replace(
        passage,
        key=storable(passage.key),
        text=storable(passage.text),
        place=storable(passage.place),
        author=storable(passage.author),
    )


def _found_by(passage: Passage) -> tuple[str, str]:
    text = plain(f"{passage.place} {passage.text}")
    return " ".join(words_of(text)), " ".join(grams_of(text))


def _insert(
    base: sqlite3.Connection, source: str, passage: Passage, embedded: Embedded, words: tuple[str, str]
) -> None:
    number = base.execute(
        "INSERT INTO passages (source, key, text, place, author, at, model, vector)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (source, passage.key, passage.text, passage.place, passage.author, passage.at, *embedded),
    ).lastrowid
    base.execute("INSERT INTO found (rowid, words, grams) VALUES (?, ?, ?)", (number, *words))
