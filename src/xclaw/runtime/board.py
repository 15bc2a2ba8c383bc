"""The task state (SPEC E5): one record, kept from what happened, shown each turn and on request."""

import json
from typing import cast

from xclaw.contracts.coordination import Coordination, is_coordinator
from xclaw.contracts.events import ChildSpawned
from xclaw.contracts.results import Result
from xclaw.loop.state import RunState

TASK_CHARACTERS = 100
MAX_STEPS = 40
MAX_ISSUES = 5
ISSUE_CHARACTERS = 200


def task_state(state: RunState) -> dict[str, object]:
    """The record: the request and one step per child, in the order they were started."""
    started = state.started_event
    steps: dict[str, object] = {}
    for run_id, spawned in list(state.children.items())[-MAX_STEPS:]:
        steps[f"{spawned.task.agent} {spawned.task_id}"] = _step(spawned, state.child_results.get(run_id))
    return {"task": (started.input if started else "")[:400], "steps": steps}


def board_text(state: RunState, budget_left: str) -> str:
    """What the orchestrator is shown each turn; empty while there is nothing to show."""
    lines: list[str] = []
    started = state.started_event
    if started is not None and is_coordinator(started.tools):
        lines.append(_phase_line(state.coordination))
    if state.children:
        record = json.dumps(task_state(state), ensure_ascii=False)
        lines.append(f"[Task state, kept by the runtime, not written by the user]\n{record}")
    if budget_left:
        lines.append(f"[Budget left: {budget_left}]")
    return "\n".join(lines)


def _phase_line(state: Coordination) -> str:
    rounds = f", round {state.round} of {state.rounds}" if state.rounds else ""
    return f"[Phase, kept by the runtime: {state.phase}{rounds}. Next: {state.next_step}]"


def _step(spawned: ChildSpawned, result: Result | None) -> dict[str, object]:
    step: dict[str, object] = {
        "task": spawned.task.text[:TASK_CHARACTERS],
        "status": "running" if result is None else "done" if result.succeeded else result.outcome,
        "output_file": None,
    }
    if result is None:
        return step
    files = [pointer.path for pointer in result.pointers.values()]
    if files:
        step["output_file"] = files[0] if len(files) == 1 else files
    if isinstance(result.summary_data, dict):
        data = cast("dict[str, object]", result.summary_data)
        step.update((name, _short(data[name])) for name in ("score", "issues") if name in data)
    return step


def _short(value: object) -> object:
    """A worker's value, small enough to be shown each turn."""
    if isinstance(value, list):
        return [_shown(item) for item in cast("list[object]", value)[:MAX_ISSUES]]
    return _shown(value)


def _shown(value: object) -> object:
    return value if isinstance(value, int | float | None) else str(value)[:ISSUE_CHARACTERS]
