"""What a tree delivered, found in its events and opened on the disk, byte for byte as it was delivered."""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import BinaryIO, cast

from xclaw.contracts.artifacts import Pointer
from xclaw.contracts.events import ArtifactDelivered, Entry, RunEnded
from xclaw.workspaces.containment import (
    NotRegular,
    OutsideVisible,
    Place,
    Region,
    absolute_parts,
    opened_file,
)

_CHUNK = 1 << 18
_ANYWHERE = Region((), ())


class Altered(Exception):
    """The file is gone, or is not what was delivered."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """One version of a delivered file, under the name its agent gave it."""

    name: str
    pointer: Pointer


def artifacts_of(entries: Iterable[Entry]) -> tuple[Artifact, ...]:
    """What the runs of these entries delivered, in order, each file once."""
    found: dict[str, Artifact] = {}
    for entry in entries:
        event = entry.event
        if isinstance(event, ArtifactDelivered):
            found[event.pointer.path] = Artifact(event.name, event.pointer)
        elif isinstance(event, RunEnded):
            for pointer in event.artifacts:
                found.setdefault(pointer.path, Artifact(PurePosixPath(pointer.path).name, pointer))
    return tuple(found.values())


@dataclass(frozen=True, slots=True)
class DeliveredFile:
    """A delivered file, open and checked; the caller closes it."""

    file: BinaryIO
    size: int

    async def chunks(self) -> AsyncIterator[bytes]:
        """Its bytes, as many as were delivered. Raises `Altered` when it has become shorter."""
        left = self.size
        while left:
            chunk = await asyncio.to_thread(self.file.read, min(_CHUNK, left))
            if not chunk:
                raise Altered("the file became shorter while it was sent")
            left -= len(chunk)
            yield chunk


async def open_artifact(pointer: Pointer) -> DeliveredFile:
    """Open and check what a pointer of the journal names. Raises `Altered`."""
    return await asyncio.to_thread(_opened, pointer)


def _opened(pointer: Pointer) -> DeliveredFile:
    place = Place(_ANYWHERE, absolute_parts(pointer.path))
    try:
        # No part of the way may be a link: the journal's paths are real ones.
        with opened_file(place, ()) as (descriptor, status):
            if status.st_size != pointer.size or _sha256(descriptor, pointer.size) != pointer.sha256:
                raise Altered("it was changed since it was delivered")
            copy = os.fdopen(os.dup(descriptor), "rb", buffering=0)
            return DeliveredFile(cast("BinaryIO", copy), pointer.size)
    except (OSError, OutsideVisible, NotRegular):
        raise Altered("it is not there any more") from None


def _sha256(descriptor: int, size: int) -> str:
    digest = hashlib.sha256()
    at = 0
    while at < size and (chunk := os.pread(descriptor, _CHUNK, at)):
        digest.update(chunk)
        at += len(chunk)  # the descriptor's own place stays at the beginning
    return digest.hexdigest()
