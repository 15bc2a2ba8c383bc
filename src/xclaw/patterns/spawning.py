"""spawn and wait: a child that works while its parent goes on (SPEC G1)."""

import json
from collections.abc import Mapping

from xclaw.contracts.errors import SpawnRefused, ToolFailed
from xclaw.contracts.events import Warned
from xclaw.contracts.models import ToolSpec
from xclaw.contracts.tasks import Task
from xclaw.contracts.tools import ToolContext, ToolOutput
from xclaw.patterns.arguments import list_of_names, optional_seconds, optional_text, shown, text_argument
from xclaw.patterns.children import known_agent
from xclaw.patterns.delegate import refuse_dangling
from xclaw.patterns.fanout import hint
from xclaw.patterns.inputs import FindArtifact, handed_on
from xclaw.patterns.parameters import INPUTS, TEXT, optional
from xclaw.patterns.render import render_result

ISOLATIONS = ("local",)


class SpawnTool:
    """Starts a background child and answers at once. Cancelling the call leaves the child running."""

    replayable: bool = True
    """The same call finds the child that it had started."""
    timeout_s: float | None = None

    def __init__(self, find_artifact: FindArtifact) -> None:
        self._find_artifact = find_artifact
        self.spec = ToolSpec(
            "spawn",
            "Start a specialist in the background: answers {agent_id, status: running} at once; its result "
            "comes as a notification, or from wait. For long work that you do not need at once.",
            {
                "type": "object",
                "properties": {
                    "agent": {"type": "string", "description": "Name of the specialist, e.g. coder"},
                    "prompt": TEXT,
                    "isolation": optional(
                        ["string"], f"One of {', '.join(ISOLATIONS)}; the default is local"
                    ),
                    "inputs": INPUTS,
                },
                "required": ["agent", "prompt"],
            },
            effect="reads",
        )

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        agent = known_agent(context.spawn, text_argument(arguments, "agent", '"coder"'))
        text = text_argument(arguments, "prompt", '"Write ..."')
        isolation = optional_text(arguments, "isolation")
        if isolation is not None and isolation.strip().casefold() not in ISOLATIONS:
            raise ToolFailed(f"isolation {shown(isolation)} is not available; use {' or '.join(ISOLATIONS)}")
        inputs = await handed_on(arguments.get("inputs"), [text], self._find_artifact, context.workspace)
        refuse_dangling(text, context, has_inputs=bool(inputs), place="prompt")
        record: dict[str, object] = {}
        note = hint(context.request, [text])
        if note:
            context.record(Warned("fan_out", note))
            record["note"] = note
        task = Task(agent, text, "spawn", key=f"{agent}#0", inputs=inputs)
        try:
            child = await context.spawn.start(task, background=True)
        except SpawnRefused as error:
            raise ToolFailed(str(error)) from None
        return ToolOutput(json.dumps({"agent_id": child.run_id, "status": "running", **record}))


class WaitTool:
    """Waits for background children and takes their results. Cancelling it leaves them running."""

    replayable: bool = True
    """It only reads how others ended."""
    timeout_s: float | None = None

    def __init__(self) -> None:
        self.spec = ToolSpec(
            "wait",
            "Wait until background agents have ended and get their results. One call waits for as long as "
            "it takes; do not poll.",
            {
                "type": "object",
                "properties": {
                    "agent_ids": {
                        "description": "Which to wait for; all of them when left out",
                        "anyOf": [
                            {"type": "array", "items": {"type": "string"}},
                            {"type": "string"},
                            {"type": "null"},
                        ],
                    },
                    "timeout_s": optional(["number", "string"], "Come back after this many seconds"),
                },
            },
            effect="reads",
        )

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        timeout_s = optional_seconds(arguments, "timeout_s")
        running = tuple(context.spawn.children())
        wanted = _wanted(arguments.get("agent_ids"))
        results = await context.spawn.wait(tuple(wanted) or running, timeout_s)
        finished = {run_id: json.loads(render_result(result)) for run_id, result in results.items()}
        known = tuple(run_id for run_id in wanted if run_id in running) if wanted else running
        unknown = [run_id for run_id in wanted if run_id not in running and run_id not in results]
        record: dict[str, object] = {"finished": finished}
        still = [run_id for run_id in known if run_id not in results]
        if still:
            record["still_running"] = still
        if unknown:
            record["unknown"] = unknown
            record["note"] = "an unknown id was never started here, or its result has been taken already"
        elif not known and not finished:
            record["note"] = "no background agent is running"
        return ToolOutput(json.dumps(record, ensure_ascii=False), ok=bool(known or finished) or not unknown)


def _wanted(value: object) -> list[str]:
    if value is None or value in ("", []):
        return []
    return list(dict.fromkeys(list_of_names(value, "agent_ids", '["c0ffee..."]')))
