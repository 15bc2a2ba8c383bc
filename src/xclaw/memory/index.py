"""An index of passages in an SQLite file of its own: words (FTS5), and vectors where there is an embedder.

Made of sources, each replaced as a whole. The file is a cache: one that is damaged, or of another
format, is begun anew. Blocks; call it in a thread.
"""

import sqlite3
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from xclaw.contracts.errors import UsageError
from xclaw.memory.layout import LOCK
from xclaw.memory.locking import locked
from xclaw.memory.meaning import Embedder
from xclaw.memory.passages import Hit, Passage
from xclaw.memory.ranking import search
from xclaw.memory.words import grams_of, plain, storable, words_of

FORMAT = 1
_BUSY_S = 10.0
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

Answer = TypeVar("Answer")


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


class PassageIndex:
    """The passages of any number of sources in the file `path`. Any number of processes may use it."""

    def __init__(self, path: Path, embedder: Embedder | None, *, durable: bool) -> None:
        self.path = path
        self._embedder = embedder
        self._synchronous = "FULL" if durable else "OFF"

    def sources(self) -> dict[str, Source]:
        rows: list[tuple[str, str, str, str]] = self._read(
            lambda base: base.execute("SELECT source, stamp, digest, about FROM sources"), []
        )
        return {row[0]: Source(*row) for row in rows}

    def put(self, source: Source, passages: Sequence[Passage]) -> None:
        """Replace a source. Vectors of texts that stay are kept; new ones are made here."""

        rows = [_row(passage) for passage in passages]  # cutting into words takes long: not under the lock

        def work(base: sqlite3.Connection) -> None:
            known = _vectors(base, source.source)
            _delete(base, source.source)
            base.execute(
                "INSERT INTO sources VALUES (?, ?, ?, ?)",
                (source.source, source.stamp, source.digest, source.about),
            )
            for passage, words, grams in rows:
                _insert(base, source.source, passage, known.get(passage.text, ("", None)), (words, grams))

        self._change(work)

    def touch(self, source: str, stamp: str) -> None:
        """Its content is the same under a new stamp."""

        def work(base: sqlite3.Connection) -> None:
            base.execute("UPDATE sources SET stamp = ? WHERE source = ?", (stamp, source))

        self._change(work)

    def remove(self, sources: Sequence[str]) -> None:
        def work(base: sqlite3.Connection) -> None:
            for source in sources:
                _delete(base, source)

        self._change(work)

    def embed(self, most: int, progress: Callable[[int, int], None] | None = None) -> int:
        """Make up to `most` vectors that are missing; answers how many were made. `progress`: done, of how many."""
        embedder = self._embedder
        if embedder is None:
            return 0
        name = embedder.name
        counted: list[tuple[int]] = self._read(
            lambda base: base.execute("SELECT count(*) FROM passages WHERE model != ?", (name,)), [(0,)]
        )
        total, made = min(most, counted[0][0]), 0
        while made < total:
            part: list[tuple[int, str]] = self._read(
                lambda base: base.execute(
                    "SELECT number, text FROM passages WHERE model != ? LIMIT ?", (name, _EMBEDDED_AT_ONCE)
                ),
                [],
            )
            if not part:
                break
            vectors = embedder.passages([text for _, text in part])
            rows = [(name, vector, *row) for row, vector in zip(part, vectors, strict=True)]
            self._change(
                lambda base, rows=rows: _executemany(
                    base, "UPDATE passages SET model = ?, vector = ? WHERE number = ? AND text = ?", rows
                )
            )
            made += len(part)
            if progress is not None:
                progress(min(made, total), total)
        return made

    def count(self, source: str) -> int:
        rows: list[tuple[int]] = self._read(
            lambda base: base.execute("SELECT count(*) FROM passages WHERE source = ?", (source,)), [(0,)]
        )
        return rows[0][0]

    def search(
        self, query: str, limit: int, *, now: float, half_life_s: float | None, sources: Sequence[str] | None
    ) -> list[Hit]:
        """The passages that fit best, of these sources (None: all), the best first.

        `half_life_s`: after this age a passage counts a little less; None: age does not matter.
        """
        if not self.path.exists():
            return []
        with self._opened() as base:
            return self._guarded(
                base,
                lambda: search(
                    base, query, self._embedder, sources=sources, now=now, half_life_s=half_life_s
                ),
                [],
            )[:limit]

    def _read(
        self, work: Callable[[sqlite3.Connection], sqlite3.Cursor], empty: list[Answer]
    ) -> list[Answer]:
        if not self.path.exists():
            return empty
        with self._opened() as base:
            return self._guarded(base, lambda: work(base).fetchall(), empty)

    def _guarded(self, base: sqlite3.Connection, work: Callable[[], Answer], empty: Answer) -> Answer:
        """A damaged file answers that it knows nothing; the next change begins it anew."""
        try:
            if _format(base) != FORMAT:
                return empty
            return work()
        except sqlite3.DatabaseError as error:
            if _is_busy(error):
                raise UsageError(f"{self.path} is busy: {error}; try again") from error
            return empty

    def _change(self, work: Callable[[sqlite3.Connection], None]) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(self.path.parent / LOCK):
            try:
                self._transact(work)
            except sqlite3.DatabaseError as error:
                if _is_busy(error):
                    raise UsageError(f"{self.path} is busy: {error}; try again") from error
                self._begin_anew()
                self._transact(work)

    def _transact(self, work: Callable[[sqlite3.Connection], None]) -> None:
        with self._opened() as base:
            base.execute(f"PRAGMA synchronous = {self._synchronous}")
            if _format(base) != FORMAT:
                if _format(base) or base.execute("SELECT 1 FROM sqlite_master").fetchone():
                    raise sqlite3.DatabaseError("another format")
                base.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {FORMAT}; COMMIT;")
            base.execute("BEGIN IMMEDIATE")
            try:
                work(base)
                base.execute("COMMIT")
            except BaseException:
                if base.in_transaction:
                    base.execute("ROLLBACK")
                raise

    def _begin_anew(self) -> None:
        """Put a damaged file aside, in place of the one put aside before."""
        for name in (self.path, Path(f"{self.path}-journal")):
            if name.exists():
                name.replace(f"{name}.damaged")

    @contextmanager
    def _opened(self) -> Generator[sqlite3.Connection]:
        try:
            base = sqlite3.connect(self.path, timeout=_BUSY_S, isolation_level=None)
        except sqlite3.Error as error:
            raise UsageError(f"cannot open {self.path}: {error}") from error
        try:
            yield base
        finally:
            base.close()


