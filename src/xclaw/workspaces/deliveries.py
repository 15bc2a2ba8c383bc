"""The artifacts of one task: files in `shared/{task}`, and the record of who delivered what.

The record is an append-only file beside the tree, `.deliveries/{task}.jsonl`, one JSON object a
line, out of reach of the file tools. A line that cannot be read is skipped and never rewritten. The
record of a delivery is written before its file appears: a crash of the process between the two leaves
a record without a file, which is no artifact, and the repeated delivery takes the same name.
"""

import fcntl
import hashlib
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import PurePosixPath

import msgspec

from xclaw.contracts.artifacts import Pointer
from xclaw.contracts.errors import ToolFailed
from xclaw.workspaces.containment import (
    NotRegular,
    OutsideVisible,
    Place,
    Region,
    opened_directory,
    opened_file,
    opened_parent,
)
from xclaw.workspaces.disk import hash_file, publish, temporary_file, write_all
from xclaw.workspaces.names import composed, folded, versioned

_INDEX_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_ARTIFACT_MODE = 0o444
_STRICT: tuple[Region, ...] = ()


class Record(msgspec.Struct, frozen=True):
    """One delivery, as a line of the index."""

    path: str
    """Relative to the delivery directory."""
    name: str
    """The name it was delivered under: the path without its version."""
    sha256: str
    size: int
    agent: str
    run_id: str
    version: int


class _Claim(msgspec.Struct, frozen=True):
    """The first line of an index whose task belongs to one run alone."""

    claimed_by: str


_decode_record = msgspec.json.Decoder(Record).decode
_decode_claim = msgspec.json.Decoder(_Claim).decode


