"""From commits on a snapshot to a branch on the user's own commit.

A snapshot leaves files out and takes uncommitted ones in, so its trees are not what the user has committed. Each
commit is made again: the tree that the user's commit has, with what the workers changed since the snapshot. It is
done in xclaw's repository, which reads the user's objects; what is new is then written among those, and a branch
that names it. Nothing else of theirs is opened for writing.
"""

import os
import tempfile
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import PurePosixPath

from xclaw.contracts.errors import UsageError
from xclaw.contracts.projects import Project
from xclaw.workspaces.projects.checkout import Checkout
from xclaw.workspaces.projects.git import Git
from xclaw.workspaces.projects.reading import shown_names
from xclaw.workspaces.projects.shadow import Files, Note, Shadow
from xclaw.workspaces.projects.user_branches import take_branch

MAX_COMMITS = 10_000
_UNCOMMITTED = "What was not committed when xclaw began"
Changes = Mapping[str, tuple[str, str] | None]


@dataclass(frozen=True, slots=True)
class _Original:
    """A commit of a worker or a merge."""

    id: str
    parents: tuple[str, ...]
    note: Note


def begin(shadow: Shadow, checkout: Checkout, base: str, head: str, changes: Changes) -> None:
    """Keep what the user had not committed, as a commit on theirs, for branches to begin at."""
    writer = shadow.with_objects_of(checkout)
    if not changes or writer.commit_of(_start_ref(base, head)):
        return
    tree = _with_changes(writer.git, head, changes)
    note = Note(_UNCOMMITTED, "xclaw", writer.time_of(head) if head else 0)
    writer.point(_start_ref(base, head), writer.commit_tree(tree, (head,) if head else (), note))


def publish(shadow: Shadow, checkout: Checkout, project: Project, branch: str, name: str) -> str:
    """Answers the branch's name in the user's repository. The shadow is locked. Raises `UsageError`."""
    tip = shadow.known(branch)
    writer = shadow.with_objects_of(checkout)
    start = _start_of(writer, project)
    made: dict[str, str] = {project.base: start}
    new: list[str] = [start] if start != project.head else []
    before = shadow.files(project.base)
    unseen = {*(writer.files(start) if start else ())} - {*before}
    for original in _originals(shadow, project.base, tip):
        changes = _changes(before, shadow.files(original.id))
        _refuse_unseen(changes, unseen)
        tree = _with_changes(writer.git, start, changes)
        parents = tuple(dict.fromkeys(made.get(parent, start) for parent in original.parents if start))
        made[original.id] = writer.commit_tree(tree, parents, original.note)
        new.append(made[original.id])
    commit = made[tip]
    _hand_over(writer.git, checkout, project.head, new)
    return take_branch(checkout, name, commit, lambda older: writer.is_ancestor(older, commit))


def _start_of(writer: Shadow, project: Project) -> str:
    """What branches begin at; empty for a repository that was empty. Raises `UsageError` if it is gone."""
    start = writer.commit_of(_start_ref(project.base, project.head) if project.dirty else project.head)
    if (project.dirty or project.head) and not start:
        where = f" {project.head[:10]}" if project.head else ""
        raise UsageError(
            f"{project.directory} does not hold the commit{where} any more, which it was at when xclaw began; take "
            "the patch"
        )
    return start


def _refuse_unseen(changes: Changes, unseen: AbstractSet[str]) -> None:
    """Raise `UsageError` if something that workers were not shown would be replaced."""
    above = {str(place) for path in unseen for place in PurePosixPath(path).parents}
    replaced = [
        path
        for path, entry in sorted(changes.items())
        if entry is not None
        and (path in above or not unseen.isdisjoint((path, *map(str, PurePosixPath(path).parents))))
    ]
    if replaced:
        raise UsageError(
            f"no branch was made: it would replace what workers were not shown, by {shown_names(replaced)}; "
            "take the patch"
        )


def _start_ref(base: str, head: str) -> str:
    return f"refs/xclaw/starts/{base}-{head or 'none'}"


def _with_changes(git: Git, start: str, changes: Changes) -> str:
    """The tree of a commit with some files other than they are there."""
    with tempfile.TemporaryDirectory(prefix="xclaw-index-") as place:
        environment = {"GIT_INDEX_FILE": f"{place}/index"}
        git("read-tree", *([start] if start else ["--empty"]), environment=environment)
        lines = [_index_line(path, entry) for path, entry in sorted(changes.items(), key=_gone_first)]
        git("update-index", "-z", "--replace", "--index-info", stdin=b"".join(lines), environment=environment)
        return git("write-tree", "--missing-ok", environment=environment).decode().strip()


def _gone_first(change: tuple[str, tuple[str, str] | None]) -> tuple[bool, str]:
    return change[1] is not None, change[0]


def _index_line(path: str, entry: tuple[str, str] | None) -> bytes:
    mode, object_id = entry or ("0", "0" * 40)
    return f"{mode} {object_id}\t".encode() + os.fsencode(path) + b"\0"


def _changes(before: Files, after: Files) -> Changes:
    return {path: after.get(path) for path in {*before, *after} if before.get(path) != after.get(path)}


def _originals(shadow: Shadow, base: str, tip: str) -> list[_Original]:
    said = shadow.git(
        "log",
        "--reverse",
        "--topo-order",
        f"--max-count={MAX_COMMITS}",
        "-z",
        "--format=%H%x01%P%x01%an%x01%ct%x01%B",
        f"{base}..{tip}",
    )
    found: list[_Original] = []
    for line in said.decode("utf-8", "replace").split("\0"):
        if line.strip():
            commit, parents, author, at, message = line.split("\x01", 4)
            found.append(_Original(commit, tuple(parents.split()), Note(message, author, int(at))))
    return found


def _hand_over(git: Git, checkout: Checkout, head: str, commits: list[str]) -> None:
    """Write what is new among the user's objects. Objects that nothing names hurt nobody, if it stops half way."""
    wanted: dict[str, None] = {}
    for commit in commits:
        wanted[commit] = None
        wanted[git("rev-parse", f"{commit}^{{tree}}").decode().strip()] = None
        wanted.update(dict.fromkeys(_new_objects(git, head, commit)))
    if not wanted:
        return
    names = "".join(f"{name}\n" for name in wanted).encode()
    packed = git("pack-objects", "--stdout", "-q", stdin=names)
    objects = {"GIT_OBJECT_DIRECTORY": f"{checkout.common}/objects", "GIT_ALTERNATE_OBJECT_DIRECTORIES": ""}
    git("unpack-objects", "-q", stdin=packed, environment=objects)


def _new_objects(git: Git, head: str, commit: str) -> list[str]:
    """Trees and files of a commit that the user's has not, at their places."""
    if not head:
        listed = git("ls-tree", "-r", "-t", "-z", "--full-tree", commit).split(b"\0")[:-1]
        return [line.partition(b"\t")[0].decode().split(" ")[2] for line in listed]
    listed = git("diff-tree", "-r", "-t", "-z", "--no-renames", "--raw", head, commit).split(b"\0")
    found: list[str] = []
    for line in listed:
        if line.startswith(b":"):
            _, mode, _, object_id, _ = line[1:].decode().split(" ")
            if mode not in ("000000", "160000"):
                found.append(object_id)
    return found
