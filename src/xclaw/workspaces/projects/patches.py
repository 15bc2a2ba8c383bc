"""Branches as people take them: lists of commits, and patches."""

import os

from xclaw.contracts.projects import Commit
from xclaw.workspaces.projects.shadow import Shadow

MAX_COMMITS = 1_000
MAX_PATCH = 64_000_000
_NO_COMMANDS = ("--no-ext-diff", "--no-textconv", "--no-color")


def patch(shadow: Shadow, start: str, tip: str) -> bytes:
    """What `git apply` takes; empty when nothing has changed. Raises `GitFailed` for one that is too large."""
    if start == tip:
        return b""
    return shadow.git(
        "diff-tree",
        "-p",
        "--binary",
        "--full-index",
        "--no-renames",
        *_NO_COMMANDS,
        start,
        tip,
        limit=MAX_PATCH,
    )


def log(shadow: Shadow, branch: str, start: str, tip: str) -> list[Commit]:
    """The commits between, oldest first, without merges' own files."""
    said = shadow.git(
        "log",
        "--reverse",
        "--topo-order",
        f"--max-count={MAX_COMMITS}",
        "--no-show-signature",
        "--format=%x01%x01%H%x00%s%x00",
        "--name-only",
        "-z",
        "--no-renames",
        *_NO_COMMANDS,
        f"{start}..{tip}",
    )
    commits: list[Commit] = []
    for part in said.split(b"\x01\x01")[1:]:
        commit_id, subject, *names = part.split(b"\0")
        files = tuple(os.fsdecode(name.lstrip(b"\n")) for name in names if name.strip())
        commits.append(Commit(commit_id.decode(), branch, subject.decode("utf-8", "replace"), files[:1_000]))
    return commits
