"""The files that a search looks at, open, in batches.

A tree is walked from an open directory, one name at a time and never through a link: whatever is swapped
meanwhile, nothing outside is opened.
"""

import os
import stat
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from xclaw.tools.gitignore import MAX_IGNORE_BYTES, Ignored
from xclaw.tools.globs import Glob

BATCH = 64
"""Files that are open at the same time."""
MAX_FILE_BYTES = 10_000_000
MAX_FILES = 20_000
MAX_NAMES = 200_000
_MAX_DEPTH = 40
_PROBE = 8_192
"""Bytes looked at to tell text from binary."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_BOMS = (b"\xff\xfe", b"\xfe\xff")
"""UTF-16, which is text although it holds NUL."""
_NEVER = frozenset({".git", ".hg", ".svn"})


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which files are looked at."""

    globs: tuple[Glob, ...] = ()
    excluding: bool = False
    """The globs say what is left out."""
    ignored_too: bool = False

    def takes(self, parts: tuple[str, ...]) -> bool:
        return not self.globs or any(glob.matches(parts) for glob in self.globs) != self.excluding


@dataclass(slots=True)
class Walked:
    """What was come across."""

    check: Callable[[], None]
    """Called for each name; raises to end the walk."""
    names: int = 0
    files: int = 0
    too_large: int = 0
    is_cut: bool = False
    """There was more than is looked at."""


@dataclass(frozen=True, slots=True)
class OpenFile:
    path: str
    """From the directory that is searched."""
    descriptor: int


@dataclass(slots=True)
class _Batch:
    files: list[OpenFile] = field(default_factory=list[OpenFile])

    def close(self) -> None:
        for file in self.files:
            os.close(file.descriptor)
        self.files = []


def batches(directory: int, wanted: Wanted, walked: Walked) -> Generator[list[OpenFile]]:
    """Text files below an open directory, in order; each batch is closed before the next is opened."""
    batch = _Batch()
    try:
        for file in _files(directory, (), Ignored(), wanted, walked):
            batch.files.append(file)
            if len(batch.files) == BATCH:
                yield batch.files
                batch.close()
        if batch.files:
            yield batch.files
    finally:
        batch.close()


def is_text(descriptor: int) -> bool:
    probe = os.pread(descriptor, _PROBE, 0)
    return b"\0" not in probe or probe.startswith(_BOMS)


def _files(
    directory: int, above: tuple[str, ...], ignored: Ignored, wanted: Wanted, walked: Walked
) -> Iterator[OpenFile]:
    if not wanted.ignored_too:
        ignored = ignored.below(_ignore_file(directory), len(above))
    for name, is_directory in _names(directory, walked):
        parts = (*above, name)
        if walked.names >= MAX_NAMES or walked.files >= MAX_FILES:
            walked.is_cut = True
            return
        walked.check()
        walked.names += 1
        if ignored.leaves_out(parts, is_directory=is_directory):
            continue
        if is_directory and name not in _NEVER:
            yield from _below(directory, parts, ignored, wanted, walked)
        elif not is_directory and wanted.takes(parts):
            descriptor = _opened_text(name, directory, walked)
            if descriptor is not None:
                yield OpenFile("/".join(parts), descriptor)


def _below(
    directory: int, parts: tuple[str, ...], ignored: Ignored, wanted: Wanted, walked: Walked
) -> Iterator[OpenFile]:
    if len(parts) > _MAX_DEPTH:
        walked.is_cut = True
        return
    try:
        deeper = os.open(parts[-1], _DIRECTORY, dir_fd=directory)
    except OSError:
        return  # gone, swapped for something else, or not to be read
    try:
        yield from _files(deeper, parts, ignored, wanted, walked)
    finally:
        os.close(deeper)


def _names(directory: int, walked: Walked) -> list[tuple[str, bool]]:
    """Files and directories, no links, sorted by name."""
    found: list[tuple[str, bool]] = []
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if len(found) >= MAX_NAMES:
                walked.is_cut = True
                break
            if entry.is_dir(follow_symlinks=False):
                found.append((entry.name, True))
            elif entry.is_file(follow_symlinks=False):
                found.append((entry.name, False))
    return sorted(found)


def _opened_text(name: str, directory: int, walked: Walked) -> int | None:
    try:
        descriptor = os.open(name, _FILE, dir_fd=directory)
    except OSError:
        return None
    keep = False
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return None
        if status.st_size > MAX_FILE_BYTES:
            walked.too_large += 1
            return None
        keep = status.st_size > 0 and is_text(descriptor)
    except OSError:
        return None
    finally:
        if not keep:
            os.close(descriptor)
    walked.files += 1
    return descriptor if keep else None


def _ignore_file(directory: int) -> bytes:
    try:
        descriptor = os.open(".gitignore", _FILE, dir_fd=directory)
    except OSError:
        return b""
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return b""
        return os.pread(descriptor, MAX_IGNORE_BYTES, 0)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
