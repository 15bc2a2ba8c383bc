"""Reading files of a directory that somebody else may be changing: by descriptors, through no link."""

import errno
import hashlib
import os
import stat
from collections.abc import Container, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CHUNK = 1 << 20
_NAMED = 5
MAX_DEPTH = 200
"""Each directory on the way to a file is open while it is read."""

FileMode = Literal["100644", "100755", "120000"]


@dataclass(frozen=True, slots=True)
class Found:
    """One file as git keeps it. Of a link, `content` is where it leads."""

    path: str
    mode: FileMode
    content: bytes


@dataclass(frozen=True, slots=True)
class LeftOut:
    path: str
    why: str


def blob_id(content: bytes) -> str:
    """The id that git gives a file of this content."""
    digest = hashlib.sha1(b"blob %d\0" % len(content), usedforsecurity=False)
    digest.update(content)
    return digest.hexdigest()


class Tree:
    """A directory, open. Paths below it are walked one name at a time."""

    def __init__(self, directory: int, max_file_bytes: int) -> None:
        self._directory = directory
        self._max = max_file_bytes
        self._open: list[tuple[str, int]] = []

    def found(self, path: str) -> Found | LeftOut | None:
        """The file at `path`; None when nothing is there now, or a directory is."""
        *above, name = path.split("/")
        if len(above) > MAX_DEPTH:
            return LeftOut(path, f"more than {MAX_DEPTH} directories deep")
        try:
            parent = self._parent(above)
            status = os.stat(name, dir_fd=parent, follow_symlinks=False)
            if stat.S_ISLNK(status.st_mode):
                return self._link(path, name, parent)
            if stat.S_ISDIR(status.st_mode):
                return None
            if not stat.S_ISREG(status.st_mode):
                return LeftOut(path, "no regular file")
            return self._file(path, name, parent)
        except OSError as failure:
            if failure.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                return None
            return LeftOut(path, f"cannot be read: {failure.strerror or failure}")

    def read(self, path: str, limit: int) -> bytes | None:
        """At most `limit` bytes of a regular file, or None for what is none."""
        *above, name = path.split("/")
        try:
            descriptor = os.open(name, _FILE, dir_fd=self._parent(above))
        except OSError:
            return None
        with os.fdopen(descriptor, "rb") as file:
            return file.read(limit) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None

    def is_directory(self, path: str) -> bool:
        if path.count("/") > MAX_DEPTH:
            return False
        try:
            self._parent(path.split("/"))
        except OSError:
            return False
        return True

    def is_there(self, path: str) -> bool:
        """Something of that name, whatever it is."""
        *above, name = path.split("/")
        try:
            os.stat(name, dir_fd=self._parent(above), follow_symlinks=False)
        except OSError:
            return False
        return True

    def close(self) -> None:
        while self._open:
            os.close(self._open.pop()[1])

    def _parent(self, names: list[str]) -> int:
        """The directory of these names; those that it has in common with the last one are open still."""
        kept = 0
        while kept < min(len(names), len(self._open)) and self._open[kept][0] == names[kept]:
            kept += 1
        while len(self._open) > kept:
            os.close(self._open.pop()[1])
        for name in names[kept:]:
            above = self._open[-1][1] if self._open else self._directory
            self._open.append((name, os.open(name, _DIRECTORY, dir_fd=above)))
        return self._open[-1][1] if self._open else self._directory

    def _link(self, path: str, name: str, parent: int) -> Found | LeftOut:
        target = os.readlink(name, dir_fd=parent)
        if not leads_inside(path, target):
            return LeftOut(path, "a link that leads out of the project")
        return Found(path, "120000", os.fsencode(target))

    def _file(self, path: str, name: str, parent: int) -> Found | LeftOut:
        descriptor = os.open(name, _FILE, dir_fd=parent)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                return LeftOut(path, "no regular file")
            content = file.read(self._max + 1) if status.st_size <= self._max else b""
            if status.st_size > self._max or len(content) > self._max:
                return LeftOut(path, f"larger than {self._max} bytes")
        return Found(path, "100755" if status.st_mode & stat.S_IXUSR else "100644", content)


@contextmanager
def opened_tree(directory: str, max_file_bytes: int) -> Generator[Tree]:
    """The directory, which must be one and no link. Raises `OSError`."""
    descriptor = os.open(directory, _DIRECTORY)
    tree = Tree(descriptor, max_file_bytes)
    try:
        yield tree
    finally:
        tree.close()
        os.close(descriptor)


def leads_inside(path: str, target: str) -> bool:
    """Whether a link at `path` stays below the directory, whatever else is a link there: it goes up first, not
    past the top, and then only down. What is above a name is known to nobody, since that may be a link itself."""
    parts = [part for part in target.split("/") if part not in ("", ".")]
    up = next((index for index, part in enumerate(parts) if part != ".."), len(parts))
    return not target.startswith("/") and up <= path.count("/") and ".." not in parts[up:]


def repositories_below(tree: Tree, paths: Iterable[str], known: Container[str] = ()) -> list[str]:
    """Directories that are repositories: those that git lists as one, for their `.git`, and those that are one
    as they lie there, unless that is in `known`."""
    found: set[str] = set()
    for path in paths:
        above, _, name = path.rpartition("/")
        if above and not name and tree.is_directory(above):
            found.add(above)
        elif above and name == "HEAD" and path not in known:
            found.update([above] if all(map(tree.is_directory, _parts_of(above))) else [])
    return sorted(found)


def _parts_of(repository: str) -> tuple[str, str]:
    return f"{repository}/objects", f"{repository}/refs"


def is_below(path: str, directories: Sequence[str]) -> bool:
    return any(path.startswith(f"{directory}/") for directory in directories)


def shown_names(paths: Sequence[str]) -> str:
    """A few, on one line."""
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return ", ".join(map(_shown, paths[:_NAMED])) + more


def _shown(path: str) -> str:
    plain = os.fsencode(path).decode("utf-8", "backslashreplace")
    return "".join(letter if letter.isprintable() else "?" for letter in plain)[:200]
