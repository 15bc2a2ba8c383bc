"""delegate: one part of the work to one specialist (SPEC D1)."""

import json
from collections.abc import Mapping
from typing import cast

from xclaw.contracts.errors import SpawnRefused, ToolFailed
from xclaw.contracts.events import Warned
from xclaw.contracts.models import ToolSpec
from xclaw.contracts.tasks import Task
from xclaw.contracts.tools import ToolContext, ToolOutput
from xclaw.patterns.arguments import text_argument
from xclaw.patterns.children import known_agent
from xclaw.patterns.fanout import hint
from xclaw.patterns.inputs import FindArtifact, handed_on
from xclaw.patterns.output_schema import schema_argument
from xclaw.patterns.parameters import INPUTS, OUTPUT_SCHEMA, TEXT
from xclaw.patterns.render import render_result
from xclaw.patterns.selfcontained import check

_DESCRIPTION = """\
Hand one self-contained task to one specialist, who works on it alone and without any history, and get \
{status, outcome, summary_data, artifact_pointers} back. Several delegates in one turn run in parallel. \
The task must contain everything: goal, material or its path, constraints, what to deliver."""


class DelegateTool:
    """Runs one child and renders its result. Owns nothing of a call; cancelling ends the child."""

    replayable: bool = True
    """The same call finds the child that it had started."""
    timeout_s: float | None = None

    def __init__(self, find_artifact: FindArtifact, roster: Mapping[str, str] | None = None) -> None:
        """`roster` (name to description) is told to the model."""
        self._find_artifact = find_artifact
        listed = "".join(f"\n- {name}: {text}" for name, text in (roster or {}).items())
        description = f"{_DESCRIPTION}\nSpecialists:{listed}" if listed else _DESCRIPTION
        self.spec = ToolSpec(
            "delegate",
            description,
            {
                "type": "object",
                "properties": {
                    "agent": {"type": "string", "description": "Name of the specialist, e.g. coder"},
                    "task": TEXT,
                    "inputs": INPUTS,
                    "output_schema": OUTPUT_SCHEMA,
                },
                "required": ["agent", "task"],
            },
            effect="reads",
        )

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        agent = known_agent(context.spawn, text_argument(arguments, "agent", '"coder"'))
        text = text_argument(arguments, "task", '"Write ..."')
        schema = schema_argument(arguments.get("output_schema"))
        inputs = await handed_on(arguments.get("inputs"), [text], self._find_artifact, context.workspace)
        refuse_dangling(text, context, has_inputs=bool(inputs))
        note = hint(context.request, _handed_out(context, text))
        if note:
            context.record(Warned("fan_out", note))
        task = Task(agent, text, "delegate", key=f"{agent}#0", inputs=inputs, output_schema=schema)
        try:
            result = await context.spawn.run(task)
        except SpawnRefused as error:
            raise ToolFailed(str(error)) from None
        return ToolOutput(render_result(result, note), ok=result.succeeded)


def _handed_out(context: ToolContext, text: str) -> list[str]:
    """The tasks of all delegates of this turn, which start at the same time; the first one's call
    speaks for all, so the others see their own only."""
    delegates = [call for call in context.turn_calls if call.name == "delegate"]
    if not delegates or delegates[0].id != context.call_id:
        return [text]
    return [text, *(task for call in delegates[1:] if (task := _task_of(call.arguments)))]


def _task_of(arguments: str) -> str:
    try:
        decoded: object = json.loads(arguments)
    except ValueError:
        return ""
    task = cast("dict[str, object]", decoded).get("task") if isinstance(decoded, dict) else None
    return task if isinstance(task, str) else ""


def refuse_dangling(text: str, context: ToolContext, *, has_inputs: bool, place: str = "task") -> None:
    """Raises `ToolFailed` for a task that points at what the child cannot see (SPEC E6)."""
    reason = check(text, has_inputs=has_inputs)
    if reason:
        context.record(Warned("not_self_contained", f"{place}: {reason}"))
        raise ToolFailed(f"{place} is not self-contained: {reason}")
