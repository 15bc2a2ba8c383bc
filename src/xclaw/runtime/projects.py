"""What a run has of the user's project: a view of it, or a private tree and a branch (SPEC F4).

Files are laid out before the run's loop starts. Nothing of a run's work is lost with its end, whatever the end is:
what lies in its tree is committed then, and what its workers did is put together.
"""

import asyncio
import hashlib
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from xclaw.contracts.artifacts import Pointer
from xclaw.contracts.errors import ToolFailed, UsageError
from xclaw.contracts.events import ArtifactDelivered, RunStarted
from xclaw.contracts.projects import Commit, Conflict, Merged, ProjectMerged, Projects, Worktree
from xclaw.contracts.results import SUCCESSFUL, Outcome, Result
from xclaw.contracts.sandbox import PROJECT, Mount
from xclaw.contracts.workspaces import Workspace
from xclaw.loop.state import RunState
from xclaw.runtime.stream import RunLog

TREE = "project"
"""The name of a private tree in its run's private directory."""
PATCH = "changes.patch"
_FAILURES = (ToolFailed, UsageError, OSError)
_SHOWN = 5
_SUBJECT = 72
Answer = TypeVar("Answer")


def begins_at(started: RunStarted) -> str:
    """The commit of the project that the run sees."""
    assert started.project is not None
    return (started.task.onto if started.task else "") or started.project.base


def works_in_tree(started: RunStarted) -> bool:
    """It has files of the project that it may write to: a tree of its own, or a copy that checks are run in."""
    return started.worktree or (started.task is not None and bool(started.task.checks))


def seen_at(projects: Projects, started: RunStarted, workspace: Workspace, *, sandboxed: bool) -> str:
    """The directory of the project as the run's model and commands name it."""
    assert started.project is not None
    if works_in_tree(started):
        return f"{workspace.shown_dir}/{TREE}"
    return PROJECT if sandboxed else projects.place(started.project, begins_at(started))


@dataclass(frozen=True, slots=True)
class Handed:
    """What a run hands up of the project."""

    branch: str = ""
    pointers: dict[str, Pointer] = field(default_factory=dict[str, Pointer])
    trouble: str = ""
    """What is not in the branch and why; empty when all is well."""


@dataclass(slots=True)
class _End:
    """What was found and done at the end of a run, before anything of it is recorded."""

    branch: str = ""
    whole: Merged | None = None
    published: str = ""
    patch: bytes = b""
    troubles: list[str] = field(default_factory=list[str])


