"""Delivered files by the name that they have in the whole, whoever delivered them, in whichever version."""

import re
from collections.abc import Sequence

from xclaw.contracts.artifacts import Pointer

_IN_SHARED = re.compile(r".*?/shared/[^/]+/(.+)", re.DOTALL)


def file_name(pointer: Pointer) -> str:
    """The name it was delivered under: below its task's delivery directory, without the version."""
    found = _IN_SHARED.fullmatch(pointer.path)
    name = found[1] if found else pointer.path.rsplit("/", 1)[-1]
    if pointer.version < 2:
        return name
    return re.sub(rf"\.v{pointer.version}(?=(?:\.[^./]*)?\Z)", "", name)


def newest(pointers: Sequence[Pointer]) -> tuple[Pointer, ...]:
    """Of each name the one that was delivered last."""
    by_name: dict[str, Pointer] = {}
    for pointer in pointers:
        by_name.pop(file_name(pointer), None)
        by_name[file_name(pointer)] = pointer
    return tuple(by_name.values())
