"""What a sandboxed run was handed: copies in one directory, each under the name it was delivered by."""

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import PurePosixPath

from xclaw.contracts.artifacts import Pointer
from xclaw.contracts.errors import ToolFailed
from xclaw.workspaces.containment import Place, Region, opened_directory, opened_parent
from xclaw.workspaces.disk import replace_file
from xclaw.workspaces.names import composed, folded, versioned

_STRICT: tuple[Region, ...] = ()
_READ_ONLY = 0o444
_LISTABLE = 0o755
"""The sandbox's account may be another than the host's; the directories above let nobody else in."""


class Inputs:
    """Names are given out in the order of the grants, so that a run that is taken up has the same again.

    Of a name that is taken, the second becomes `name-2`. Safe in any number of threads.
    """

    def __init__(self) -> None:
        self._names: dict[str, tuple[str, ...]] = {}
        """By the artifact's path."""
        self._pointers: dict[str, Pointer] = {}
        """By the folded name."""
        self._made: set[str] = set()
        self._lock = threading.Lock()

    def add(self, pointer: Pointer, parts: tuple[str, ...]) -> None:
        """`parts`: its path below its task's delivery directory."""
        with self._lock:
            if pointer.path in self._names:
                return
            name, number = _delivered_name(parts, pointer.version), 1
            while (free := _numbered(name, number)) and self._is_taken(free):
                number += 1
            self._names[pointer.path] = tuple(free.split("/"))
            self._pointers[folded(free)] = pointer

    def name(self, pointer: Pointer) -> tuple[str, ...] | None:
        return self._names.get(pointer.path)

    def at(self, parts: tuple[str, ...]) -> Pointer | None:
        """The artifact that has this name."""
        found = self._pointers.get(folded("/".join(parts)))
        return found if found and self._names[found.path] == tuple(map(composed, parts)) else None

    def lay_out(self, region: Region, content: Callable[[Pointer], bytes]) -> None:
        """Make the copies that are not there yet. One that is not as it was delivered is left out, and
        tried again the next time."""
        with self._lock:
            with opened_directory(Place(region, ()), _STRICT, create=True) as directory:
                os.fchmod(directory, _LISTABLE)
            for path, name in self._names.items():
                if path not in self._made and self._copied(region, name, content):
                    self._made.add(path)

    def clear(self, region: Region) -> None:
        """Remove the copies."""
        with self._lock:
            self._made.clear()
            shutil.rmtree(region.path, ignore_errors=True)

    def _copied(self, region: Region, name: tuple[str, ...], content: Callable[[Pointer], bytes]) -> bool:
        try:
            raw = content(self._pointers[folded("/".join(name))])
        except (ToolFailed, OSError):
            return False
        with opened_parent(Place(region, name), _STRICT, create=True) as parent:
            replace_file(parent.directory, parent.name, raw, _READ_ONLY, durable=False)
        for depth in range(1, len(name)):
            with opened_directory(Place(region, name[:depth]), _STRICT) as directory:
                os.fchmod(directory, _LISTABLE)
        return True

    def _is_taken(self, name: str) -> bool:
        """Also where a file would have to be a directory, or the other way round."""
        wanted = folded(name)
        return any(
            wanted == other or wanted.startswith(f"{other}/") or other.startswith(f"{wanted}/")
            for other in self._pointers
        )


def _delivered_name(parts: tuple[str, ...], version: int) -> str:
    """The path without its version."""
    path = composed("/".join(parts))
    if version > 1:
        before, mark, after = path.rpartition(f".v{version}")
        if mark and versioned(before + after, version) == path:
            return before + after
    return path


def _numbered(name: str, number: int) -> str:
    if number == 1:
        return name
    path = PurePosixPath(name)
    return str(path.with_name(f"{path.stem}-{number}{path.suffix}"))