class RunProject:
    """One run's. Implements `ProjectPort`."""

    def __init__(self, projects: Projects, started: RunStarted, log: RunLog, workspace: Workspace) -> None:
        assert started.project is not None
        self._projects = projects
        self._started = started
        self._log = log
        self._workspace = workspace
        self._tree: Worktree | None = None
        self._project = started.project
        if not works_in_tree(started):
            workspace.show(projects.place(self._project, begins_at(started)), PROJECT)

    @property
    def mounts(self) -> tuple[Mount, ...]:
        """What a sandbox of the run has beside the run's own directories."""
        if works_in_tree(self._started):
            return ()
        return (Mount(self._projects.place(self._project, begins_at(self._started)), PROJECT),)

    async def prepare(self) -> None:
        """Lay out what the run sees, if it is not there yet. Raises `UsageError`, `ToolFailed`, `OSError`."""
        await asyncio.to_thread(self._prepare)

    def _prepare(self) -> None:
        begin = begins_at(self._started)
        if not works_in_tree(self._started):
            self._projects.snapshot(self._project, begin)
            return
        self._workspace.prepare()
        if self._started.worktree:
            self._made_tree().prepare()
        else:
            self._projects.copy(self._project, begin, self._directory)

    @property
    def _directory(self) -> str:
        return str(Path(self._workspace.private_dir, TREE))

    def _made_tree(self) -> Worktree:
        if self._tree is None:
            begin = begins_at(self._started)
            self._tree = self._projects.worktree(
                self._project, self._run_id, self._task_id, self._directory, begin
            )
        return self._tree

    @property
    def _run_id(self) -> str:
        return self._log.address.run_id

    @property
    def _task_id(self) -> str:
        return self._started.task_id or self._run_id

    async def commit(self, message: str) -> Commit | None:
        tree = self._tree
        if tree is None:
            raise ToolFailed(
                "this run only reads the project; an agent with `isolation: worktree` can change it"
            )
        return await asyncio.to_thread(tree.commit, message, self._started.agent)

    async def merge(
        self, branches: tuple[str, ...], *, onto: str = "", resolved: tuple[str, ...] = (), name: str = ""
    ) -> Merged:
        onto = onto or self._log.state.merged or begins_at(self._started)
        return await asyncio.to_thread(self._merge, branches, onto, resolved, name)

    def _merge(self, branches: tuple[str, ...], onto: str, resolved: tuple[str, ...], name: str) -> Merged:
        own = self._projects.branch_for(self._project, self._run_id, self._task_id)
        if name:
            own = f"{own}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
        elif self._started.worktree:
            own = f"{own}-merged"
        return self._projects.merge(self._project, branches, own, onto, resolved)

    async def finish(self, message: str, *, is_root: bool) -> Handed:
        """At the end of the run: commit what lies in its tree, put its workers' branches together, and hand the
        whole to the user if it is the root. What does not work is told, never raised; the journal's failures are.

        The same again after a crash finds what was done."""
        state = self._log.state
        end = await asyncio.to_thread(self._finish, message, state, is_root=is_root)
        pointers: dict[str, Pointer] = {}
        if end.patch:
            pointer = await asyncio.to_thread(self._delivered, end.patch, state, end)
            pointers = {PATCH: pointer} if pointer else {}
            if pointer and pointer not in state.delivered:
                self._log.record(ArtifactDelivered(pointer, PATCH))
        if end.whole is not None and (end.published or end.whole.commit != state.merged):
            self._log.record(ProjectMerged(end.whole, "", end.published))
        await asyncio.to_thread(self._clean, end)
        branch = end.published if is_root else end.branch
        return Handed(branch, pointers, "; ".join(end.troubles))

    def _finish(self, message: str, state: RunState, *, is_root: bool) -> _End:
        end = _End()
        start = begins_at(self._started)
        own = tip = ""
        if self._started.worktree and (self._tree is not None or Path(self._directory).is_dir()):
            own, tip = self._committed(message, end)
        branches = [branch for branch in ready_branches(state) if branch not in state.coordination.taken]
        if own and not branches and not state.merged:
            end.whole = Merged(tip, own, (own,)) if is_root and tip else None
        elif branches or state.merged:
            parts = (*((own,) if own else ()), *branches)
            end.whole = self._try(end, lambda: self._merge(parts, state.merged or start, (), ""))
        if end.whole is not None:
            end.branch = end.whole.branch if end.whole.commit != start else ""
            end.troubles += [f"{told(conflict)}; it was left out" for conflict in end.whole.conflicts]
        else:
            end.branch = own
        if end.branch and (is_root or own):
            end.patch = self._try(end, lambda: self._patch_of(end.branch, own, is_root=is_root)) or b""
        if end.branch and is_root:
            end.published = self._publish(end)
        return end

    def _committed(self, message: str, end: _End) -> tuple[str, str]:
        """The run's own branch and its newest commit, if it has changes."""
        tree = self._try(end, self._made_tree)
        if tree is None:
            return "", ""
        commit = self._try(end, lambda: tree.commit(message, self._started.agent, last=True))
        if commit is not None and any("repository of its own" in note for note in commit.notes):
            end.troubles += commit.notes
        tip = self._try(end, lambda: tree.tip) or ""
        return (tree.branch, tip) if tip != begins_at(self._started) else ("", "")

    def _patch_of(self, branch: str, own: str, *, is_root: bool) -> bytes:
        if own and not is_root:
            return self._made_tree().patch()
        return self._projects.patch(self._project, branch)

    def _publish(self, end: _End) -> str:
        name = (
            self._try(end, lambda: self._projects.branch_for(self._project, self._run_id, self._task_id))
            or ""
        )
        published = self._try(end, lambda: self._projects.publish(self._project, end.branch, name)) or ""
        for conflict in end.whole.conflicts if end.whole else ():
            alone = conflict.branch
            self._try(end, lambda alone=alone: self._projects.publish(self._project, alone))
        return published

    def _delivered(self, patch: bytes, state: RunState, end: _End) -> Pointer | None:
        digest = hashlib.sha256(patch).hexdigest()
        there = next((pointer for pointer in state.delivered if pointer.sha256 == digest), None)
        return there or self._try(end, lambda: self._workspace.deliver(PATCH, patch))

    def _clean(self, end: _End) -> None:
        if self._projects.keeps:
            return
        tree = self._tree
        if tree is not None:
            if self._try(end, tree.remove) is False:
                end.troubles.append(f"what could not be committed is still in {tree.directory}")
        elif works_in_tree(self._started) and not self._started.worktree:
            with suppress(RecursionError):  # commands of checks made it as deep as they liked
                shutil.rmtree(self._directory, ignore_errors=True)

    def _try(self, end: _End, work: Callable[[], Answer]) -> Answer | None:
        """One step's failure is no other's."""
        try:
            return work()
        except _FAILURES as failure:
            end.troubles.append(str(failure))
            return None


def ready_branches(state: RunState) -> list[str]:
    """Of workers that succeeded, in the order in which their results were taken."""
    results: list[Result] = list(state.child_results.values())
    return list(dict.fromkeys(result.branch for result in results if result.branch and result.succeeded))


def told(conflict: Conflict) -> str:
    """One line."""
    named = ", ".join(conflict.files[:_SHOWN])
    more = f" and {len(conflict.files) - _SHOWN} more" if len(conflict.files) > _SHOWN else ""
    return f"{conflict.branch} conflicts with what was merged, in {named}{more}"


def project_of(
    projects: Projects | None, started: RunStarted, log: RunLog, workspace: Workspace
) -> RunProject | None:
    """What a run has of the project that it was started on, if any."""
    if projects is None or started.project is None:
        return None
    return RunProject(projects, started, log, workspace)


def last_message(state: RunState, outcome: Outcome, reason: str) -> str:
    """Of the commit that takes in what a run left in its tree."""
    started = state.started_event
    task = " ".join((state.request if started else "").split())
    subject = task if len(task) <= _SUBJECT else f"{task[:_SUBJECT]}…"
    if outcome in SUCCESSFUL:
        return subject or "Changes"
    why = f": {reason}" if reason else ""
    return f"Left when the run ended ({outcome})\n\n{subject}\n\nIt ended as {outcome}{why}"
