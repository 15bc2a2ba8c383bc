"""The knowledge base: documents of one user, found by words and by meaning, with where they say it (SPEC I4).

Adding is incremental: a file whose content is known is not read a second time. Blocks; call it in a thread.
"""

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from xclaw.contracts.errors import UsageError
from xclaw.memory.chunks import passages_of
from xclaw.memory.documents import Candidate, Kind, candidates, read, stamp_of
from xclaw.memory.extraction import extract
from xclaw.memory.index import PassageIndex, Source
from xclaw.memory.layout import UserPlaces
from xclaw.memory.meaning import Embedder
from xclaw.memory.notebook import LEAST_RELEVANCE
from xclaw.memory.passages import Hit
from xclaw.memory.settings import MemorySettings

MAX_FOUND = 20
_FORMAT = "1"
"""Of how documents are cut: with another, all are read again."""
_MOST_EMBEDDED = 1_000_000
EMBEDDING = "embedding"
"""What `Progress` is told at the end, passage by passage, where there is an embedder."""

Progress = Callable[[str, int, int], None]
"""Told what is worked at, how much is done, and of how much."""


class About(msgspec.Struct, frozen=True):
    """What is kept of a document beside its passages."""

    kind: Kind
    size_bytes: int
    passages: int
    added_at: float


@dataclass(frozen=True, slots=True)
class Document:
    """A document in the knowledge base."""

    path: str
    about: About


@dataclass(slots=True)
class Report:
    """What adding did, by path."""

    added: list[str] = field(default_factory=list[str])
    changed: list[str] = field(default_factory=list[str])
    unchanged: list[str] = field(default_factory=list[str])
    gone: list[str] = field(default_factory=list[str])
    """Were added from this folder once, and are not there any more: taken out."""
    refused: dict[str, str] = field(default_factory=dict[str, str])
    """Why each could not be added; what it said before, if it did, is kept."""


class KnowledgeBase:
    """Any number of processes may use one at once."""

    def __init__(self, places: UserPlaces, settings: MemorySettings, embedder: Embedder | None) -> None:
        self._settings = settings
        self._index = PassageIndex(places.knowledge, embedder, durable=True)

    def add(self, paths: Sequence[Path], progress: Progress | None = None) -> Report:
        """Add files, and folders with all below them. What cannot be added is reported, the others are.

        Raises `UsageError` when the index cannot be written.
        """
        report = Report()
        tell = progress or _untold
        tops = [path.resolve() if path.is_dir() else path.absolute() for path in paths]
        total = sum(1 for top in tops for _ in candidates(top, _ignored))
        done = 0
        for top in tops:
            seen: set[str] = set()
            known = self._index.sources()
            for candidate in candidates(top, report.refused.__setitem__):
                tell(str(candidate.path), done, total)
                self._add_one(candidate, known, report)
                seen.add(str(candidate.path))
                done += 1
            gone = [name for name in known if Path(name).is_relative_to(top) and name not in seen]
            if top.is_dir() and gone:
                self._index.remove(gone)
                report.gone.extend(gone)
        tell("", done, total)
        self._index.embed(_MOST_EMBEDDED, lambda made, of: tell(EMBEDDING, made, of))
        return report

    def documents(self) -> list[Document]:
        found = [
            Document(source.source, msgspec.json.decode(source.about, type=About))
            for source in self._index.sources().values()
        ]
        return sorted(found, key=lambda document: document.path)

    def remove(self, path: str) -> list[str]:
        """Take out a document, or all below a folder. Raises `UsageError` when there is none."""
        whole = Path(path).absolute()
        names = [name for name in self._index.sources() if name == path or Path(name).is_relative_to(whole)]
        if not names:
            raise UsageError(f"{path!r} is not in the knowledge base; `xclaw kb list` shows what is")
        self._index.remove(names)
        return names

    def search(self, query: str, k: int) -> list[Hit]:
        """The passages that fit best. Raises `UsageError` for an empty query."""
        if not query.strip():
            raise UsageError("there is nothing to look for: the query is empty")
        found = self._index.search(
            query, max(1, min(k, MAX_FOUND)), now=time.time(), half_life_s=None, sources=None
        )
        return [hit for hit in found if hit.relevance >= LEAST_RELEVANCE]

    @property
    def is_empty(self) -> bool:
        return not self._index.sources()

    def _add_one(self, candidate: Candidate, known: dict[str, Source], report: Report) -> None:
        name = str(candidate.path)
        try:
            before = known.get(name)
            if before is not None and before.stamp == stamp_of(candidate):
                report.unchanged.append(name)
                return
            if before is None and len(known) >= self._settings.max_documents:
                raise UsageError(
                    f"the knowledge base holds {self._settings.max_documents:,} documents already"
                )
            content = read(candidate, self._settings.max_document_bytes)
            digest = f"{_FORMAT}:{content.kind}:{hashlib.sha256(content.raw).hexdigest()}"
            if before is not None and before.digest == digest:
                self._index.touch(name, content.stamp)
                report.unchanged.append(name)
                return
            passages = passages_of(extract(content), content.kind)
        except UsageError as error:
            report.refused[name] = str(error)
            return
        about = About(content.kind, len(content.raw), len(passages), time.time())
        source = Source(name, content.stamp, digest, msgspec.json.encode(about).decode())
        self._index.put(source, passages)
        known[name] = source
        (report.added if before is None else report.changed).append(name)


def _untold(_what: str, _done: int, _total: int) -> None:
    """Nobody watches."""


def _ignored(_path: str, _reason: str) -> None:
    """Counting does not report; adding will."""
