"""How a coordinator's phases stand: a fold over its run's events, never what its model says (SPEC H1)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from xclaw.contracts.artifacts import Pointer
from xclaw.contracts.events import ChildEnded, ChildSpawned, Event, PhaseChanged
from xclaw.contracts.plans import CheckRun, Phase, PlannedTask, Verdict
from xclaw.contracts.projects import Merged, ProjectMerged
from xclaw.contracts.results import Result

PHASE_TOOLS = ("research", "write_plan", "implement", "verify")
"""One for each phase. An agent that has `write_plan` is a coordinator."""

RESEARCH = "call research with the questions that the work depends on, each for one worker"
SYNTHESIS = "read the reports, then call write_plan with the whole plan, once"
IMPLEMENT = "call implement: it runs the accepted plan"
VERIFY = "call verify with the commands whose exit codes show that the work is right"
MEND = (
    "call write_plan with the tasks that mend what failed, then implement and verify; or, if only a command "
    "was wrong, verify with the right one and name the wrong one in `replaces`"
)
MEND_OR_VERIFY = (
    "some tasks of the plan were not done: call write_plan with tasks that do them, or verify what there is"
)
VERIFY_AGAIN = "files were delivered after the last verification: call verify again"
ANSWER = "answer the user: what was done, which checks passed, what is missing"


def is_coordinator(tools: Collection[str]) -> bool:
    return "write_plan" in tools


def planned_key(task_id: str) -> str:
    """The key of the child that does a task of the plan."""
    return f"task:{task_id}"


@dataclass(frozen=True, slots=True)
class Coordination:
    """Changes only by `after`."""

    phase: Phase = "research"
    round: int = 1
    rounds: int = 0
    begun: bool = False
    plan: tuple[PlannedTask, ...] = ()
    """The accepted plan of this round; empty until there is one."""
    calls: Mapping[str, PhaseChanged] = field(default_factory=dict[str, PhaseChanged])
    """How each call of a phase's tool began, by its id."""
    closed: frozenset[str] = frozenset()
    """Calls that ended their phase."""
    reported: frozenset[tuple[str, str]] = frozenset()
    """Parts that have ended, as (call id, part)."""
    results: Mapping[str, Result] = field(default_factory=dict[str, Result])
    """Of the tasks that were planned, by id; a later round's in place of an earlier one's."""
    delivered: tuple[Pointer, ...] = ()
    """What workers handed up, but for researchers and verifiers, in order."""
    verdict: Verdict | None = None
    """Of the last verification."""
    checks: tuple[CheckRun, ...] = ()
    verifications: int = 0
    merged: str = ""
    """Of a user's project: the commit of the last merge."""
    taken: frozenset[str] = frozenset()
    """Branches that are in it."""
    unmerged: frozenset[str] = frozenset()
    """Branches of a user's project that conflict with what was merged."""
    is_stale: bool = False
    """Something was delivered after the last verification."""
    _children: Mapping[str, ChildSpawned] = field(default_factory=dict[str, ChildSpawned])

    def after(self, event: Event) -> "Coordination":
        """How it stands once `event` has happened."""
        match event:
            case PhaseChanged():
                return self._changed(event)
            case ChildSpawned():
                return replace(self, _children={**self._children, event.child_run_id: event})
            case ChildEnded():
                return self._ended(event)
            case ProjectMerged():
                return self._merged(event.merged)
            case _:
                return self

    @property
    def undone(self) -> tuple[str, ...]:
        """Tasks of this round's plan that did not succeed."""
        return tuple(task.id for task in self.plan if not self._succeeded(task.id))

    @property
    def failed_checks(self) -> tuple[CheckRun, ...]:
        return tuple(run for run in self.checks if run.ran and not run.passed)

    @property
    def offered(self) -> tuple[str, ...]:
        """The tools that belong to the phase as it stands, the proposed one first."""
        match self.phase:
            case "research":
                return ("research",)
            case "synthesis":
                return ("write_plan",)
            case "implementation":
                return ("implement",) if self.plan else ("write_plan", "verify")
            case "verification":
                return ("write_plan", "verify") if self._may_mend else ("verify",)
            case "finished":
                return ("verify",) if self.is_stale else ()

    @property
    def next_step(self) -> str:
        match self.phase:
            case "research":
                return RESEARCH
            case "synthesis":
                return SYNTHESIS
            case "implementation":
                return IMPLEMENT if self.plan else MEND
            case "verification":
                return MEND_OR_VERIFY if self._may_mend else VERIFY
            case "finished":
                return VERIFY_AGAIN if self.is_stale else ANSWER

    @property
    def _may_mend(self) -> bool:
        return bool(self.undone) and self.round < self.rounds

    def _succeeded(self, task_id: str) -> bool:
        result = self.results.get(task_id)
        return result is not None and result.succeeded and result.branch not in self.unmerged

    def _changed(self, event: PhaseChanged) -> "Coordination":
        began = self.calls.get(event.call_id)
        changed = replace(self, phase=event.phase, round=event.round, rounds=event.rounds, begun=True)
        if began is None:
            changed = replace(changed, calls={**self.calls, event.call_id: event})
        elif (event.phase, event.round) != (began.phase, began.round) or event.verdict is not None:
            changed = replace(changed, closed=self.closed | {event.call_id})
        if event.part:
            changed = replace(changed, reported=self.reported | {(event.call_id, event.part)})
        if event.plan:
            ids = {task.id for task in event.plan}
            kept = {name: result for name, result in self.results.items() if name not in ids}
            changed = replace(changed, plan=event.plan, results=kept)
        if event.verdict is not None:
            plan = () if event.phase == "implementation" else self.plan
            changed = replace(
                changed,
                plan=plan,
                verdict=event.verdict,
                checks=event.checks,
                verifications=self.verifications + 1,
                is_stale=False,
            )
        return changed

    def _merged(self, merged: Merged) -> "Coordination":
        left = {conflict.branch for conflict in merged.conflicts}
        return replace(
            self,
            merged=merged.commit,
            taken=self.taken | set(merged.taken),
            unmerged=(self.unmerged | left) - set(merged.taken),
        )

    def _ended(self, event: ChildEnded) -> "Coordination":
        spawned = self._children.get(event.child_run_id)
        began = self.calls.get(spawned.call_id) if spawned else None
        if spawned is None or (began is not None and began.phase in ("research", "verification")):
            return self
        pointers = tuple(event.result.pointers.values())
        changed = replace(
            self,
            delivered=(*self.delivered, *pointers),
            is_stale=self.is_stale or (self.verdict is not None and bool(pointers)),
        )
        prefix, _, task_id = spawned.task.key.partition(":")
        if began is None or planned_key(task_id) != f"{prefix}:{task_id}":
            return changed
        return replace(changed, results={**self.results, task_id: event.result})


NOT_BEGUN = Coordination()


def not_begun() -> Coordination:
    """How it stands where there is no coordinator."""
    return NOT_BEGUN
