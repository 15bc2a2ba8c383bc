"""Snapshots: what a user's directory holds now, as a commit; and commits laid out for reading."""

import fcntl
import hashlib
import os
import secrets
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from xclaw.contracts.errors import UsageError
from xclaw.workspaces.projects.checkout import Checkout
from xclaw.workspaces.projects.denied import is_denied
from xclaw.workspaces.projects.laying import lay_out, remove_tree
from xclaw.workspaces.projects.listing import Listing
from xclaw.workspaces.projects.reading import (
    Found,
    LeftOut,
    Tree,
    is_below,
    opened_tree,
    repositories_below,
    shown_names,
)
from xclaw.workspaces.projects.settings import ProjectSettings
from xclaw.workspaces.projects.shadow import LIST_FILES, Note, Shadow, Writing, files_in, writing

_SNAPSHOT = Note("The files as they were", "xclaw", 0)


@dataclass(frozen=True, slots=True)
class Taken:
    """A snapshot that was taken."""

    commit: str
    files: Mapping[str, tuple[str, str]]
    left_out: tuple[LeftOut, ...]


def take(shadow: Shadow, directory: str, listing: Listing, settings: ProjectSettings) -> Taken:
    """Read the files and make them a commit; the same files are the same commit. The shadow is locked.

    Raises `UsageError` for more than may be read.
    """
    if len(listing.paths) > settings.max_files:
        raise UsageError(
            f"{directory} has {len(listing.paths)} files that are not ignored; workers may read "
            f"{settings.max_files} (project.max_files). Name a smaller directory, or ignore what is generated."
        )
    files: dict[str, tuple[str, str]] = {}
    left_out: list[LeftOut] = []
    with opened_tree(directory, settings.max_file_bytes) as tree, writing(_known(shadow)) as made:
        inside = repositories_below(tree, listing.paths, listing.tracked)
        left_out += [LeftOut(path, "a repository of its own") for path in (*listing.submodules, *inside)]
        for path in listing.paths:
            found = None if is_below(path, inside) else _allowed(tree, path, settings)
            if isinstance(found, LeftOut):
                left_out.append(found)
            elif found is not None:
                found = found if listing.has_modes else _with_mode(found, listing)
                files[path] = made.add(found)
                _refuse_more(made, directory, settings)
        ref = f"refs/xclaw/snapshots/{made.digest}"
        commit = shadow.commit_of(ref) or made.commit(shadow, ref, "", _SNAPSHOT)
    return Taken(commit, files, tuple(left_out))


def notes_of(left_out: Iterable[LeftOut]) -> tuple[str, ...]:
    """One line for each reason."""
    by_reason: dict[str, list[str]] = {}
    for each in left_out:
        by_reason.setdefault(each.why, []).append(each.path)
    return tuple(f"left out ({why}): {shown_names(paths)}" for why, paths in by_reason.items())


def committed(shadow: Shadow, checkout: Checkout, head: str) -> dict[str, tuple[str, str]] | None:
    """The files of the user's commit, read with git's own reader from their objects; None where it fails."""
    code, said, _ = shadow.with_objects_of(checkout).git.ended(*LIST_FILES, head)
    return files_in(said) if code == 0 else None


def changes_since(
    before: Mapping[str, tuple[str, str]], listing: Listing, taken: Taken
) -> dict[str, tuple[str, str] | None]:
    """What the user has not committed, by path; None for what is gone. A file that is as in the index counts as
    that, whatever a filter would make of it, and what the snapshot leaves out does not count."""
    out = {each.path for each in taken.left_out}
    changes: dict[str, tuple[str, str] | None] = {}
    for path, entry in taken.files.items():
        tracked = listing.tracked.get(path)
        if tracked is not None and path not in listing.changed and before.get(path) == tracked:
            continue
        if before.get(path) != entry:
            changes[path] = entry
    out.update(listing.absent)
    for path, (mode, _) in before.items() if listing.knows_deleted else ():
        if path not in taken.files and path not in out and mode != "160000":
            changes[path] = None
    return changes


def _with_mode(found: Found, listing: Listing) -> Found:
    """As the index has it: on some disks all files may be run."""
    if found.mode == "120000":
        return found
    mode = listing.tracked.get(found.path, ("100644", ""))[0]
    return replace(found, mode="100755" if mode == "100755" else "100644")


def _allowed(tree: Tree, path: str, settings: ProjectSettings) -> Found | LeftOut | None:
    if path.endswith("/"):
        return None
    if is_denied(path, settings.deny, settings.allow):
        return LeftOut(path, "may hold secrets")
    return tree.found(path)


def _refuse_more(made: Writing, directory: str, settings: ProjectSettings) -> None:
    if made.size > settings.max_bytes:
        raise UsageError(
            f"the files of {directory} that are not ignored have more than {settings.max_bytes} bytes "
            "(project.max_bytes). Name a smaller directory, or ignore what is generated."
        )


def _known(shadow: Shadow) -> set[str]:
    """Contents that the last snapshot had."""
    last = shadow.commit_of("refs/xclaw/last")
    return {object_id for _, object_id in shadow.files(last).values()} if last else set()


class Layouts:
    """Commits laid out read-only, each once, for all runs of this machine. One that no living process uses is
    removed when another is made."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._held: dict[str, int] = {}

    def of(self, shadow: Shadow, commit: str) -> str:
        """The directory. Call it with the shadow locked."""
        place = self._directory / commit
        if commit not in self._held:
            self._directory.mkdir(mode=0o755, parents=True, exist_ok=True)
            self._held[commit] = self._hold(commit)
            self._clean()
        if not place.is_dir():
            new = self._directory / f"{commit}.new-{secrets.token_hex(4)}"
            new.mkdir()
            with shadow.git.blobs() as blobs:
                lay_out(shadow.files(commit), blobs, new, read_only=True, owner=None)
            new.rename(place)
        return str(place)

    def _hold(self, commit: str) -> int:
        lock = os.open(self._directory / f"{commit}.used", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_SH)
        return lock

    def _clean(self) -> None:
        for each in sorted(self._directory.iterdir()):
            commit, _, kind = each.name.partition(".")
            if kind.startswith("new-"):
                remove_tree(each)
            elif kind == "used" and commit not in self._held:
                self._drop_unused(each, commit)

    def _drop_unused(self, mark: Path, commit: str) -> None:
        lock = os.open(mark, os.O_RDWR | os.O_CLOEXEC)
        try:
            with suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_tree(self._directory / commit)
                mark.unlink(missing_ok=True)
        finally:
            os.close(lock)

    def close(self) -> None:
        while self._held:
            os.close(self._held.popitem()[1])


def key_of(directory: str) -> str:
    """The name of what belongs to a project, below `projects/`."""
    digest = hashlib.sha256(os.fsencode(directory)).hexdigest()[:16]
    stem = "".join(
        letter for letter in Path(directory).name.casefold() if letter.isascii() and letter.isalnum()
    )
    return f"{stem[:24] or 'project'}-{digest}"
