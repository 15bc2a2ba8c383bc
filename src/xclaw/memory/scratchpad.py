"""The scratchpads of this machine: one directory and one append-only log for each conversation."""

import asyncio
import hashlib
import time
from pathlib import Path

from xclaw.contracts.errors import UsageError
from xclaw.contracts.memory import PadEntry, Whose
from xclaw.contracts.users import OWNER
from xclaw.memory.files import add_to_file, read_file
from xclaw.memory.layout import folder_of
from xclaw.memory.pad_log import Line, Pad, author_name, encoded, entry_name, folded, storable
from xclaw.memory.settings import MemorySettings
from xclaw.memory.words import plain, told_words

_LOG = "scratchpad.jsonl"
_NAMES_SHOWN = 20


class FileScratchpad:
    """See `Scratchpad`. Holds nothing open, so there is nothing to close."""

    def __init__(self, settings: MemorySettings) -> None:
        self._settings = settings

    async def write(
        self, whose: Whose, name: str, text: str, *, author: str, expected: int | None = None, key: str = ""
    ) -> PadEntry:
        line = Line("write", entry_name(name), storable(text), author_name(author), time.time(), _digest(key))
        return await asyncio.to_thread(self._add, self._path(whose), line, expected)

    async def append(self, whose: Whose, name: str, text: str, *, author: str, key: str = "") -> PadEntry:
        if not text.strip():
            raise UsageError("there is nothing to append: the text is empty")
        line = Line(
            "append", entry_name(name), storable(text), author_name(author), time.time(), _digest(key)
        )
        return await asyncio.to_thread(self._add, self._path(whose), line, None)

    async def read(self, whose: Whose, name: str, version: int | None = None) -> PadEntry:
        path, wanted = self._path(whose), entry_name(name)
        pad = await asyncio.to_thread(self._read, path)
        newest = pad.version(wanted)
        if not newest:
            raise UsageError(f"the scratchpad has no entry {wanted!r}. {_names(pad)}")
        if version is not None and not 1 <= version <= newest:
            raise UsageError(f"{wanted!r} has versions 1 to {newest}, not {version}")
        return pad.at_version(wanted, version or newest)

    async def entries(self, whose: Whose) -> list[PadEntry]:
        path = self._path(whose)
        return await asyncio.to_thread(lambda: _newest(self._read(path)))

    async def search(self, whose: Whose, words: str, limit: int = 10) -> list[PadEntry]:
        wanted = told_words(words)
        if not wanted:
            raise UsageError("there is nothing to look for: name some words")
        entries = await self.entries(whose)
        return await asyncio.to_thread(_best, entries, wanted, limit)

    def _read(self, path: Path) -> Pad:
        return folded(read_file(path, self._read_limit()))

    def _add(self, path: Path, line: Line, expected: int | None) -> PadEntry:
        """Under the lock: what is checked is what the line is added to."""
        made: list[PadEntry] = []

        def addition(content: bytes) -> bytes:
            pad = folded(content)
            before = pad.made_by(line.key)
            if before is not None:
                made.append(before)
                return b""
            self._refuse_conflict(pad, line, expected)
            pad.entries.setdefault(line.name, []).append(line)
            made.append(pad.newest(line.name))
            added = encoded(line)
            self._refuse_excess(pad, made[0], len(content) + len(added))
            return added

        add_to_file(path, addition, durable=self._settings.durable, limit=self._read_limit())
        return made[0]

    def _refuse_conflict(self, pad: Pad, line: Line, expected: int | None) -> None:
        newest = pad.version(line.name)
        if expected is None or expected == newest:
            return
        what = f"is at version {newest} by {pad.newest(line.name).author}" if newest else "does not exist"
        raise UsageError(
            f"{line.name!r} {what}, not at version {expected}: nothing was written. Read it, then write again"
        )

    def _refuse_excess(self, pad: Pad, entry: PadEntry, size: int) -> None:
        limits = self._settings
        if len(entry.text) > limits.max_pad_entry_chars:
            raise UsageError(
                f"{entry.name!r} would have {len(entry.text):,} characters, at most "
                f"{limits.max_pad_entry_chars:,}: deliver it as a file and write its path here, or use several "
                "entries"
            )
        if len(pad.entries) > limits.max_pad_entries:
            raise UsageError(
                f"the scratchpad has {limits.max_pad_entries} entries, and no more fit: add to one that exists"
            )
        if size > limits.max_pad_bytes:
            raise UsageError(
                f"the scratchpad is full: {limits.max_pad_bytes:,} bytes with all versions. Deliver files instead"
            )

    def _path(self, whose: Whose) -> Path:
        if not whose.conversation:
            raise UsageError("a scratchpad belongs to a conversation, and there is none here")
        root = Path(self._settings.scratchpads)
        base = root if whose.user == OWNER else root / "users" / folder_of(whose.user)
        return base / f"of-{folder_of(whose.conversation)}" / _LOG

    def _read_limit(self) -> int:
        """A half-written line may stand beyond what may be added to."""
        return self._settings.max_pad_bytes * 2


def _newest(pad: Pad) -> list[PadEntry]:
    return [pad.newest(name) for name in sorted(pad.entries)]


def _best(entries: list[PadEntry], wanted: list[str], limit: int) -> list[PadEntry]:
    """By how many of the words are in it; longer ones say more."""
    scored: list[tuple[int, PadEntry]] = []
    for entry in entries:
        text = plain(f"{entry.name}\n{entry.text}").casefold()
        present = [word for word in wanted if word in text]
        if present:
            scored.append((sum(map(len, present)), entry))
    scored.sort(key=lambda pair: (-pair[0], pair[1].name))
    return [entry for _, entry in scored[:limit]]


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:20] if key else ""


def _names(pad: Pad) -> str:
    names = sorted(pad.entries)
    if not names:
        return "It is empty."
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return f"It has: {', '.join(names[:_NAMES_SHOWN])}{more}."
