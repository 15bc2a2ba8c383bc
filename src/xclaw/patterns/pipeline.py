"""pipeline: a fixed line of steps, each fed with the output of the one before (SPEC D3)."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from xclaw.contracts.artifacts import Pointer
from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.events import ArtifactDelivered, Warned
from xclaw.contracts.models import ToolSpec
from xclaw.contracts.results import Result
from xclaw.contracts.tasks import Task
from xclaw.contracts.tools import ToolContext, ToolOutput
from xclaw.patterns.arguments import as_list, as_mapping, first_of, parsed_value, shown
from xclaw.patterns.children import attempt, known_agent
from xclaw.patterns.delegate import refuse_dangling
from xclaw.patterns.fanout import hint
from xclaw.patterns.inputs import FindArtifact, handed_on
from xclaw.patterns.parameters import list_of
from xclaw.patterns.render import failure_reason, plain_output, pointer_paths, shorten

PLACEHOLDER = "{{input}}"
MAX_STEPS = 20
KEPT_CHARACTERS = 2_000
"""Of each finished step's output, in the report of a line that was stopped."""
INLINE_CHARACTERS = 50_000
"""An output longer than this goes to the next step as a file and its beginning."""

_EXAMPLE = '[{"agent": "extractor", "task": "..."}, {"agent": "writer", "task": "... {{input}}"}]'
_DESCRIPTION = (
    "Run steps in order; each step's output replaces {{input}} in the next step's task. For a fixed line of "
    "text transformations (extract, analyse, report). The first step's {{input}} is empty. A failing step "
    "stops the line. Answers the last step's output."
)


@dataclass(frozen=True, slots=True)
class _Step:
    agent: str
    task: str


@dataclass(frozen=True, slots=True)
class _Finished:
    step: _Step
    output: str
    pointers: dict[str, Pointer]


class PipelineTool:
    """Runs the steps one after the other. Cancelling ends the running step."""

    replayable: bool = True
    """The same call finds the steps that it had run."""
    timeout_s: float | None = None

    def __init__(self, find_artifact: FindArtifact) -> None:
        self._find_artifact = find_artifact
        step: dict[str, object] = {
            "type": "object",
            "properties": {"agent": {"type": "string"}, "task": {"type": "string"}},
            "required": ["agent", "task"],
        }
        steps = list_of(step, f"The steps in order, e.g. {_EXAMPLE}")
        self.spec = ToolSpec(
            "pipeline",
            _DESCRIPTION,
            {"type": "object", "properties": {"steps": steps}, "required": ["steps"]},
            effect="reads",
        )

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        steps = self._checked_steps(arguments.get("steps"), context)
        note = hint(context.request, [step.task for step in steps]) or _unlinked(steps)
        if note:
            context.record(Warned("fan_out", note))
        finished: list[_Finished] = []
        for index, step in enumerate(steps):
            result = await self._run_step(index, step, finished, context)
            output = plain_output(result)
            if not result.succeeded or not output.strip():
                return _stopped(index, steps, result, finished)
            finished.append(_Finished(step, output, result.pointers))
        return ToolOutput(_with_extras(finished, note))

    def _checked_steps(self, value: object, context: ToolContext) -> list[_Step]:
        """Every step, with its agent known, before the first is paid for."""
        steps = [
            replace(step, agent=known_agent(context.spawn, step.agent, f"steps[{index}]"))
            for index, step in enumerate(_parse_steps(value))
        ]
        for index, step in enumerate(steps):
            fed = index > 0 and PLACEHOLDER in step.task
            refuse_dangling(step.task, context, has_inputs=fed, place=f"steps[{index}].task")
        return steps

    async def _run_step(
        self, index: int, step: _Step, finished: Sequence[_Finished], context: ToolContext
    ) -> Result:
        before = finished[-1] if finished else None
        pointers = tuple(before.pointers.values()) if before else ()
        output = before.output if before else ""
        if before and PLACEHOLDER in step.task and len(output) > INLINE_CHARACTERS:
            name = f"step{index}-output.md"
            data = output.encode("utf-8", "replace")
            pointer = await asyncio.to_thread(context.workspace.deliver, name, data)
            context.record(ArtifactDelivered(pointer, name))
            pointers = (*pointers, pointer)
            output = f"{output[:KEPT_CHARACTERS]}\n[the whole text, {len(output)} characters: {pointer.path}]"
        text = fill(step.task, output)
        mentioned = await handed_on(None, [step.task], self._find_artifact, context.workspace)
        inputs = tuple({pointer.path: pointer for pointer in (*pointers, *mentioned)}.values())
        task = Task(
            step.agent, text, "pipeline", key=f"step{index}", inputs=inputs, structured=False, step=index
        )
        return await attempt(context.spawn, task)


