"""write_plan: what is to be done by whom, in which order, checked before anybody begins (SPEC H1, H5)."""

from collections.abc import Mapping

from xclaw.contracts.models import ToolSpec
from xclaw.contracts.plans import PlannedTask
from xclaw.contracts.tools import ToolContext, ToolOutput
from xclaw.patterns.coordinator.phases import PhaseCall
from xclaw.patterns.coordinator.reading import EXAMPLE, read_plan
from xclaw.patterns.coordinator.reports import KeepNote, encoded
from xclaw.patterns.coordinator.settings import CoordinatorSettings
from xclaw.patterns.inputs import FindArtifact
from xclaw.patterns.parameters import INPUTS, list_of

_NAMES: dict[str, object] = {"type": "array", "items": {"type": "string"}}


class WritePlanTool:
    """Accepts a plan or says everything that is wrong with it. Starts nothing."""

    replayable: bool = True
    timeout_s: float | None = None

    def __init__(self, find_artifact: FindArtifact, settings: CoordinatorSettings, keep: KeepNote) -> None:
        self._find_artifact = find_artifact
        self._settings = settings
        self._keep = keep
        task: dict[str, object] = {
            "type": "object",
            "properties": {
                "id": {"type": "string", "description": "A short name, its own"},
                "agent": {"type": "string", "description": "Who does it"},
                "task": {
                    "type": "string",
                    "description": "Self-contained; the results of what it depends on are handed on with it",
                },
                "inputs": INPUTS,
                "writes": {
                    **_NAMES,
                    "description": "Files that it delivers, by the name they are delivered under",
                },
                "depends_on": {**_NAMES, "description": "Ids of tasks that must be done first"},
            },
            "required": ["id", "task", "agent", "writes", "depends_on"],
        }
        self.spec = ToolSpec(
            "write_plan",
            "The second phase: the whole plan, as a graph of tasks. Those that do not depend on one another run "
            "at once, so no two of them may write one file. After a failed verification: the tasks that mend it.",
            {
                "type": "object",
                "properties": {"plan": list_of(task, f"Each task, e.g. {EXAMPLE}")},
                "required": ["plan"],
            },
            effect="reads",
        )

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        call = PhaseCall("write_plan", context, self._settings)
        if not call.is_replayed:
            plan = await read_plan(
                arguments.get("plan"), context, self._find_artifact, self._settings.max_tasks
            )
            mends_undone = call.state.phase == "verification"
            call.begin(
                "implementation", len(plan), plan=plan, round_=call.round + 1 if mends_undone else None
            )
        plan = context.coordination().plan
        kept = await self._keep(context, f"plan-{call.round}.md", _as_text(plan), context.agent)
        record: dict[str, object] = {
            "accepted": len(plan),
            "begin_at_once": [task.id for task in plan if not task.depends_on],
            "round": call.round,
            "next": call.next_step(),
        }
        if kept:
            record["scratchpad"] = kept
        return ToolOutput(encoded(record))


def _as_text(plan: tuple[PlannedTask, ...]) -> str:
    lines: list[str] = []
    for task in plan:
        after = f", after {', '.join(task.depends_on)}" if task.depends_on else ""
        writes = f", writes {', '.join(task.writes)}" if task.writes else ""
        lines.append(f"## {task.id} ({task.agent}{after}{writes})\n{task.task}")
    return "\n\n".join(lines)