def _format(base: sqlite3.Connection) -> int:
    row: tuple[int] = base.execute("PRAGMA user_version").fetchone()
    return row[0]


def _is_busy(error: sqlite3.DatabaseError) -> bool:
    return getattr(error, "sqlite_errorname", "").startswith(
        ("SQLITE_BUSY", "SQLITE_FULL", "SQLITE_CANTOPEN")
    )


def _executemany(base: sqlite3.Connection, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
    base.executemany(statement, rows)


def _vectors(base: sqlite3.Connection, source: str) -> dict[str, tuple[str, bytes | None]]:
    rows: list[tuple[str, str, bytes | None]] = base.execute(
        "SELECT text, model, vector FROM passages WHERE source = ? AND vector IS NOT NULL", (source,)
    ).fetchall()
    return {text: (model, vector) for text, model, vector in rows}


def _delete(base: sqlite3.Connection, source: str) -> None:
    base.execute("DELETE FROM found WHERE rowid IN (SELECT number FROM passages WHERE source = ?)", (source,))
    base.execute("DELETE FROM passages WHERE source = ?", (source,))
    base.execute("DELETE FROM sources WHERE source = ?", (source,))


def _row(passage: Passage) -> tuple[Passage, str, str]:
    """A passage as it can be stored, with what it is found by."""
    kept = Passage(
        passage.key, storable(passage.text), storable(passage.place), storable(passage.author), passage.at
    )
    text = plain(f"{kept.place} {kept.text}")
    return kept, " ".join(words_of(text)), " ".join(grams_of(text))


def _insert(
    base: sqlite3.Connection,
    source: str,
    passage: Passage,
    embedded: tuple[str, bytes | None],
    found_by: tuple[str, str],
) -> None:
    number = base.execute(
        "INSERT INTO passages (source, key, text, place, author, at, model, vector)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (source, passage.key, passage.text, passage.place, passage.author, passage.at, *embedded),
    ).lastrowid
    base.execute("INSERT INTO found (rowid, words, grams) VALUES (?, ?, ?)", (number, *found_by))
