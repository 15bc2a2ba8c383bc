"""Branches as people take them: lists of commits, and patches."""

import os
from collections.abc import Iterator

from xclaw.contracts.projects import Commit
from xclaw.workspaces.projects.git import GitFailed, OutputTooLong
from xclaw.workspaces.projects.shadow import Shadow

MAX_COMMITS = 1_000
MAX_FILES = 1_000
"""Named of one commit."""
MAX_PATCH = 64_000_000
_NO_COMMANDS = ("--no-ext-diff", "--no-textconv", "--no-color")


def patch(shadow: Shadow, start: str, tip: str, limit: int = MAX_PATCH) -> bytes:
    """What `git apply` takes; empty when nothing has changed. Raises `GitFailed` for one that is too large."""
    if start == tip:
        return b""
    try:
        return _made(shadow, start, tip, limit)
    except OutputTooLong:
        raise GitFailed(
            f"the changes are a patch of more than {limit} bytes, which was not made; `xclaw worktrees` shows the "
            "branches that hold them"
        ) from None


def _made(shadow: Shadow, start: str, tip: str, limit: int) -> bytes:
    return shadow.git(
        "diff-tree",
        "-p",
        "--binary",
        "--full-index",
        "--no-renames",
        *_NO_COMMANDS,
        start,
        tip,
        limit=limit,
    )


def log(shadow: Shadow, branch: str, start: str, tip: str) -> list[Commit]:
    """The commits between, oldest first, without merges' own files."""
    said = shadow.git(
        "log",
        "--reverse",
        "--topo-order",
        f"--max-count={MAX_COMMITS}",
        "--no-show-signature",
        "--format=%H%x00%s%x00",
        "--raw",
        "--abbrev=40",
        "-z",
        "--no-renames",
        *_NO_COMMANDS,
        f"{start}..{tip}",
    )
    return [
        Commit(commit_id, branch, subject, tuple(files[:MAX_FILES]))
        for commit_id, subject, files in _read(iter(said.split(b"\0")))
    ]


def _read(fields: Iterator[bytes]) -> Iterator[tuple[str, str, list[str]]]:
    """Id, subject and files of each commit. What stands where decides, since subjects and names may hold
    anything but NUL: a path comes behind a field that begins with ":", a subject behind an id."""
    found: tuple[str, str, list[str]] | None = None
    for field in fields:
        about = field.lstrip(b"\n")
        if about.startswith(b":") and found is not None:
            found[2].append(os.fsdecode(next(fields, b"")))
        elif about:
            if found is not None:
                yield found
            found = (about.decode(), next(fields, b"").decode("utf-8", "replace"), [])
    if found is not None:
        yield found
