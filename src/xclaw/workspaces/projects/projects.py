"""Users' projects, as the runtime has them: opened, read, worked on, merged, handed back."""

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from xclaw.contracts.errors import UsageError
from xclaw.contracts.projects import Commit, Merged, Project
from xclaw.workspaces.projects.checkout import find_checkout, is_inside_git, top_of
from xclaw.workspaces.projects.git import Git, GitFailed, GitSettings
from xclaw.workspaces.projects.listing import Listing, list_checkout, list_folder
from xclaw.workspaces.projects.merging import merge
from xclaw.workspaces.projects.patches import log, patch
from xclaw.workspaces.projects.publishing import begin, publish
from xclaw.workspaces.projects.records import Records, TreeRecord
from xclaw.workspaces.projects.settings import ProjectSettings
from xclaw.workspaces.projects.shadow import BRANCHES, Shadow
from xclaw.workspaces.projects.snapshots import (
    Layouts,
    changes_since,
    committed,
    key_of,
    notes_of,
    take,
)
from xclaw.workspaces.projects.worktree import PrivateTree, lay_out_once


@dataclass(frozen=True, slots=True)
class Listed:
    """A private tree that there is, for whoever lists them."""

    record: TreeRecord
    commits: tuple[Commit, ...]
    is_there: bool
    """Its files are still on the disk."""


