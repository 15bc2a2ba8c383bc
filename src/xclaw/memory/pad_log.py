"""A scratchpad as its log: one JSON line for each write and each append, folded into entries. No I/O.

A line that cannot be read, such as one that a killed process left half written, or that nothing of ours
would have written, is passed over.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

import msgspec

from xclaw.contracts.errors import UsageError
from xclaw.contracts.memory import PadEntry
from xclaw.contracts.unicode_forms import normal_form
from xclaw.memory.blocks import LATEST

MAX_NAME_CHARACTERS = 100


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One change of one entry."""

    op: Literal["write", "append"]
    name: str
    text: str
    author: str
    at: float
    key: str = ""


@dataclass(slots=True)
class Pad:
    """Every version of every entry, in order."""

    entries: dict[str, list[Line]] = field(default_factory=dict[str, list[Line]])

    def version(self, name: str) -> int:
        """The newest; 0 when there is no such entry."""
        return len(self.entries.get(name, ()))

    def at_version(self, name: str, version: int) -> PadEntry:
        lines = self.entries[name][:version]
        return PadEntry(name, version, _text(lines), lines[-1].author, lines[-1].at)

    def newest(self, name: str) -> PadEntry:
        return self.at_version(name, self.version(name))

    def made_by(self, key: str) -> PadEntry | None:
        """The version that this call made before."""
        for name, lines in self.entries.items() if key else ():
            for number, line in enumerate(lines, 1):
                if line.key == key:
                    return self.at_version(name, number)
        return None


_decoder = msgspec.json.Decoder(Line)


def folded(content: bytes) -> Pad:
    pad = Pad()
    for raw in content.split(b"\n"):
        if not raw:
            continue
        try:
            line = _decoder.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        if _is_ours(line):
            pad.entries.setdefault(line.name, []).append(line)
    return pad


def _is_ours(line: Line) -> bool:
    """Names and authors are shown outside of what is fenced as data: none may be more than a label."""
    return _is_name(line.name) and _is_author(line.author) and 0 <= line.at <= LATEST


@lru_cache(maxsize=1_024)
def _is_name(name: str) -> bool:
    try:
        return entry_name(name) == name
    except UsageError:
        return False


@lru_cache(maxsize=1_024)
def _is_author(author: str) -> bool:
    return author_name(author) == author


def author_name(written: str) -> str:
    """Whoever wrote it, in one line."""
    return " ".join(storable(written).split())[:MAX_NAME_CHARACTERS].rstrip() or "unknown"


def encoded(line: Line) -> bytes:
    return msgspec.json.encode(line) + b"\n"


def entry_name(written: str) -> str:
    """The name as it is kept. It is a label and never a path. Raises `UsageError`."""
    name = normal_form("NFC", written).strip().strip("`\"'").strip()
    if not name or len(name) > MAX_NAME_CHARACTERS:
        raise UsageError(
            f"the name of a scratchpad entry has 1 to {MAX_NAME_CHARACTERS} characters, for example plan.md; "
            f"{written[:40]!r} has {len(name)}"
        )
    if any(unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp", "Cf") for character in name):
        raise UsageError(f"the name {name!r} holds invisible characters; use visible ones")
    return name


def storable(text: str) -> str:
    """Text that can be kept as JSON in UTF-8."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _text(lines: Sequence[Line]) -> str:
    """From the last write on, each append on a line of its own."""
    first = max((at for at, line in enumerate(lines) if line.op == "write"), default=0)
    text = lines[first].text
    for line in lines[first + 1 :]:
        text += ("" if not text or text.endswith("\n") else "\n") + line.text
    return text