def fill(template: str, output: str) -> str:
    """Every `{{input}}` of the template replaced by `output`: literally, once; what comes in with the
    output is never looked at again."""
    return template.replace(PLACEHOLDER, output)


def _parse_steps(value: object) -> list[_Step]:
    if value is None:
        raise ToolFailed(f"`steps` is missing, e.g. {_EXAMPLE}")
    parsed = parsed_value(value) if isinstance(value, str) else value
    mapping = as_mapping(parsed)
    if mapping is not None:
        inner = mapping.get("steps")
        parsed = [mapping] if inner is None else parsed_value(inner) if isinstance(inner, str) else inner
    items = as_list(parsed)
    if items is None:
        raise ToolFailed(
            f"`steps` must be a list of {{agent, task}} objects, not {shown(value)}, e.g. {_EXAMPLE}"
        )
    if not items:
        raise ToolFailed(f"`steps` is empty, e.g. {_EXAMPLE}")
    if len(items) > MAX_STEPS:
        raise ToolFailed(f"`steps` has {len(items)} steps; at most {MAX_STEPS} are possible")
    return [_parse_step(item, f"steps[{index}]") for index, item in enumerate(items)]


def _parse_step(item: object, place: str) -> _Step:
    mapping = as_mapping(item)
    if mapping is None:
        raise ToolFailed(f"{place} must be an object with agent and task, not {shown(item)}, e.g. {_EXAMPLE}")
    agent = first_of(mapping, ("agent", "worker", "name", "role"))
    task = first_of(mapping, ("task", "prompt", "instruction", "instructions"))
    for field, text in (("agent", agent), ("task", task)):
        if not isinstance(text, str) or not text.strip():
            raise ToolFailed(f"{place}.{field} must be text, not {shown(text)}, e.g. {_EXAMPLE}")
    return _Step(str(agent), str(task))


def _unlinked(steps: Sequence[_Step]) -> str | None:
    for index, step in enumerate(steps[1:], start=2):
        if PLACEHOLDER not in step.task:
            return (
                f"step {index} does not use {PLACEHOLDER}, so it ran without the output of step {index - 1}; "
                "steps that do not need each other run faster as delegates in one turn"
            )
    return None


def _stopped(index: int, steps: Sequence[_Step], result: Result, finished: Sequence[_Finished]) -> ToolOutput:
    reason = "it answered nothing" if result.succeeded else failure_reason(result)
    parts = [f"pipeline stopped at step {index + 1} of {len(steps)} ({steps[index].agent}): {reason}"]
    if result.text.strip() and not result.succeeded:
        parts.append(f"What it had so far:\n{shorten(result.text, KEPT_CHARACTERS)}")
    if not finished:
        parts.append("No step was finished before it.")
    for number, done in enumerate(finished, start=1):
        parts.append(f"[step {number}: {done.step.agent}] finished\n{shorten(done.output, KEPT_CHARACTERS)}")
    pointers = {**_all_pointers(finished), **pointer_paths(result.pointers)}
    return ToolOutput("\n\n".join([*parts, *_pointer_lines(pointers)]), ok=False)


def _with_extras(finished: Sequence[_Finished], note: str | None) -> str:
    """The last output as it is, then what was delivered, then the note."""
    parts = [finished[-1].output, *_pointer_lines(_all_pointers(finished))]
    if note:
        parts.append(f"(note: {note})")
    return "\n\n".join(parts)


def _all_pointers(finished: Sequence[_Finished]) -> dict[str, str]:
    merged: dict[str, str] = {}
    for number, done in enumerate(finished, start=1):
        for name, path in pointer_paths(done.pointers).items():
            merged[f"step{number}:{name}"] = path
    return merged


def _pointer_lines(pointers: Mapping[str, str]) -> list[str]:
    if not pointers:
        return []
    return ["artifact_pointers:\n" + "\n".join(f"- {name}: {path}" for name, path in pointers.items())]
