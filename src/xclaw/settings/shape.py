"""Which settings there are: read off the classes that the rooms declare, so that no list can fall behind."""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast, get_args, get_origin, get_type_hints

Key = tuple[str, ...]
"""The place of a setting: section, then names. `*` in a shape stands for any name."""


def dotted(key: Key) -> str:
    """A key as people write it."""
    return ".".join(f'"{part}"' if "." in part else part for part in key)


@dataclass(frozen=True, slots=True)
class Shape:
    """All keys with the type of their value, and the tables that hold them."""

    leaves: Mapping[Key, object]
    tables: frozenset[Key]

    def hint(self, key: Key) -> object | None:
        """The type of a setting's value; None for a key that does not exist."""
        for known, hint in self.leaves.items():
            if _matches(known, key):
                return hint
        return None

    def is_table(self, key: Key) -> bool:
        return any(_matches(known, key) for known in self.tables)


def shape_of(sections: Mapping[str, type], hidden: frozenset[Key]) -> Shape:
    """The shape of sections given as settings classes; `hidden` fields are not for users."""
    leaves: dict[Key, object] = {}
    tables: set[Key] = set()
    for section, settings in sections.items():
        leaves.update((key, hint) for key, hint in _walk((section,), settings, tables) if key not in hidden)
    return Shape(leaves, frozenset(tables))


def field_hints(settings: type) -> dict[str, object]:
    """The fields of a settings class with their types."""
    hints = get_type_hints(settings)
    return {field.name: hints[field.name] for field in dataclasses.fields(cast("Any", settings))}


def entry_type(hint: object) -> object | None:
    """For a mapping whose values are tables, the type of those; None for everything else."""
    if get_origin(hint) is not Mapping:
        return None
    value = get_args(hint)[1]
    return value if dataclasses.is_dataclass(value) or get_origin(value) is Mapping else None


def _walk(key: Key, hint: object, tables: set[Key]) -> Iterator[tuple[Key, object]]:
    entry = entry_type(hint)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        tables.add(key)
        for name, inner in field_hints(hint).items():
            yield from _walk((*key, name), inner, tables)
    elif entry is not None:
        tables.add(key)
        yield from _walk((*key, "*"), entry, tables)
    else:
        yield key, hint


def _matches(known: Key, key: Key) -> bool:
    return len(known) == len(key) and all(a in (b, "*") for a, b in zip(known, key, strict=True))
