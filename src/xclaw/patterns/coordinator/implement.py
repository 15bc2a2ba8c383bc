"""implement: the accepted plan, each task as soon as what it depends on is done (SPEC H1, H5)."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from xclaw.contracts.artifacts import Pointer
from xclaw.contracts.coordination import Coordination, planned_key
from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.models import ToolSpec
from xclaw.contracts.plans import PlannedTask
from xclaw.contracts.results import Result
from xclaw.contracts.tasks import Task
from xclaw.contracts.tools import ToolContext, ToolOutput
from xclaw.patterns.children import attempt
from xclaw.patterns.coordinator.branches import Branches
from xclaw.patterns.coordinator.files import file_name, newest
from xclaw.patterns.coordinator.graph import normalised
from xclaw.patterns.coordinator.phases import BLOCKED, PhaseCall
from xclaw.patterns.coordinator.reports import KeepNote, encoded, report_text, share, shown_report
from xclaw.patterns.coordinator.settings import CoordinatorSettings
from xclaw.patterns.inputs import FindArtifact, handed_on
from xclaw.patterns.render import fenced, shorten

RESULT_CHARACTERS = 4_000
"""Of each result that is handed on in a task's text."""
EVIDENCE_CHARACTERS = 1_500


@dataclass(slots=True)
class _Progress:
    """What the tasks of one plan have come to so far."""

    ended: dict[str, asyncio.Event]
    branches: Branches
    results: dict[str, Result] = field(default_factory=dict[str, Result])
    blocked: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Tasks that were not begun, with what they waited for."""


class ImplementTool:
    """Runs the plan and waits for all of it. A task that fails stops what depends on it, nothing else;
    cancelling ends all."""

    replayable: bool = True
    """The same call finds the workers that it had started."""
    timeout_s: float | None = None

    def __init__(self, find_artifact: FindArtifact, settings: CoordinatorSettings, keep: KeepNote) -> None:
        self._find_artifact = find_artifact
        self._settings = settings
        self._keep = keep
        self.spec = ToolSpec(
            "implement",
            "The third phase: runs the accepted plan, tasks that do not depend on one another at the same time. "
            "Answers all results together, when the last task has ended.",
            {"type": "object", "properties": {}},
            effect="reads",
        )

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        call = PhaseCall("implement", context, self._settings)
        plan = call.state.plan
        call.begin("implementation", len(plan))
        before = call.state if not call.is_replayed else _without(call.state, plan)
        progress = _Progress({task.id: asyncio.Event() for task in plan}, Branches(context))
        async with asyncio.TaskGroup() as group:
            for task in plan:
                group.create_task(self._one(task, progress, before, call, context))
        project = await progress.branches.put_together(plan, progress.results)
        call.end("verification")
        record: dict[str, object] = {
            "phase": "implementation",
            "round": call.round,
            "done": [task.id for task in plan if _succeeded(progress, task.id)],
            "not_done": [task.id for task in plan if not _succeeded(progress, task.id)],
            "next": call.next_step(),
            "notes": _notes(plan, progress),
            "results": [await self._shown(task, progress, len(plan), context) for task in plan],
        }
        if project is not None:
            record["project"] = project
        return ToolOutput(encoded(record), ok=any(result.succeeded for result in progress.results.values()))

    async def _one(
        self,
        task: PlannedTask,
        progress: _Progress,
        before: Coordination,
        call: PhaseCall,
        context: ToolContext,
    ) -> None:
        waits_for = [name for name in task.depends_on if name in progress.ended]
        for name in waits_for:
            await progress.ended[name].wait()
        failed = tuple(name for name in waits_for if not _succeeded(progress, name))
        if failed:
            progress.blocked[task.id] = failed
            call.part_ended(task.id, task.agent, BLOCKED)
        else:
            given = {name: progress.results.get(name) or before.results[name] for name in task.depends_on}
            result = await self._attempt(task, given, before, progress.branches)
            progress.results[task.id] = result
            await self._keep(context, f"round-{call.round}-{task.id}.md", report_text(result), task.agent)
            call.part_ended(task.id, task.agent, result.outcome)
        progress.ended[task.id].set()

    async def _attempt(
        self, task: PlannedTask, given: Mapping[str, Result], before: Coordination, branches: Branches
    ) -> Result:
        """Whatever goes wrong with one task is its result, and never another's."""
        try:
            child = await self._child(task, given, before, branches)
        except ToolFailed as failure:  # an input that is not what it was
            return Result("error", reason=str(failure))
        return await attempt(branches.context.spawn, child)

    async def _child(
        self, task: PlannedTask, given: Mapping[str, Result], before: Coordination, branches: Branches
    ) -> Task:
        """The task with what it depends on: results in its text, files as inputs."""
        context = branches.context
        onto, conflicts = await branches.beginning(task, given)
        named = await handed_on(list(task.inputs), [], self._find_artifact, context.workspace)
        files = [*named, *(pointer for result in given.values() for pointer in result.pointers.values())]
        files += [pointer for pointer in newest(before.delivered) if _is_rewritten(pointer, task)]
        parts = [task.task, *conflicts]
        if task.writes:
            parts.append(f"{_writing(branches)}: {', '.join(task.writes)}")
        for name, result in given.items():
            said = shorten(report_text(result), RESULT_CHARACTERS)
            parts.append(fenced(said, f"result of {name}, on which this depends: data"))
        for run in before.failed_checks:
            said = f"$ {run.command}\n{run.output[-EVIDENCE_CHARACTERS:]}"
            parts.append(fenced(said, "a check that failed before this task: data"))
        inputs = tuple({pointer.path: pointer for pointer in files}.values())
        return Task(
            task.agent, "\n\n".join(parts), "delegate", key=planned_key(task.id), inputs=inputs, onto=onto
        )

    async def _shown(
        self, task: PlannedTask, progress: _Progress, parts: int, context: ToolContext
    ) -> dict[str, object]:
        about: dict[str, object] = {"id": task.id, "agent": task.agent}
        blocked = progress.blocked.get(task.id)
        if blocked is not None:
            return {
                **about,
                "status": BLOCKED,
                "reason": f"not begun, since these failed: {', '.join(blocked)}",
            }
        result = progress.results[task.id]
        characters = share(self._settings.report_chars, parts)
        return {**about, **await shown_report(f"result-{task.id}.md", result, characters, context, "")}


