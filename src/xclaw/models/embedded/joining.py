"""Writing a file of a known hash: hashed while it is written, complete or not there at all."""

import asyncio
import hashlib
import json
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import BinaryIO, Literal, Protocol

from xclaw.contracts.errors import UsageError

CHUNK = 8 * 1024 * 1024
"""Bytes between two chances to be cancelled."""

Stage = Literal["wait", "download", "join", "verify"]
Progress = Callable[[Stage, int, int], None]
"""Called on the event loop with the stage, the bytes done and the bytes in total (0: unknown)."""


class CorruptWeights(UsageError):
    """Bytes are not those that the hash stands for."""


class Hash(Protocol):
    def update(self, data: bytes, /) -> None: ...

    def hexdigest(self) -> str: ...


def corrupt(what: str, expected: str, actual: str, advice: str) -> CorruptWeights:
    return CorruptWeights(
        f"{what} is not the expected file: its SHA-256 is {actual}, expected {expected}; {advice}"
    )


async def file_chunks(file: BinaryIO) -> AsyncIterator[bytes]:
    """The rest of an open file, read in a thread."""
    while data := await asyncio.to_thread(file.read, CHUNK):
        yield data


async def hash_file(path: Path, on_bytes: Callable[[int], None]) -> str:
    """The SHA-256 of a file; `on_bytes` is told how many have been read."""
    digest = hashlib.sha256()
    done = 0
    with path.open("rb") as file:
        async for data in file_chunks(file):
            await asyncio.to_thread(digest.update, data)
            done += len(data)
            on_bytes(done)
    return digest.hexdigest()


async def write_verified(target: Path, chunks: AsyncIterator[bytes], sha256: str, source: str) -> None:
    """Write `chunks` to `target`, which appears only when complete and right.

    The caller holds the lock of `target`. What a killed process left is overwritten. Raises
    `CorruptWeights` after removing what was written; cancelling removes it too.
    """
    temporary = target.with_name(target.name + ".tmp")
    digest = hashlib.sha256()
    try:
        with temporary.open("wb") as file:
            async for data in chunks:
                await asyncio.to_thread(_write, file, digest, data)
            await asyncio.to_thread(_sync, file)
        if digest.hexdigest() != sha256:
            raise corrupt(f"what {source} holds", sha256, digest.hexdigest(), "it was not kept")
        publish(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def publish(temporary: Path, target: Path) -> None:
    """Give a synced, verified file its name, durably, and note that it was verified."""
    temporary.replace(target)
    directory = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _write(file: BinaryIO, digest: Hash, data: bytes) -> None:
    file.write(data)
    digest.update(data)


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


class Stamps:
    """Remembers which files were verified, so that a gigabyte is hashed once and not at each start.

    A file counts as verified while its size, change times and inode are what they were.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def holds(self, path: Path, sha256: str) -> bool:
        try:
            stamp: object = json.loads(self._file(path).read_text("utf-8"))
            return stamp == _identity(path, sha256)
        except (OSError, ValueError):
            return False

    def note(self, path: Path, sha256: str) -> None:
        self._file(path).write_text(json.dumps(_identity(path, sha256)), "utf-8")

    def _file(self, path: Path) -> Path:
        name = hashlib.sha256(str(path.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:16]
        return self._directory / f"verified-{name}.json"


def _identity(path: Path, sha256: str) -> list[object]:
    state = path.stat()
    return [sha256, state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino]
