"""Bytes on disk: files that appear whole or not at all, and slices that never fill memory."""

import contextlib
import errno
import hashlib
import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager

from xclaw.contracts.workspaces import FileSlice
from xclaw.workspaces.names import TEMPORARY_PREFIX
from xclaw.workspaces.owners import give_to_owner

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_HARD_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK})
_CHUNK = 1 << 20
_PROBE = 8192
"""Bytes looked at to tell text from binary."""


@contextmanager
def temporary_file(directory: int, content: bytes, mode: int, *, durable: bool) -> Generator[str]:
    """A complete file under a passing name in `directory`; gone afterwards if still there.

    `durable`: its bytes survive a power cut too, from here on.
    """
    name = TEMPORARY_PREFIX + secrets.token_hex(8)
    descriptor = os.open(name, _NEW, mode, dir_fd=directory)
    try:
        try:
            write_all(descriptor, content)
            give_to_owner(descriptor, directory)
            os.fchmod(descriptor, mode)
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        yield name
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=directory)


def replace_file(directory: int, name: str, content: bytes, mode: int, *, durable: bool) -> None:
    """Write `name` so that a reader, or a crash, sees the old content or the new, nothing between."""
    with temporary_file(directory, content, mode, durable=durable) as temporary:
        os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)


def publish(directory: int, temporary: str, name: str) -> bool:
    """Give a temporary file its name, unless that is taken: then False."""
    try:
        os.link(temporary, name, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        return _publish_by_claim(directory, temporary, name)
    return True


def _publish_by_claim(directory: int, temporary: str, name: str) -> bool:
    """For file systems without hard links: take the name exclusively, then move over it."""
    try:
        os.close(os.open(name, _NEW, 0o600, dir_fd=directory))
    except FileExistsError:
        return False
    os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    return True


def write_all(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def hash_file(descriptor: int, limit: int) -> tuple[str, int]:
    """sha256 and size of an open file; reading stops after `limit` bytes and one."""
    digest = hashlib.sha256()
    size = 0
    while size <= limit and (chunk := os.pread(descriptor, _CHUNK, size)):
        digest.update(chunk)
        size += len(chunk)
    return digest.hexdigest(), size


def read_whole(descriptor: int, limit: int) -> bytes:
    """At most `limit` bytes from the beginning."""
    content = bytearray()
    while len(content) < limit and (
        chunk := os.pread(descriptor, min(_CHUNK, limit - len(content)), len(content))
    ):
        content += chunk
    return bytes(content)


def read_slice(descriptor: int, size: int, offset: int, limit: int) -> FileSlice:
    """`limit` bytes from `offset`, ending between two characters where there is one to end at."""
    raw = os.pread(descriptor, limit, offset)
    probe = raw[:_PROBE] if offset == 0 else os.pread(descriptor, _PROBE, 0)
    binary = b"\0" in probe
    if not binary and offset + len(raw) < size:
        raw = raw[: len(raw) - _unfinished_bytes(raw)]
    end = offset + len(raw)
    text = raw.decode("utf-8", "replace").replace("\0", "␀")
    return FileSlice(text, size, offset, end if raw and end < size else None, binary)


def _unfinished_bytes(raw: bytes) -> int:
    """How many bytes at the end begin a UTF-8 character that goes on behind them."""
    for back in range(1, min(4, len(raw)) + 1):
        byte = raw[-back]
        if byte & 0xC0 == 0x80:
            continue
        needed = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
        return back if needed > back and back < len(raw) else 0
    return 0
