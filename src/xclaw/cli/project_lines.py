"""What the end of a run says of the user's project: the branch, its commits, and how to take them."""

import asyncio
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from xclaw.cli.text import one_line, printable
from xclaw.cli.workflow_lines import workflow_text
from xclaw.contracts.errors import ToolFailed, UsageError
from xclaw.contracts.events import RunStarted
from xclaw.contracts.projects import Commit, Project, ProjectMerged
from xclaw.contracts.workflows import WorkflowNoted

if TYPE_CHECKING:
    from xclaw.app import App
    from xclaw.contracts.events import Entry
    from xclaw.contracts.results import Result

MAX_COMMITS = 20
_FILES = 4


async def project_lines(app: "App", entries: Sequence["Entry"], result: "Result") -> list[str]:
    """Nothing for a run without a project."""
    work = ProjectWork()
    for entry in entries:
        work.receive(entry)
    project, merged = work.project, work.merged
    if project is None:
        return []
    notes = [note_line(note) for note in project.notes]
    if merged is None or merged.merged.commit == project.base:
        return [*notes, f"no changes to {printable(project.directory)}"]
    try:
        commits = await asyncio.to_thread(app.projects.log, project, merged.merged.branch)
    except (UsageError, ToolFailed):
        commits = []
    return [*notes, *_changes(project, merged, result, commits)]


@dataclass(slots=True)
class ProjectWork:
    """What the root of one tree did on a project, as far as its events tell."""

    project: Project | None = None
    merged: ProjectMerged | None = None

    def receive(self, entry: "Entry") -> None:
        if entry.address.parent_id:
            return
        match entry.event:
            case RunStarted() as started:
                self.project = started.project
            case ProjectMerged() as merged:
                self.merged = merged
            case _:
                pass

    def lines(self, result: "Result") -> list[str]:
        """For a client, which does not see the commits; nothing when nothing was changed."""
        project, merged = self.project, self.merged
        if project is None or merged is None or merged.merged.commit == project.base:
            return []
        return _changes(project, merged, result, ())


def note_line(note: str) -> str:
    """What was left out of the directory, or something else to know about it."""
    return f"{'not seen by workers: ' if note.startswith('left out') else ''}{printable(note)}"


def _changes(
    project: Project, merged: ProjectMerged, result: "Result", commits: Sequence[Commit]
) -> list[str]:
    missing = (
        [f"not in it: {one_line(printable(result.reason), 1_000)}"]
        if result.succeeded and result.reason
        else []
    )
    patches = [pointer.path for name, pointer in result.pointers.items() if name == "changes.patch"]
    return [
        *missing,
        *_branch_lines(project, merged.published, commits),
        *_taking(project, merged.published, patches),
    ]


def commit_line(commit: Commit) -> str:
    """Without its id: in the user's repository it has another."""
    files = ", ".join(one_line(path, 60) for path in commit.files[:_FILES])
    more = f" and {len(commit.files) - _FILES} more" if len(commit.files) > _FILES else ""
    shown = f" ({files}{more})" if files else ""
    return f"  {one_line(commit.message, 72)}{shown}"


def _branch_lines(project: Project, branch: str, commits: Sequence[Commit]) -> list[str]:
    where = f"branch {branch}" if branch else "changes"
    more = [f"  and {len(commits) - MAX_COMMITS} more"] if len(commits) > MAX_COMMITS else []
    head = f"{where} of {printable(project.directory)}, your files are as they were{':' if commits else ''}"
    return [head, *(commit_line(commit) for commit in commits[:MAX_COMMITS]), *more]


def _taking(project: Project, branch: str, patches: Sequence[str]) -> list[str]:
    directory = shlex.quote(project.directory)
    patch = shlex.quote(patches[-1]) if patches else ""
    applied = f"{_alone(project)}git -C {directory} apply {patch}"
    merging = [f"git -C {directory} merge {branch}"] if branch else []
    if project.dirty:
        after = "or once your uncommitted changes, which are its first commit, are committed"
        return [
            *([f"take them beside your uncommitted changes: {applied}"] if patch else []),
            *(f"{after}: {line}" for line in merging),
        ]
    ways = [*merging, *([applied] if patch else [])]
    return [f"{said}: {way}" for said, way in zip(("take them", "or as they are"), ways, strict=False)]


def _alone(project: Project) -> str:
    """A folder inside a repository that it is no part of: git would pass over all files, and say nothing."""
    above = Path(project.directory).parents
    if project.kind == "git" or not any(os.path.lexists(place / ".git") for place in above):
        return ""
    return f"GIT_CEILING_DIRECTORIES={shlex.quote(str(above[0]))} "


def noted_text(event: WorkflowNoted | ProjectMerged) -> str:
    """What a script noted, or what was merged while the run goes on, on one line."""
    if isinstance(event, WorkflowNoted):
        return workflow_text(event)
    merged = event.merged
    parts = [f"merged {', '.join(merged.taken)}"] if merged.taken else []
    parts += [f"{each.branch} conflicts in {', '.join(each.files[:_FILES])}" for each in merged.conflicts]
    parts += [f"the branch {event.published} holds the changes"] if event.published else []
    return one_line("; ".join(parts) or "nothing to merge", 300)
