"""One run's private tree of a project, and the branch that its commits are on."""

import secrets
import time
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.projects import Commit
from xclaw.workspaces.owners import owner_for
from xclaw.workspaces.projects.denied import is_denied, is_git_internal
from xclaw.workspaces.projects.laying import lay_out, remove_tree
from xclaw.workspaces.projects.listing import list_tree
from xclaw.workspaces.projects.patches import MAX_PATCH, log, patch
from xclaw.workspaces.projects.reading import Found, LeftOut, Tree, is_below, opened_tree, repositories_below
from xclaw.workspaces.projects.records import TreeRecord
from xclaw.workspaces.projects.settings import ProjectSettings
from xclaw.workspaces.projects.shadow import BRANCHES, Note, Shadow, Writing, writing
from xclaw.workspaces.projects.snapshots import notes_of

MAX_FILES_NAMED = 1_000
_NEW_PREFIX = ".xclaw-tmp-"


@dataclass(frozen=True, slots=True)
class _Look:
    """How a tree differs from the tip of its branch."""

    changed: tuple[str, ...]
    left_out: tuple[LeftOut, ...]
    repositories: tuple[str, ...]


class PrivateTree:
    """A `Worktree`. Holds nothing open; what is on disk is all there is."""

    def __init__(self, shadow: Shadow, record: TreeRecord, settings: ProjectSettings) -> None:
        self._shadow = shadow
        self._record = record
        self._settings = settings

    @property
    def directory(self) -> str:
        return self._record.directory

    @property
    def branch(self) -> str:
        return self._record.branch

    @property
    def tip(self) -> str:
        return self._shadow.commit_of(self._ref) or self._record.start

    @property
    def _ref(self) -> str:
        return f"{BRANCHES}{self._record.branch}"

    def prepare(self) -> None:
        with self._shadow.locked() as shadow:
            lay_out_once(shadow, self.tip, Path(self.directory))

    def commit(self, message: str, author: str, *, last: bool = False) -> Commit | None:
        with self._shadow.locked() as shadow:
            tip = self.tip
            before = shadow.files(tip)
            with self._opened() as tree, writing(object_id for _, object_id in before.values()) as made:
                look = self._look(shadow, tree, tip, before, made)
                if look.repositories and not last:
                    raise ToolFailed(_is_inside(look.repositories))
                notes = notes_of(look.left_out)
                if not look.changed:
                    return None
                note = Note(message, author, int(time.time()))
                commit = made.commit(shadow, self._ref, tip, note)
            return Commit(commit, self.branch, message, look.changed[:MAX_FILES_NAMED], notes)

    def commits(self) -> list[Commit]:
        """Its own, oldest first."""
        return log(self._shadow, self.branch, self._record.start, self.tip)

    def patch(self, limit: int = MAX_PATCH) -> bytes:
        return patch(self._shadow, self._record.start, self.tip, limit)

    def remove(self, *, force: bool = False) -> bool:
        """`force`: also what is not committed."""
        place = Path(self.directory)
        with self._shadow.locked() as shadow:
            if force:
                remove_tree(place)
            elif place.is_dir() and not place.is_symlink():
                tip = self.tip
                before = shadow.files(tip)
                with self._opened() as tree, writing(object_id for _, object_id in before.values()) as made:
                    look = self._look(shadow, tree, tip, before, made)
                if look.changed or look.repositories or look.left_out:
                    return False
                remove_tree(place)
        return True

    @contextmanager
    def _opened(self) -> Generator[Tree]:
        with ExitStack() as opened:
            try:
                tree = opened.enter_context(opened_tree(self.directory, self._settings.max_file_bytes))
            except OSError as failure:
                raise ToolFailed(
                    f"the project's tree cannot be read: {failure.strerror or failure}"
                ) from None
            yield tree

    def _look(
        self, shadow: Shadow, tree: Tree, tip: str, before: Mapping[str, tuple[str, str]], made: Writing
    ) -> _Look:
        """Read all that is there; `made` gets what belongs into a commit."""
        paths, unreadable = list_tree(shadow.git, self.directory, tip)
        repositories = repositories_below(tree, paths, before)
        files: dict[str, tuple[str, str]] = {}
        left_out = [LeftOut(path, "a repository of its own") for path in repositories]
        left_out += [LeftOut(path, "cannot be read") for path in unreadable]
        if tree.is_there(".git"):
            left_out.append(LeftOut(".git", "a repository's own files"))
        for path in paths:
            found = None if is_below(path, repositories) else self._found(tree, path, before)
            if isinstance(found, LeftOut):
                left_out.append(found)
                if path in before:  # as it was: what cannot be taken in is not a deletion
                    files[path] = before[path]
                    made.keep(path, *before[path])
            elif found is not None:
                files[path] = made.add(found)
            if made.size > self._settings.max_bytes or len(files) > self._settings.max_files:
                raise ToolFailed(
                    "the tree has more files or bytes than a project may; remove what is generated"
                )
        changed = sorted(path for path in {*before, *files} if before.get(path) != files.get(path))
        return _Look(tuple(changed), tuple(left_out), tuple(repositories))

    def _found(self, tree: Tree, path: str, before: Mapping[str, tuple[str, str]]) -> Found | LeftOut | None:
        if path.endswith("/"):
            return None
        if any(map(is_git_internal, path.split("/"))):
            return LeftOut(path, "a name that only git may use")
        if path not in before and is_denied(path, self._settings.deny, self._settings.allow):
            return LeftOut(path, "may hold secrets")
        return tree.found(path)


def lay_out_once(shadow: Shadow, commit: str, place: Path) -> None:
    """The files of a commit, to be written to; all of them, or nothing yet. The shadow is locked."""
    if place.exists() or place.is_symlink():
        return
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for left in place.parent.glob(f"{_NEW_PREFIX}{place.name}-*"):
        remove_tree(left)
    new = place.parent / f"{_NEW_PREFIX}{place.name}-{secrets.token_hex(4)}"
    new.mkdir(mode=0o755)
    with shadow.git.blobs() as blobs:
        lay_out(shadow.files(commit), blobs, new, read_only=False, owner=owner_for(place.parent))
    new.rename(place)


def _is_inside(repositories: tuple[str, ...]) -> str:
    named = ", ".join(repr(path) for path in repositories[:5])
    return (
        f"nothing was committed: {named} holds a repository of its own. Remove its .git, or the directory, and "
        "commit again; nothing else in the tree was changed"
    )
