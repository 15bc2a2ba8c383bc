"""Which files of a directory are its own: what is tracked, and what could be."""

import os
import re
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from xclaw.workspaces.projects.checkout import MAX_INDEX_BYTES, Checkout
from xclaw.workspaces.projects.git import Git, GitFailed
from xclaw.workspaces.projects.reading import shown_names

FOLDER_IGNORES = (
    "__pycache__/",
    "node_modules/",
    ".venv/",
    "venv/",
    ".tox/",
    ".mypy_cache/",
    ".pytest_cache/",
)
"""Where no repository says what is made by programs."""
_SUBMODULE = "160000"
_SKIPPED = "S"
"""How git marks what a sparse checkout leaves out."""
_IGNORED = "--exclude-per-directory=.gitignore"
_NO_MODES = (
    ("GIT_CONFIG_COUNT", "1"),
    ("GIT_CONFIG_KEY_0", "core.fileMode"),
    ("GIT_CONFIG_VALUE_0", "false"),
)
_NO_INDEX = "its index cannot be read without its repository; tracked files that are ignored are left out"
_INCOMPLETE = re.compile(rb"^error: ", re.MULTILINE)
"""Said of directories of a sparse index that it passes over, and ends well all the same."""
_UNREADABLE = re.compile(rb"^warning: could not open directory '(.*)/': ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Listing:
    paths: tuple[str, ...]
    """Sorted; those of repositories inside end in "/"."""
    tracked: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """Mode and object id in the index."""
    changed: frozenset[str] = frozenset()
    """Tracked, and no longer as in the index."""
    submodules: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    """Tracked, and not on the disk on purpose, as in a sparse checkout."""
    knows_deleted: bool = True
    """What is tracked and is in none of these is deleted."""
    has_modes: bool = True
    """What the disk says of who may run a file means something."""
    notes: tuple[str, ...] = ()


def list_checkout(git: Git, checkout: Checkout, ignore_file: str) -> Listing:
    """Raises `GitFailed`."""
    with tempfile.TemporaryDirectory(prefix="xclaw-index-") as place:
        index = _copied_index(checkout, place)
        Path(place, "exclude").write_bytes(checkout.read("info/exclude", 1_000_000, common=True) or b"")
        ignores = (*_exclude_from(ignore_file), f"--exclude-from={place}/exclude")
        git = replace(git, also=(*git.also, checkout.objects, *(() if checkout.has_modes else _NO_MODES)))
        try:
            tracked, absent = _tracked(git, checkout.directory, index)
            changed = _lines(git, checkout.directory, index, "-m")
            others, notes = _others(git, checkout.directory, index, ignores)
        except GitFailed:
            paths, notes = _others(git, checkout.directory, "", ignores)
            return Listing(tuple(sorted(set(paths))), knows_deleted=False, notes=(_NO_INDEX, *notes))
    submodules = tuple(sorted(path for path, (mode, _) in tracked.items() if mode == _SUBMODULE))
    own = {*others, *tracked} - set(submodules) - {f"{path}/" for path in submodules}
    return Listing(
        tuple(sorted(own)),
        tracked,
        frozenset(changed),
        submodules,
        absent,
        has_modes=checkout.has_modes,
        notes=notes,
    )


def list_folder(git: Git, directory: str, ignore_file: str) -> Listing:
    """Of no repository: .gitignore files count all the same."""
    ignores = [*_exclude_from(ignore_file), *(f"--exclude={pattern}" for pattern in FOLDER_IGNORES)]
    paths, notes = _others(git, directory, "", ignores)
    return Listing(tuple(sorted(set(paths))), notes=notes)


def list_tree(git: Git, directory: str, tip: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Of a private tree that began at `tip`: what is in that commit or not ignored; and directories that cannot
    be read."""
    with tempfile.TemporaryDirectory(dir=Path(git.repository).parent, prefix="index-") as place:
        index = f"{place}/index"
        git("read-tree", tip, environment={"GIT_INDEX_FILE": index})
        lines, unreadable = _raw(git, directory, index, "-o", "-c", _IGNORED)
        return tuple(sorted(set(map(os.fsdecode, lines)))), unreadable


def _tracked(git: Git, directory: str, index: str) -> tuple[dict[str, tuple[str, str]], tuple[str, ...]]:
    """Mode and object id by path; and what is not on the disk on purpose."""
    found: dict[str, tuple[str, str]] = {}
    absent: list[str] = []
    for line in _raw(git, directory, index, "-s", "-t")[0]:
        about, _, name = line.partition(b"\t")
        tag, mode, object_id, _ = about.decode().split(" ")
        path = os.fsdecode(name)
        found[path] = (mode, object_id)
        if tag == _SKIPPED:
            absent.append(path)
    return found, tuple(absent)


def _others(
    git: Git, directory: str, index: str, ignores: Iterable[str]
) -> tuple[list[str], tuple[str, ...]]:
    """What is not tracked and not ignored; and notes of what could not be looked at."""
    lines, unreadable = _raw(git, directory, index, "-o", *ignores, _IGNORED)
    notes = (f"left out (cannot be read): {shown_names(unreadable)}",) if unreadable else ()
    return list(map(os.fsdecode, lines)), notes


def _lines(git: Git, directory: str, index: str, *arguments: str) -> list[str]:
    return [os.fsdecode(line) for line in _raw(git, directory, index, *arguments)[0]]


def _raw(git: Git, directory: str, index: str, *arguments: str) -> tuple[list[bytes], tuple[str, ...]]:
    """git with a repository of ours, and the directory as what is checked out of it. Answers lines, and directories
    that it could not open."""
    environment = {
        "GIT_WORK_TREE": directory,
        "GIT_INDEX_FILE": index or f"{git.repository}/no-index",
    }
    output, said = git.told("ls-files", "-z", *arguments, environment=environment)
    if _INCOMPLETE.search(said):
        raise GitFailed("git ls-files could not read all of the index")
    return output.split(b"\0")[:-1], tuple(os.fsdecode(name) for name in _UNREADABLE.findall(said))


def _copied_index(checkout: Checkout, place: str) -> str:
    """The index as a file of ours with the same time, by which git tells what may have changed since; empty
    where there is none."""
    content = checkout.read("index", MAX_INDEX_BYTES)
    if content is None:
        return ""
    copy = Path(place, "index")
    copy.write_bytes(content)
    status = Path(checkout.own, "index").stat()
    os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))
    return str(copy)


def _exclude_from(path: str) -> Iterable[str]:
    return [f"--exclude-from={path}"] if path and os.path.isfile(path) else []  # noqa: PTH113
