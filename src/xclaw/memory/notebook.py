"""One user's notes: written to their files, and found through an index that follows the files.

The files are the truth. Whatever changed in them, by hand or by another process, is seen at the next
question: by size, time and inode, and by content where those cannot tell. Blocks; call it in a thread.
"""

import hashlib
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from xclaw.contracts.errors import UsageError
from xclaw.contracts.memory import MemoryScope, Recalled
from xclaw.memory.files import Stamp, add_to_file, change_file, read_file, stamp_of
from xclaw.memory.index import PassageIndex, Source, Update
from xclaw.memory.layout import UserPlaces
from xclaw.memory.meaning import Embedder
from xclaw.memory.notes import Note, cleaned, notes_in, rendered, title, torn_lines, without
from xclaw.memory.passages import Hit, Passage
from xclaw.memory.settings import MemorySettings

HALF_LIFE_S = 30 * 86_400.0
MAX_K = 20
LEAST_RELEVANCE = 0.2
_SETTLED_NS = 2_000_000_000
"""A file that was written so lately may change again within the clock's step."""
_EMBEDDED_AT_ONCE = 200

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FiledNote:
    """A note with where it stands."""

    file: str
    """Relative to the user's memory directory."""
    note: Note
    at: float


class Notebook:
    """Any number of threads and processes may use one user's notebook at once."""

    def __init__(self, places: UserPlaces, settings: MemorySettings, embedder: Embedder | None) -> None:
        self.places = places
        self._settings = settings
        self._index = PassageIndex(places.index, embedder, durable=False)

    def remember(self, text: str, agent: str, scope: MemoryScope, key: str) -> str:
        """Raises `UsageError` for a text that is empty or too long, and when the file is full."""
        kept = self._checked(text)
        path = self.places.team_file() if scope == "team" else self.places.agent_file(agent)
        ids = [_note_id(key or f"{time.time_ns()}\0{text}\0{agent}", attempt) for attempt in range(4)]
        chosen = ""

        def addition(content: bytes) -> bytes:
            nonlocal chosen
            standing = _standing(content, kept)
            if standing is not None:
                chosen = standing
                return b""
            chosen = next((made for made in ids if f"- [{made} ".encode() not in content), ids[-1])
            note = rendered(chosen, time.time(), agent, kept)
            begin = "" if content else title("the team" if scope == "team" else agent)
            added = f"{begin}{note}".encode("utf-8", "replace")
            if len(content) + len(added) > self._settings.max_file_bytes:
                raise UsageError(
                    f"the memory file {path} is full ({len(content):,} of {self._settings.max_file_bytes:,} "
                    "bytes): forget what is not needed any more"
                )
            return added

        add_to_file(path, addition, durable=self._settings.durable)
        return chosen

    def recall(self, query: str, k: int, agent: str) -> list[Recalled]:
        return self._found(query, k, self.places.seen_by(agent))

    def search(self, query: str, k: int) -> list[Recalled]:
        """In every file of the user."""
        return self._found(query, k, self.places.files())

    def forget(self, note_id: str, agent: str | None) -> Recalled:
        """Of one agent and the team; None: of anybody. Raises `UsageError` when there is none."""
        wanted = note_id.strip().strip("[]`'\"").split(" ")[0].casefold()
        files = self.places.files() if agent is None else self.places.seen_by(agent)
        for path in files:
            found = next((filed for filed in self._notes(path) if filed.note.id == wanted), None)
            if found is not None and self._removed(path, found.note):
                return _recalled(found)
        raise UsageError(f"there is no memory {note_id[:60]!r}. Ids are what recall and the list show.")

    def listed(self, agent: str | None = None) -> list[FiledNote]:
        """Every note, file by file; of one agent and the team, or of everybody."""
        files = self.places.files() if agent is None else self.places.seen_by(agent)
        return [filed for path in files for filed in self._notes(path)]

    def unreadable(self) -> dict[str, str]:
        """What stands in files and is no note: the file, and why."""
        faults: dict[str, str] = {}
        for path in self.places.files():
            try:
                torn = torn_lines(_text(read_file(path)))
            except UsageError as error:
                faults[self._name(path)] = str(error)
                continue
            if torn:
                faults[self._name(path)] = (
                    f"{torn} unfinished line{'s' if torn > 1 else ''}, left as they are"
                )
        return faults

    def _checked(self, text: str) -> str:
        kept = cleaned(text)
        most = self._settings.max_note_chars
        if not kept:
            raise UsageError("there is nothing to remember: the text is empty")
        if len(kept) > most:
            raise UsageError(
                f"a memory has at most {most:,} characters, this one {len(kept):,}: remember the gist, and "
                "deliver the rest as a file"
            )
        return kept

    def _found(self, query: str, k: int, files: list[Path]) -> list[Recalled]:
        if not query.strip():
            raise UsageError("there is nothing to look for: the query is empty")
        self._follow(files)
        hits = self._index.search(
            query,
            max(1, min(k, MAX_K)),
            now=time.time(),
            half_life_s=HALF_LIFE_S,
            sources=[self._name(path) for path in files],
        )
        return [_recalled_hit(hit) for hit in hits if hit.relevance >= LEAST_RELEVANCE]

    def _follow(self, files: Sequence[Path]) -> None:
        """Bring the index up to the files. One that cannot be read is logged, and the others go on."""
        known = self._index.sources()
        changed = False
        for path in files:
            try:
                changed |= self._follow_file(path, known.get(self._name(path)))
            except UsageError as error:
                logger.warning("a memory file is left out: %s", error)
        standing = {self._name(path) for path in self.places.files()}
        gone = [name for name in known if name not in standing]
        if gone:
            self._index.remove(gone)
        if changed:
            self._index.embed(_EMBEDDED_AT_ONCE)

    def _follow_file(self, path: Path, known: Source | None) -> bool:
        """Whether its notes have changed."""
        if known is not None and known.stamp == _written(stamp_of(path)):
            return False
        changed = False

        def read(known: Source | None) -> Update | None:
            nonlocal changed
            # Taken before the content is read: what is written meanwhile is seen the next time.
            stamp = stamp_of(path)
            content = read_file(path)
            digest = hashlib.sha256(content).hexdigest()
            is_settled = stamp is not None and time.time_ns() - stamp.changed_ns > _SETTLED_NS
            source = Source(self._name(path), _written(stamp) if is_settled else "", digest)
            if known is not None and known.digest == digest:
                return None if known == source else Update(source, None)
            changed = True
            at = (stamp.changed_ns if stamp else 0) / 1e9
            passages = [
                Passage(note.id, note.text, author=note.author, at=at if note.at is None else note.at)
                for note in notes_in(_text(content))
            ]
            return Update(source, passages)

        self._index.follow(self._name(path), read)
        return changed

    def _notes(self, path: Path) -> list[FiledNote]:
        try:
            content = read_file(path)
        except UsageError as error:
            logger.warning("a memory file is left out: %s", error)
            return []
        stamp = stamp_of(path)
        at = (stamp.changed_ns if stamp else 0) / 1e9
        name = self._name(path)
        return [
            FiledNote(name, note, at if note.at is None else note.at) for note in notes_in(_text(content))
        ]

    def _removed(self, path: Path, note: Note) -> bool:
        """Whether the note was still there. The rest of the file stays, character by character."""
        removed = False

        def change(content: bytes) -> bytes | None:
            nonlocal removed
            text = _text(content)
            found = next((other for other in notes_in(text) if other.id == note.id), None)
            if found is None:
                return None
            removed = True
            return without(text, found).encode("utf-8", "surrogateescape")

        change_file(path, change, durable=self._settings.durable)
        return removed

    def _name(self, path: Path) -> str:
        return str(path.relative_to(self.places.root))


def _standing(content: bytes, kept: str) -> str | None:
    """The note that says this already; it may be what this very call wrote before a crash."""
    if b"] " + kept.split("\n", 1)[0].encode() not in content:
        return None
    return next((note.id for note in notes_in(_text(content)) if note.text == kept and note.author), None)


def _note_id(key: str, attempt: int) -> str:
    digest = hashlib.sha256(f"{key}\0{attempt}".encode("utf-8", "surrogatepass")).hexdigest()
    return f"m{digest[:10]}"


def _text(content: bytes) -> str:
    """Every byte survives being read and written again."""
    return content.decode("utf-8", "surrogateescape")


def _written(stamp: Stamp | None) -> str:
    return "" if stamp is None else f"{stamp.inode}:{stamp.size}:{stamp.changed_ns}"


def _shown(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def _recalled(filed: FiledNote) -> Recalled:
    note = filed.note
    return Recalled(note.id, _shown(note.text), _shown(note.author), filed.at, filed.file, 1.0)


def _recalled_hit(hit: Hit) -> Recalled:
    passage = hit.passage
    return Recalled(passage.key, passage.text, passage.author, passage.at, hit.source, hit.relevance)