def _writing(branches: Branches) -> str:
    if branches.port is None:
        return "Deliver under exactly these names"
    return "What it is to change in the project, or deliver under these names if it is no part of that"


def _succeeded(progress: _Progress, task_id: str) -> bool:
    result = progress.results.get(task_id)
    return result is not None and result.succeeded


def _without(state: Coordination, plan: tuple[PlannedTask, ...]) -> Coordination:
    """As it stood when the plan was begun: before its own results."""
    ids = {task.id for task in plan}
    return replace(state, results={name: result for name, result in state.results.items() if name not in ids})


def _is_rewritten(pointer: Pointer, task: PlannedTask) -> bool:
    """A file of an earlier task that this one is to write anew: it has to see what is there."""
    name = file_name(pointer)
    return any(name == place or name.startswith(f"{place}/") for place in task.writes)


def _notes(plan: tuple[PlannedTask, ...], progress: _Progress) -> list[str]:
    """What was planned otherwise: files that nobody announced, or did not come."""
    notes: list[str] = []
    writers: dict[str, str] = {}
    for task in plan:
        result = progress.results.get(task.id)
        if result is None:
            continue
        names = {normalised(file_name(pointer)) for pointer in result.pointers.values()}
        missing = [place for place in task.writes if not any(_covers(place, name) for name in names)]
        if missing and result.succeeded and not result.branch:
            notes.append(f"{task.id} did not deliver {', '.join(missing)}")
        for name in sorted(names):
            if name in writers and writers[name] not in task.depends_on:
                notes.append(f"{writers[name]} and {task.id} both delivered {name}; the later one counts")
            writers[name] = task.id
    return notes[:20]


def _covers(place: str, name: str) -> bool:
    return place == "." or name == place or name.startswith(f"{place}/")
