"""The plan as a graph: what has to wait for what, and who would write where somebody else writes (SPEC H5)."""

import posixpath
from collections.abc import Mapping, Sequence

from xclaw.contracts.plans import PlannedTask
from xclaw.contracts.unicode_forms import normal_form

Edges = Mapping[str, Sequence[str]]
"""By task: the tasks of the same plan that it depends on."""


def find_cycle(edges: Edges) -> tuple[str, ...]:
    """A cycle, from a task back to itself, or nothing."""
    done: set[str] = set()
    for start in edges:
        path: list[str] = []
        on_path: set[str] = set()
        stack: list[tuple[str, bool]] = [(start, False)]
        while stack:
            name, leaving = stack.pop()
            if leaving:
                done.add(name)
                on_path.discard(path.pop())
            elif name in on_path:
                return (*path[path.index(name) :], name)
            elif name not in done:
                path.append(name)
                on_path.add(name)
                stack.append((name, True))
                stack.extend((before, False) for before in reversed(edges.get(name, ())))
    return ()


def ancestors(edges: Edges) -> dict[str, frozenset[str]]:
    """Everything that each task waits for, directly or not. The graph has no cycle."""
    known: dict[str, frozenset[str]] = {}
    stack = [(name, False) for name in edges]
    while stack:
        name, leaving = stack.pop()
        if name in known:
            continue
        before = edges.get(name, ())
        if leaving:
            known[name] = frozenset(before).union(*(known[each] for each in before))
        else:
            stack.append((name, True))
            stack.extend((each, False) for each in before)
    return known


def conflicts(tasks: Sequence[PlannedTask], edges: Edges) -> list[tuple[str, str, str]]:
    """Pairs of tasks that may run at once and write the same place, with that place."""
    before = ancestors(edges)
    found: list[tuple[str, str, str]] = []
    for index, one in enumerate(tasks):
        for other in tasks[index + 1 :]:
            if one.id in before[other.id] or other.id in before[one.id]:
                continue
            place = next((a for a in one.writes for b in other.writes if _overlap(a, b)), "")
            if place:
                found.append((one.id, other.id, place))
    return found


def _overlap(one: str, other: str) -> bool:
    """The same file, or one inside the other. Some disks do not tell case apart."""
    a, b = normal_form("NFC", one.casefold()), normal_form("NFC", other.casefold())
    return a == b or "." in (a, b) or a.startswith(f"{b}/") or b.startswith(f"{a}/") or "/" in (a, b)


def normalised(path: str) -> str:
    """One spelling for each place. Raises `ValueError` that says what is wrong with the path."""
    plain = normal_form("NFC", path.strip().replace("\\", "/"))
    if not plain or not plain.isprintable():
        raise ValueError("is no path")
    if len(plain) > 400:
        raise ValueError("is longer than 400 characters")
    if any(mark in plain for mark in "*?["):
        raise ValueError("is a pattern; name the files, or the directory that holds them")
    clean = posixpath.normpath(plain)
    if clean == ".." or clean.startswith("../"):
        raise ValueError("leads out of the workspace; leave the `..` out, or write it absolute")
    return clean if not clean.startswith("//") else clean[1:]
