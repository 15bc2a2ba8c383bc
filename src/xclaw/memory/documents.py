"""Files that may become documents: found in folders without leaving them, and read within bounds."""

import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from xclaw.contracts.errors import UsageError
from xclaw.contracts.unicode_forms import is_unicode

Kind = Literal["text", "markdown", "html", "pdf"]

KINDS: dict[str, Kind] = {
    **dict.fromkeys((".md", ".markdown", ".mdx"), "markdown"),
    **dict.fromkeys((".html", ".htm", ".xhtml"), "html"),
    ".pdf": "pdf",
    **dict.fromkeys((".txt", ".text", ".rst", ".org", ".adoc", ".tex", ".csv", ".tsv", ".log"), "text"),
}
"""What is taken from a folder. A file that is named itself may have any ending."""
MAX_TEXT_BYTES = 20_000_000
"""The largest text or HTML file; PDF holds more beside its text."""
_SKIPPED = frozenset({"node_modules", "__pycache__", "venv"})
_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
_PROBE_BYTES = 8_192
_LOOKED_AT = 100_000
_BEYOND_ASCII = re.compile(rb"[\x80-\xff]+")

Refuse = Callable[[str, str], None]
"""Told of each path that is left out, and why."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file that may be added. Only good while the walk that made it stands at it."""

    path: Path
    """Absolute."""
    name: str
    directory: int | None
    """The open directory that `name` is in, so that no link on the way can lead out; None: `path` counts."""


@dataclass(frozen=True, slots=True)
class Content:
    """A file that was read."""

    raw: bytes
    kind: Kind
    stamp: str
    """Says cheaply whether it may have changed since."""


def candidates(top: Path, refuse: Refuse) -> Iterator[Candidate]:
    """The file that `top` is, or the files of known kinds below it. Links and hidden names are not followed."""
    if not top.is_dir():
        yield Candidate(top, top.name, None)
        return
    walk = os.fwalk(top, onerror=lambda error: refuse(str(error.filename), error.strerror or "unreadable"))
    for folder, directories, names, descriptor in walk:
        for name in list(directories):
            if _is_link(name, descriptor):
                refuse(str(Path(folder, name)), "is a link; name its target itself")
        directories[:] = sorted(
            name for name in directories if not name.startswith(".") and name not in _SKIPPED
        )
        for name in sorted(names):
            path = Path(folder, name)
            if name.startswith(".") or path.suffix.casefold() not in KINDS:
                continue
            if _is_link(name, descriptor):
                refuse(str(path), "is a link; name its target itself")
            else:
                yield Candidate(path, name, descriptor)


def stamp_of(candidate: Candidate) -> str:
    """Raises `UsageError` for what is no regular file or has a name that cannot be kept."""
    if not is_unicode(str(candidate.path)):
        raise UsageError("its name is not valid text; rename it")
    try:
        where = candidate.path if candidate.directory is None else candidate.name
        status = os.stat(where, dir_fd=candidate.directory, follow_symlinks=candidate.directory is None)
    except OSError as error:
        raise UsageError(error.strerror or "cannot be read") from error
    if not stat.S_ISREG(status.st_mode):
        raise UsageError("is no regular file")
    return f"{status.st_ino}:{status.st_size}:{status.st_mtime_ns}"


def read(candidate: Candidate, max_bytes: int) -> Content:
    """Raises `UsageError` for what is no regular file, too large, binary or unreadable."""
    stamp = stamp_of(candidate)
    try:
        if candidate.directory is None:
            descriptor = os.open(candidate.path, _OPEN)
        else:
            descriptor = os.open(candidate.name, _OPEN | os.O_NOFOLLOW, dir_fd=candidate.directory)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise UsageError("is no regular file")
            head = file.read(_PROBE_BYTES)
            kind = kind_of(candidate.path, head)
            most = max_bytes if kind == "pdf" else min(max_bytes, MAX_TEXT_BYTES)
            if status.st_size > most:
                raise UsageError(f"has {status.st_size:,} bytes, at most {most:,}; split it")
            return Content(head + file.read(most), kind, stamp)
    except OSError as error:
        raise UsageError(error.strerror or "cannot be read") from error


def kind_of(path: Path, head: bytes) -> Kind:
    """By what it begins with, then by its ending. Raises `UsageError` for a binary file."""
    if b"%PDF-" in head[:1024]:
        return "pdf"
    kind = KINDS.get(path.suffix.casefold(), "text")
    if kind == "pdf":
        raise UsageError("is no PDF, although it is named so")
    if b"\0" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UsageError("is binary; text, Markdown, HTML and PDF can be added")
    return kind


def decoded(raw: bytes) -> str:
    """The text of a file: UTF-8 or UTF-16 where it is that, else the encoding of older Chinese or Western
    files, told apart by whether bytes beyond ASCII come in pairs."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return raw.decode("utf-16", "replace")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        runs = [len(run) for run in _BEYOND_ASCII.findall(raw[:_LOOKED_AT])]
        paired = sum(length for length in runs if length > 1)
        return raw.decode("gb18030" if paired * 2 > sum(runs) else "cp1252", "replace")


def _is_link(name: str, directory: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
    except OSError:
        return False
