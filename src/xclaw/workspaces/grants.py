"""The artifacts a run was handed: exact files, read-only."""

from xclaw.contracts.artifacts import Pointer
from xclaw.contracts.errors import ToolFailed
from xclaw.workspaces.containment import collapsed
from xclaw.workspaces.names import composed

_SHOWN = 5


class Grants:
    """Pointers by the path and by the name a model may use for them."""

    def __init__(self) -> None:
        self._pointers: dict[tuple[str, ...], Pointer] = {}

    def add(self, pointers: tuple[Pointer, ...]) -> None:
        for pointer in pointers:
            self._pointers[_key(tuple(pointer.path.split("/")))] = pointer

    def at(self, absolute: tuple[str, ...]) -> Pointer | None:
        return self._pointers.get(_key(absolute))

    def named(self, parts: tuple[str, ...]) -> Pointer | None:
        """The one artifact whose path ends in `parts`. Raises `ToolFailed` when there are several."""
        wanted = tuple(map(composed, parts))
        if not wanted:
            return None
        found = [pointer for path, pointer in self._pointers.items() if path[-len(wanted) :] == wanted]
        if len(found) > 1:
            paths = _listed([pointer.path for pointer in found])
            raise ToolFailed(f"several artifacts are called {'/'.join(parts)!r}; use the whole path: {paths}")
        return found[0] if found else None

    def listed(self) -> str:
        """Their paths, or the first few, for a message; empty when there are none."""
        return _listed([pointer.path for pointer in self._pointers.values()])


def _key(absolute: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(composed, collapsed(absolute)))


def _listed(paths: list[str]) -> str:
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return ", ".join(paths[:_SHOWN]) + more