class Deliveries:
    """Delivers into one directory and verifies what is there. Safe for any number of threads and
    processes at once: a lock on the index orders them, the file system keeps names apart."""

    def __init__(self, root: tuple[str, ...], task: str, *, durable: bool = True) -> None:
        self._durable = durable
        self.region = Region(root, ("shared", task))
        self._index = Place(Region(root, (".deliveries",)), (f"{task}.jsonl",))

    def is_recorded(self) -> bool:
        """Whether anybody has claimed the task or delivered to it. Cheap: one look at the disk."""
        return os.path.lexists(self._index.path)

    def claim(self, run_id: str) -> bool:
        """Make the task `run_id`'s own; False when it belongs to another run."""
        if self._lines():
            return self._is_claimed_by(run_id)
        line = msgspec.json.encode(_Claim(run_id)) + b"\n"
        with (
            opened_parent(self._index, _STRICT, create=True) as parent,
            temporary_file(parent.directory, line, 0o600, durable=False) as temporary,
        ):
            return publish(parent.directory, temporary, parent.name) or self._is_claimed_by(run_id)

    def deliver(self, parts: tuple[str, ...], content: bytes, agent: str, run_id: str) -> Pointer:
        """Write the next version of a name. Raises `ToolFailed`, `OutsideVisible`, `OSError`."""
        parts = tuple(map(composed, parts))
        wanted = Record(
            path="",
            name=self._name_of("/".join(parts)),
            sha256=hashlib.sha256(content).hexdigest(),
            size=len(content),
            agent=agent,
            run_id=run_id,
            version=0,
        )
        with (
            opened_parent(Place(self.region, parts), _STRICT, create=True) as parent,
            temporary_file(parent.directory, content, _ARTIFACT_MODE, durable=self._durable) as temporary,
            self._locked() as index,
        ):
            same = self._same_again(wanted)
            if same is not None:
                return self._pointer(same)
            pointer = self._publish(wanted, parent.directory, temporary, index)
            if self._durable:
                os.fsync(index)
                os.fsync(parent.directory)
            return pointer

    def _name_of(self, path: str) -> str:
        """What a path is a version of: who delivers `a.v2.md` again means the next version of `a.md`."""
        later = (record for record in self.records() if record.version > 1 and composed(record.path) == path)
        return next((record.name for record in later), path)

    def verify(self, parts: tuple[str, ...]) -> Pointer | None:
        """The artifact at `parts`, if it was delivered and its bytes are still the same."""
        wanted = composed("/".join(parts))
        for record in reversed(self.records()):
            if composed(record.path) == wanted:
                return self._pointer(record) if self._is_intact(record) else None
        return None

    def content(self, parts: tuple[str, ...], sha256: str) -> tuple[str, bytes]:
        """The name that the artifact at `parts` was delivered under, and its bytes, if these are still the
        ones with this digest. Raises `ToolFailed`."""
        wanted = composed("/".join(parts))
        for record in reversed(self.records()):
            if composed(record.path) == wanted and record.sha256 == sha256:
                with opened_file(self._place(record), _STRICT) as (descriptor, _):
                    content = os.pread(descriptor, record.size + 1, 0)
                if hashlib.sha256(content).hexdigest() == sha256:
                    return record.name, content
        raise ToolFailed(f"{self.region.path}/{wanted[:300]} is not what was delivered")

    def newest(self, name: str, run_id: str) -> Record | None:
        """The last thing that a run delivered under `name`."""
        wanted = folded(name)
        for record in reversed(self.records()):
            if record.run_id == run_id and folded(record.name) == wanted:
                return record
        return None

    def records(self) -> list[Record]:
        """Every delivery that can be read from the index, in order."""
        found: list[Record] = []
        for line in self._lines():
            try:
                found.append(_decode_record(line))
            except msgspec.MsgspecError:
                continue  # the claim, or a damaged line: it stays as it is
        return found

    def delivered_by(self, run_id: str) -> list[Pointer]:
        """What a run delivered, in order, each path once."""
        by_path = {record.path: record for record in self.records() if record.run_id == run_id}
        return [self._pointer(record) for record in by_path.values() if self._exists(record)]

    def _is_claimed_by(self, run_id: str) -> bool:
        try:
            return all(_decode_claim(first).claimed_by == run_id for first in self._lines()[:1])
        except msgspec.MsgspecError:
            return True  # the claim was lost in a crash; nothing says that it was another's

    def _publish(self, wanted: Record, directory: int, temporary: str, index: int) -> Pointer:
        parent = PurePosixPath(wanted.name).parent
        name = PurePosixPath(wanted.name).name
        taken = {folded(other) for other in os.listdir(directory)}
        version = 1
        while True:
            file_name = versioned(name, version)
            if folded(file_name) not in taken:
                record = msgspec.structs.replace(wanted, path=str(parent / file_name), version=version)
                _append(index, record)
                if publish(directory, temporary, file_name):
                    return self._pointer(record)
            version += 1

    def _same_again(self, wanted: Record) -> Record | None:
        newest = self.newest(wanted.name, wanted.run_id)
        if newest is None or (newest.sha256, newest.agent) != (wanted.sha256, wanted.agent):
            return None
        return newest if self._is_intact(newest) else None

    def _is_intact(self, record: Record) -> bool:
        try:
            with opened_file(self._place(record), _STRICT) as (descriptor, status):
                if status.st_size != record.size or not record.size:
                    return False
                return hash_file(descriptor, record.size) == (record.sha256, record.size)
        except (OSError, OutsideVisible, NotRegular, ToolFailed):
            return False

    def _exists(self, record: Record) -> bool:
        try:
            with opened_file(self._place(record), _STRICT) as (_, status):
                return status.st_size == record.size
        except (OSError, OutsideVisible, NotRegular, ToolFailed):
            return False

    def _place(self, record: Record) -> Place:
        parts = tuple(record.path.split("/"))
        if any(part in ("", ".", "..") or "\0" in part for part in parts):
            raise ToolFailed("the record of this artifact is damaged")
        return Place(self.region, parts)

    def _pointer(self, record: Record) -> Pointer:
        return Pointer(
            path=f"{self.region.path}/{record.path}",
            sha256=record.sha256,
            size=record.size,
            agent=record.agent,
            run_id=record.run_id,
            version=record.version,
        )

    def _lines(self) -> list[bytes]:
        try:
            with opened_file(self._index, _STRICT) as (descriptor, status):
                return os.pread(descriptor, status.st_size, 0).splitlines()
        except (OSError, NotRegular):
            return []

    @contextmanager
    def _locked(self) -> Generator[int]:
        with opened_directory(Place(self._index.region, ()), _STRICT, create=True) as directory:
            descriptor = os.open(self._index.parts[-1], _INDEX_FLAGS, 0o600, dir_fd=directory)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield descriptor
        finally:
            os.close(descriptor)


def _append(index: int, record: Record) -> None:
    """One line, after ending whatever a crash left unfinished."""
    size = os.fstat(index).st_size
    torn = size > 0 and os.pread(index, 1, size - 1) != b"\n"
    write_all(index, (b"\n" if torn else b"") + msgspec.json.encode(record) + b"\n")
