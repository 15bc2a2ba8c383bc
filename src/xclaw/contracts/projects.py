"""The Projects contract: working on a user's own directory without ever touching it (SPEC F4).

What workers see is a snapshot: the files that are tracked or could be, and no secrets. What they change is
in a private tree each, committed under their name in a repository of xclaw's own, and comes back as a
branch and a patch. Nothing of the project's configuration, hooks or filters is run on the way.
"""

from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True)
class Project:
    """A user's directory as a tree of runs works on it. Fixed in the root's first event, so that a run that
    is taken up again goes on from the same files."""

    directory: str
    """Absolute."""
    kind: Literal["git", "folder"]
    """A "folder" is in no repository: its changes come back as a patch only."""
    base: str
    """The commit that the snapshot is, in xclaw's own repository."""
    head: str = ""
    """The commit that the user's repository was at; empty for a folder and before a first commit."""
    dirty: bool = False
    """The snapshot holds changes that the user has not committed."""
    notes: tuple[str, ...] = ()
    """What was left out and why, for the user: submodules, files too large, the deny-list."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit of a worker."""

    id: str
    branch: str
    message: str
    files: tuple[str, ...]
    """Paths that it changed, in the project; at most 1,000."""
    notes: tuple[str, ...] = ()
    """What lies in the tree and was left out, and why: what the deny-list names, special files."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two branches changed the same place."""

    branch: str
    """The one that could not be taken in; it is kept."""
    onto: str
    """The commit that it should have been merged into."""
    files: tuple[str, ...]
    detail: str
    """The conflicting parts, with markers; bounded."""


@dataclass(frozen=True, slots=True)
class Merged:
    """Branches that were put together, in the order asked."""

    commit: str
    """What holds all of `taken`."""
    branch: str
    taken: tuple[str, ...]
    conflicts: tuple[Conflict, ...] = ()


@dataclass(frozen=True, slots=True)
class ProjectMerged:
    """Branches of a user's project were put together; runs that are started later begin there."""

    merged: Merged
    call_id: str = ""
    """The tool call that asked for it; empty at the end of a run."""
    published: str = ""
    """The branch in the user's repository that holds all of it now."""
    kind: Literal["project_merged"] = "project_merged"


class ProjectPort(Protocol):
    """What one run may do with the user's project."""

    async def commit(self, message: str) -> Commit | None:
        """Take in what has changed in the run's own tree; None when nothing has. Raises `ToolFailed`."""
        ...

    async def merge(
        self, branches: tuple[str, ...], *, onto: str = "", resolved: tuple[str, ...] = (), name: str = ""
    ) -> Merged:
        """Put branches together; see `Projects.merge`. `onto`: what they are put onto; empty: the run's last
        merge. `name`: tells merges of one run apart. Raises `ToolFailed`."""
        ...


class Worktree(Protocol):
    """One run's private tree of a project. Its methods block on disk and on git: call them in a thread."""

    @property
    def directory(self) -> str:
        """Where its files are, on this machine; inside the run's private directory."""
        ...

    @property
    def branch(self) -> str: ...

    def prepare(self) -> None:
        """Lay the files out, if that was not done before. A tree that is there is left as it is."""
        ...

    @property
    def tip(self) -> str:
        """The branch's newest commit; what it began at where it has none of its own."""
        ...

    def commit(self, message: str, author: str, *, last: bool = False) -> Commit | None:
        """Take in what has changed; None when nothing has. Raises `ToolFailed`, with nothing lost, for what
        cannot be committed, such as a repository inside the tree. `last`: leave that in the tree, say so in
        the notes, and take in the rest."""
        ...

    def patch(self) -> bytes:
        """All that its commits changed, as `git apply` takes it; empty when nothing."""
        ...

    def remove(self) -> bool:
        """The files go, the commits stay. What is not committed is not lost: then all stays, and the answer
        is False."""
        ...


class Projects(Protocol):
    """Opens directories of users' and hands out trees of them. Its methods block: call them in a thread."""

    def open(self, directory: str) -> Project:
        """Take a snapshot. Raises `UsageError` for what is no directory, is too large, or cannot be read."""
        ...

    def place(self, project: Project, commit: str = "") -> str:
        """Where `snapshot` lays a commit out. Asks no disk."""
        ...

    def snapshot(self, project: Project, commit: str = "") -> str:
        """The files of the snapshot, or of another commit, laid out read-only: a directory of this machine,
        shared by all runs. Raises `ToolFailed` for a commit that there is not."""
        ...

    def copy(self, project: Project, commit: str, directory: str) -> None:
        """The same files to be written to, in a directory of its own; left as it is if it is there. Nothing
        of it comes back."""
        ...

    @property
    def keeps(self) -> bool:
        """Private trees stay when their run has ended."""
        ...

    def branch_for(self, project: Project, run_id: str, task_id: str) -> str:
        """The name of a run's branch, nobody else's and always the same: `xclaw/` and the task's id, with more
        behind it where another run has that one."""
        ...

    def worktree(
        self, project: Project, run_id: str, task_id: str, directory: str, onto: str = ""
    ) -> Worktree:
        """The tree of a run in `directory`, the same again after a crash, on the run's branch. `onto`: the
        commit to begin at instead of the snapshot."""
        ...

    def merge(
        self,
        project: Project,
        branches: tuple[str, ...],
        name: str,
        onto: str = "",
        resolved: tuple[str, ...] = (),
    ) -> Merged:
        """Put branches together in this order, as a branch of the name `name`. One that conflicts is left out,
        and told; nothing is lost. The same again is the same commit. `resolved`: branches whose changes are in
        the others by hand, so that they belong to the history and are not taken in again. Raises `ToolFailed`
        for a branch that there is not."""
        ...

    def patch(self, project: Project, branch: str) -> bytes:
        """All that a branch changed since the snapshot, as `git apply` takes it."""
        ...

    def publish(self, project: Project, branch: str, name: str = "") -> str:
        """Have the user's repository hold the branch too, as `name` if that is given; answers its name there,
        empty for a folder. Their files, index and current branch are not touched. An existing branch of
        that name is never moved back or over another's work: then it has another name. Raises
        `UsageError` where it cannot be."""
        ...
