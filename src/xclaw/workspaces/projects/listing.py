"""Which files of a directory are its own: what is tracked, and what could be."""

import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from xclaw.workspaces.projects.checkout import MAX_INDEX_BYTES, Checkout
from xclaw.workspaces.projects.git import Git, GitFailed

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


@dataclass(frozen=True, slots=True)
class Listing:
    paths: tuple[str, ...]
    """Sorted; those of repositories inside end in "/"."""
    tracked: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """Mode and object id in the index."""
    changed: frozenset[str] = frozenset()
    """Tracked, and no longer as in the index."""
    submodules: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def list_checkout(git: Git, checkout: Checkout, ignore_file: str) -> Listing:
    """Raises `GitFailed`."""
    with tempfile.TemporaryDirectory(prefix="xclaw-index-") as place:
        index = _copied_index(checkout, place)
        Path(place, "exclude").write_bytes(checkout.read("info/exclude", 1_000_000, common=True) or b"")
        ignores = (*_exclude_from(ignore_file), f"--exclude-from={place}/exclude")
        try:
            tracked = _tracked(git, checkout.directory, index)
            changed = _lines(git, checkout.directory, index, "-m")
            paths = [*_lines(git, checkout.directory, index, "-o", *ignores), *tracked]
        except GitFailed:
            paths = _lines(git, checkout.directory, "", "-o", *ignores)
            note = (
                "its index cannot be read without its repository; tracked files that are ignored are left out"
            )
            return Listing(tuple(sorted(set(paths))), notes=(note,))
    submodules = tuple(sorted(path for path, (mode, _) in tracked.items() if mode == _SUBMODULE))
    own = sorted(set(paths) - set(submodules) - {f"{path}/" for path in submodules})
    return Listing(tuple(own), tracked, frozenset(changed), submodules)


def list_folder(git: Git, directory: str, ignore_file: str) -> Listing:
    """Of no repository: .gitignore files count all the same."""
    ignores = [*_exclude_from(ignore_file), *(f"--exclude={pattern}" for pattern in FOLDER_IGNORES)]
    return Listing(tuple(sorted(set(_lines(git, directory, "", "-o", *ignores)))))


def list_tree(git: Git, directory: str, tip: str) -> tuple[str, ...]:
    """Of a private tree that began at `tip`: what is in that commit or not ignored."""
    with tempfile.TemporaryDirectory(dir=Path(git.repository).parent, prefix="index-") as place:
        index = f"{place}/index"
        git("read-tree", tip, environment={"GIT_INDEX_FILE": index})
        return tuple(sorted(set(_lines(git, directory, index, "-o", "-c"))))


def _tracked(git: Git, directory: str, index: str) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for line in _raw(git, directory, index, "-s", "--sparse"):
        about, _, path = line.partition(b"\t")
        mode, object_id, _ = about.decode().split(" ")
        found[os.fsdecode(path)] = (mode, object_id)
    return {path: entry for path, entry in found.items() if not path.endswith("/")}


def _lines(git: Git, directory: str, index: str, *arguments: str) -> list[str]:
    return [os.fsdecode(line) for line in _raw(git, directory, index, *arguments)]


def _raw(git: Git, directory: str, index: str, *arguments: str) -> list[bytes]:
    """git with a repository of ours, and the directory as what is checked out of it."""
    if "-o" in arguments:
        arguments = (*arguments, "--exclude-per-directory=.gitignore")
    environment = {
        "GIT_WORK_TREE": directory,
        "GIT_INDEX_FILE": index or f"{git.repository}/no-index",
    }
    return git("ls-files", "-z", *arguments, environment=environment).split(b"\0")[:-1]


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