class LocalProjects:
    """Implements `Projects` with git and directories below `{root}/projects/`. Safe in any number of threads
    and processes. Makes nothing until it is asked for something."""

    def __init__(self, settings: ProjectSettings) -> None:
        self._settings = settings
        self._root = Path(os.path.realpath(settings.root)) / "projects"
        self._git = Git(GitSettings(settings.git, settings.git_timeout_s, settings.durable), "/")
        self._layouts: dict[str, Layouts] = {}

    def open(self, directory: str) -> Project:
        top, notes = self._top(directory)
        checkout, why_not = find_checkout(top)
        shadow = self._shadow(top)
        with shadow.locked() as writer:
            if checkout is None:
                listing = list_folder(writer.git, top, self._settings.ignore_file)
            else:
                listing = list_checkout(writer.git, checkout, self._settings.ignore_file)
            taken = take(writer, top, self._without_own(listing, top), self._settings)
            writer.point("refs/xclaw/last", taken.commit)
            notes += [*([why_not] if why_not else []), *listing.notes, *notes_of(taken.left_out)]
            head = checkout.head() if checkout else ""
            if checkout is None:
                return Project(top, "folder", taken.commit, notes=tuple(notes))
            before = committed(writer, checkout, head) if head else {}
            if before is None:
                notes.append("its last commit cannot be read, so that changes come back as a patch only")
                return Project(top, "folder", taken.commit, notes=tuple(notes))
            changes = changes_since(before, listing, taken)
            begin(writer, checkout, taken.commit, head, changes)
        return Project(top, "git", taken.commit, head, bool(changes), tuple(notes))

    def place(self, project: Project, commit: str = "") -> str:
        return str(self._shadow(project.directory).directory / "snapshots" / (commit or project.base))

    def snapshot(self, project: Project, commit: str = "") -> str:
        shadow = self._shadow(project.directory)
        layouts = self._layouts.setdefault(str(shadow.directory), Layouts(shadow.directory / "snapshots"))
        with shadow.locked() as writer:
            return layouts.of(writer, writer.known(commit or project.base))

    @property
    def keeps(self) -> bool:
        return self._settings.keep

    def branch_for(self, project: Project, run_id: str, task_id: str) -> str:
        shadow = self._shadow(project.directory)
        records = self._records(shadow)
        with shadow.locked() as writer:
            record = records.get(run_id)
            if record is None:
                branch = _free_branch(writer, run_id, task_id)
                record = TreeRecord(run_id, branch, "", project.base, project)
                records.put(record)
                writer.point(f"{BRANCHES}{branch}", project.base)
            return record.branch

    def worktree(
        self, project: Project, run_id: str, task_id: str, directory: str, onto: str = ""
    ) -> PrivateTree:
        shadow = self._shadow(project.directory)
        records = self._records(shadow)
        with shadow.locked() as writer:
            record = records.get(run_id)
            if record is None or not record.directory:
                start = writer.known(onto or project.base)
                branch = record.branch if record else _free_branch(writer, run_id, task_id)
                record = TreeRecord(run_id, branch, directory, start, project)
                records.put(record)
                writer.point(f"{BRANCHES}{branch}", start)
        return self._tree(shadow, record)

    def copy(self, project: Project, commit: str, directory: str) -> None:
        with self._shadow(project.directory).locked() as shadow:
            lay_out_once(shadow, shadow.known(commit), Path(directory))

    def merge(
        self,
        project: Project,
        branches: tuple[str, ...],
        name: str,
        onto: str = "",
        resolved: tuple[str, ...] = (),
    ) -> Merged:
        with self._shadow(project.directory).locked() as shadow:
            return merge(shadow, branches, name, shadow.known(onto or project.base), resolved)

    def patch(self, project: Project, branch: str) -> bytes:
        shadow = self._shadow(project.directory)
        return patch(shadow, project.base, shadow.known(branch))

    def log(self, project: Project, branch: str) -> list[Commit]:
        """The commits of a branch since the snapshot, oldest first; at most 1,000."""
        shadow = self._shadow(project.directory)
        return log(shadow, branch, project.base, shadow.known(branch))

    def publish(self, project: Project, branch: str, name: str = "") -> str:
        if project.kind == "folder":
            return ""
        checkout, why_not = find_checkout(project.directory)
        if checkout is None:
            raise UsageError(f"{project.directory} is no repository any more: {why_not or 'it has no .git'}")
        with self._shadow(project.directory).locked() as shadow:
            return publish(shadow, checkout, project, branch, name or branch)

    def trees(self) -> list[Listed]:
        """Every private tree that there is, of all projects. One whose repository is damaged has no commits here,
        and takes none of the others with it. Raises `GitFailed` without git, which knows the commits."""
        found: list[Listed] = []
        places = sorted(self._root.iterdir()) if self._root.is_dir() else []
        if places:
            self._git.check_version()
        for place in places:
            shadow = Shadow(place, self._git)
            for record in self._records(shadow).all():
                if not record.directory:
                    continue
                commits: list[Commit] = []
                with suppress(GitFailed):
                    commits = self._tree(shadow, record).commits()
                found.append(Listed(record, tuple(commits), Path(record.directory).is_dir()))
        return [listed for listed in found if listed.is_there or listed.commits]

    def tree(self, record: TreeRecord) -> PrivateTree:
        return self._tree(self._shadow(record.project.directory), record)

    def close(self) -> None:
        """Let go of the snapshots: what nobody else uses may be removed."""
        while self._layouts:
            self._layouts.popitem()[1].close()

    def _tree(self, shadow: Shadow, record: TreeRecord) -> PrivateTree:
        return PrivateTree(shadow, record, self._settings)

    def _top(self, directory: str) -> tuple[str, list[str]]:
        real = os.path.realpath(directory)
        if not os.path.isdir(real):  # noqa: PTH112
            what = "that is no directory" if os.path.lexists(real) else "there is no such directory"
            raise UsageError(f"--project {directory!r}: {what}")
        if real in ("/", os.path.realpath(self._settings.root)):
            raise UsageError(f"--project {directory!r}: name the directory of one project")
        if is_inside_git(real):
            raise UsageError(
                f"--project {directory!r} is git's own; name the directory that holds your files"
            )
        try:
            top = top_of(real)
        except OSError as failure:
            raise UsageError(
                f"--project {directory!r} cannot be read: {failure.strerror or failure}"
            ) from None
        notes = [f"{real} is inside {top}, which workers see as a whole"] if top != real else []
        return top, notes

    def _without_own(self, listing: Listing, top: str) -> Listing:
        """xclaw's own files may lie inside the project; nobody is shown those."""
        own = Path(os.path.realpath(self._settings.root))
        if not own.is_relative_to(top):
            return listing
        prefix = f"{own.relative_to(top)}/"
        return replace(listing, paths=tuple(path for path in listing.paths if not path.startswith(prefix)))

    def _shadow(self, directory: str) -> Shadow:
        return Shadow(self._root / key_of(directory), self._git)

    def _records(self, shadow: Shadow) -> Records:
        return Records(shadow.directory / "worktrees")


def _free_branch(shadow: Shadow, run_id: str, task_id: str) -> str:
    branch = f"xclaw/{task_id}"
    return branch if not shadow.commit_of(branch) else f"{branch}-{run_id[-8:]}"
