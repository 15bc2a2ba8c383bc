"""Memory files on disk: read whole, added to, replaced. A crash leaves the old content or the new.

Adding happens under the directory's lock and is forced to the disk after the lock is free again, so
that nobody waits for somebody else's disk. Blocks; call it in a thread.
"""

import glob
import os
import secrets
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from xclaw.contracts.errors import UsageError
from xclaw.memory.layout import LOCK
from xclaw.memory.locking import locked

MAX_READ_BYTES = 16_000_000
"""A larger file is no memory file."""
_OPEN = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


@dataclass(frozen=True, slots=True)
class Stamp:
    """Tells whether a file has changed."""

    inode: int
    size: int
    changed_ns: int


def make_directory(path: Path) -> None:
    """Make it and what is missing above it, for this user only."""
    if path.exists():
        return
    for directory in (*reversed(path.parents), path):
        if not directory.exists():
            directory.mkdir(mode=0o700, exist_ok=True)


def stamp_of(path: Path) -> Stamp | None:
    """None when there is no such file."""
    try:
        status = path.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None
    return Stamp(status.st_ino, status.st_size, status.st_mtime_ns)


def read_file(path: Path, limit: int = MAX_READ_BYTES) -> bytes:
    """The whole file; empty when there is none.

    Raises `UsageError` for what is no regular file, or too large, or cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | _OPEN)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise _unusable(path, error) from error
    try:
        size = _size_of(descriptor, path)
        if size > limit:
            raise UsageError(f"{path} has {size:,} bytes, at most {limit:,} are read; shorten it")
        with os.fdopen(os.dup(descriptor), "rb") as file:
            return file.read(limit)
    except OSError as error:
        raise _unusable(path, error) from error
    finally:
        os.close(descriptor)


def add_to_file(
    path: Path, addition: Callable[[bytes], bytes], *, durable: bool, limit: int = MAX_READ_BYTES
) -> None:
    """Append what `addition` makes of the content so far (nothing: leave the file alone).

    An append that a killed process left without its end is closed first. If the disk is full, the file
    is as before. Raises `UsageError`, and whatever `addition` raises.
    """
    try:
        make_directory(path.parent)
        with locked(path.parent / LOCK):
            content = read_file(path, limit)
            added = addition(content)
            if not added:
                return
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _OPEN, 0o600)
            try:
                repair = b"\n" if content and not content.endswith(b"\n") else b""
                _append(descriptor, repair + added, len(content))
            except BaseException:
                os.close(descriptor)
                raise
        try:
            if durable:
                _to_disk(descriptor, path, is_new=not content)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _unusable(path, error) from error


def append_to_file(path: Path, added: bytes) -> None:
    """Append without reading what is there, and without forcing it to the disk: for what is kept elsewhere
    too. Otherwise as `add_to_file`."""
    try:
        make_directory(path.parent)
        with locked(path.parent / LOCK):
            descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | _OPEN, 0o600)
            try:
                size = _size_of(descriptor, path)
                is_torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
                _append(descriptor, b"\n" + added if is_torn else added, size)
            finally:
                os.close(descriptor)
    except OSError as error:
        raise _unusable(path, error) from error


def change_file(path: Path, change: Callable[[bytes], bytes | None], *, durable: bool) -> None:
    """Replace the content by what `change` makes of it (None: leave it). Raises `UsageError`."""
    try:
        make_directory(path.parent)
        with locked(path.parent / LOCK):
            content = change(read_file(path))
            if content is not None:
                _replace(path, content, durable=durable)
    except OSError as error:
        raise _unusable(path, error) from error


def _size_of(descriptor: int, path: Path) -> int:
    """Raises `UsageError` for what is no regular file."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise UsageError(f"{path} is no regular file; move it away")
    return status.st_size


def _append(descriptor: int, content: bytes, size_before: int) -> None:
    view = memoryview(content)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except OSError:
        os.ftruncate(descriptor, size_before)
        raise


def _replace(path: Path, content: bytes, *, durable: bool) -> None:
    """Under the lock, so that what lies there half written is of a writer that died."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.new"):
        left.unlink(missing_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _OPEN, 0o600)
    try:
        try:
            _append(descriptor, content, 0)
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.rename(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if durable:
        _directory_to_disk(path.parent)


def _to_disk(descriptor: int, path: Path, *, is_new: bool) -> None:
    os.fsync(descriptor)
    if is_new:
        _directory_to_disk(path.parent)


def _directory_to_disk(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unusable(path: Path, error: OSError) -> UsageError:
    return UsageError(
        f"cannot use {path}: {error.strerror or error}. Check the file, its directory and the space left"
    )
