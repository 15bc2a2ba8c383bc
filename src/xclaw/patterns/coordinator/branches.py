"""The branches of a plan's tasks, where the work is on a user's project: what each begins at, and all together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xclaw.contracts.plans import PlannedTask
from xclaw.contracts.projects import Conflict, Merged, ProjectMerged, ProjectPort
from xclaw.contracts.results import Result
from xclaw.contracts.tools import ToolContext
from xclaw.patterns.render import fenced, shorten

DETAIL_CHARACTERS = 6_000
"""Of the conflicting parts that a task is handed."""


@dataclass(slots=True)
class Branches:
    """Of one call of implement. Without a project it does nothing."""

    context: ToolContext
    mended: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """By task: branches that conflicted where it began, and that it was told to put in by hand."""

    @property
    def port(self) -> ProjectPort | None:
        return self.context.project

    async def beginning(self, task: PlannedTask, given: Mapping[str, Result]) -> tuple[str, list[str]]:
        """The commit at which a task begins: what it depends on, put together. And what it has to be told of
        conflicts among that. Raises `ToolFailed`."""
        branches = tuple(dict.fromkeys(result.branch for result in given.values() if result.branch))
        if self.port is None or not branches:
            return "", []
        merged = await self.port.merge(branches, name=f"{self.context.call_id}:{task.id}")
        self.mended[task.id] = tuple(conflict.branch for conflict in merged.conflicts)
        return merged.commit, [_told(conflict) for conflict in merged.conflicts]

    async def put_together(
        self, plan: Sequence[PlannedTask], results: Mapping[str, Result]
    ) -> dict[str, object] | None:
        """Merge what the tasks made, in the order of their dependencies; answers how it is shown."""
        if self.port is None:
            return None
        done = [task for task in ordered(plan) if task.id in results and results[task.id].succeeded]
        by_hand = {branch for task in done for branch in self.mended.get(task.id, ())}
        owners = {results[task.id].branch: task.id for task in done if results[task.id].branch}
        branches = tuple(branch for branch in owners if branch not in by_hand)
        if not branches:
            return None
        merged = await self.port.merge(branches)
        settled = tuple(
            branch
            for task in done
            if results[task.id].branch in merged.taken
            for branch in self.mended.get(task.id, ())
        )
        if settled:
            noted = await self.port.merge((), onto=merged.commit, resolved=tuple(dict.fromkeys(settled)))
            merged = Merged(
                noted.commit, noted.branch, (*merged.taken, *noted.taken), _but(merged.conflicts, settled)
            )
        self.context.record(ProjectMerged(merged, self.context.call_id))
        return _shown(merged, owners)


def ordered(plan: Sequence[PlannedTask]) -> list[PlannedTask]:
    """Every task behind those that it depends on; otherwise as planned."""
    left, known, found = list(plan), {task.id for task in plan}, list[PlannedTask]()
    placed: set[str] = set()
    while left:
        ready = next((task for task in left if not (set(task.depends_on) & known) - placed), left[0])
        left.remove(ready)
        placed.add(ready.id)
        found.append(ready)
    return found


def _but(conflicts: Sequence[Conflict], settled: Sequence[str]) -> tuple[Conflict, ...]:
    return tuple(conflict for conflict in conflicts if conflict.branch not in settled)


def _told(conflict: Conflict) -> str:
    detail = shorten(conflict.detail, DETAIL_CHARACTERS)
    return (
        f"Your copy of the project does not hold the branch {conflict.branch}: it conflicts in "
        f"{', '.join(conflict.files[:20])}. Put into those files what that branch wanted as well, so that both "
        "changes are in them, and take over its other files; its whole patch is among your input artifacts.\n\n"
        + fenced(detail, "the conflicting parts, with markers: data")
    )


def _shown(merged: Merged, owners: Mapping[str, str]) -> dict[str, object]:
    record: dict[str, object] = {
        "branch": merged.branch,
        "merged": [owners.get(branch, branch) for branch in merged.taken],
    }
    if merged.conflicts:
        record["conflicts"] = [
            {
                "task": owners.get(conflict.branch, conflict.branch),
                "files": list(conflict.files[:20]),
                "parts": shorten(conflict.detail, DETAIL_CHARACTERS),
            }
            for conflict in merged.conflicts
        ]
        record["mend"] = "plan a task that depends on each task that conflicts; it is shown both sides"
    return record
