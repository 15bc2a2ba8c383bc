"""spawn, send_message, wait, stop, list_agents: children that work while their parent goes on (SPEC G1)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TypeVar

from xclaw.contracts.agents import Isolation
from xclaw.contracts.errors import SpawnRefused, ToolFailed
from xclaw.contracts.events import Warned
from xclaw.contracts.models import ToolSpec
from xclaw.contracts.tasks import Context, Task
from xclaw.contracts.tools import ToolContext, ToolOutput
from xclaw.patterns.arguments import list_of_names, optional_seconds, optional_text, shown, text_argument
from xclaw.patterns.children import known_agent
from xclaw.patterns.delegate import refuse_dangling
from xclaw.patterns.fanout import hint
from xclaw.patterns.inputs import FindArtifact, handed_on
from xclaw.patterns.parameters import INPUTS, TEXT, optional
from xclaw.patterns.render import render_result

REASON_CHARACTERS = 500
CONTEXTS: tuple[Context, ...] = ("none", "brief", "files", "fork")


class SpawnTool:
    """Starts a background child and answers at once. Cancelling the call leaves the child running."""

    replayable: bool = True
    """The same call finds the child that it had started."""
    timeout_s: float | None = None

    def __init__(self, find_artifact: FindArtifact, isolations: Sequence[Isolation] = ("local",)) -> None:
        """`isolations`: the kinds of sub-agent that there are, the default first."""
        self._find_artifact = find_artifact
        self._isolations = tuple(isolations)
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
                        ["string"], f"One of {', '.join(self._isolations)}; the default is the agent's own"
                    ),
                    "context": optional(
                        ["string"],
                        "What it is given beside the prompt: none (the default), brief (a digest of this "
                        "conversation), files (only `inputs`), fork (a copy of this conversation: dear)",
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
        isolation = _one_of(arguments, "isolation", self._isolations)
        given = _one_of(arguments, "context", CONTEXTS) or "none"
        inputs = await handed_on(arguments.get("inputs"), [text], self._find_artifact, context.workspace)
        if given in ("none", "files"):
            refuse_dangling(text, context, has_inputs=bool(inputs), place="prompt")
        record: dict[str, object] = {"context": given, "context_tokens": context.spawn.context_tokens(given)}
        note = hint(context.request, [text])
        if note:
            context.record(Warned("fan_out", note))
            record["note"] = note
        task = Task(agent, text, "spawn", key=f"{agent}#0", inputs=inputs, isolation=isolation, context=given)
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


class SendMessageTool:
    """Has others read a text at their next turn: background children, team mates, the lead."""

    replayable: bool = True
    """The same call finds the message that it had sent."""
    timeout_s: float | None = None

    def __init__(self) -> None:
        self.spec = ToolSpec(
            "send_message",
            "Tell another agent something while it works: a correction, a finding, a question. It is read at "
            "its next turn. Of a team, to a member, to all or to the lead; else to an agent that you started.",
            {
                "type": "object",
                "properties": {
                    "to": {
                        "type": "string",
                        "description": "A member's name, all, lead; or an agent_id, or a name if only one runs",
                    },
                    "message": {"type": "string", "description": "What it should know or do"},
                },
                "required": ["to", "message"],
            },
            effect="reads",
        )

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        to = text_argument(arguments, "to", '"c0ffee..."')
        message = text_argument(arguments, "message", '"Use Python 3.11 only"')
        try:
            receiver = await context.spawn.send(to, message)
        except SpawnRefused as error:
            raise ToolFailed(str(error)) from None
        return ToolOutput(json.dumps({"to": receiver, "status": "sent"}, ensure_ascii=False))


class StopTool:
    """Ends a background child and everything below it; answers what it had."""

    replayable: bool = True
    """The same call finds how it had ended."""
    timeout_s: float | None = None

    def __init__(self) -> None:
        self.spec = ToolSpec(
            "stop",
            "End a background agent and everything it started. Answers what it had done so far.",
            {
                "type": "object",
                "properties": {
                    "agent_id": {
                        "type": "string",
                        "description": "Its agent_id, or its name if only one runs",
                    },
                    "reason": optional(["string"], "Why; kept in the trace"),
                },
                "required": ["agent_id"],
            },
            effect="reads",
        )

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        to = text_argument(arguments, "agent_id", '"c0ffee..."')
        reason = (optional_text(arguments, "reason") or "its parent stopped it")[:REASON_CHARACTERS]
        try:
            run_id, result = await context.spawn.stop(to, reason)
        except SpawnRefused as error:
            raise ToolFailed(str(error)) from None
        return ToolOutput(f'{{"agent_id": {json.dumps(run_id)}, "result": {render_result(result)}}}')


class ListAgentsTool:
    """Shows the children of the run and how they stand."""

    replayable: bool = True
    timeout_s: float | None = None

    def __init__(self) -> None:
        self.spec = ToolSpec(
            "list_agents",
            "List the agents that you started: who runs, who has ended and how, what each has used.",
            {"type": "object", "properties": {}},
            effect="reads",
        )

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        agents = [asdict(state) for state in context.spawn.listing()]
        return ToolOutput(json.dumps({"agents": agents}, ensure_ascii=False))


Word = TypeVar("Word", bound=str)


def _one_of(arguments: Mapping[str, object], name: str, words: Sequence[Word]) -> Word | None:
    """The word that was meant, or None. Raises `ToolFailed` for another one."""
    text = optional_text(arguments, name)
    if text is None or not text.strip():
        return None
    for word in words:
        if text.strip().casefold() == word:
            return word
    raise ToolFailed(f"{name} {shown(text)} is not available; use {' or '.join(words)}")


def _wanted(value: object) -> list[str]:
    if value is None or value in ("", []):
        return []
    return list(dict.fromkeys(list_of_names(value, "agent_ids", '["c0ffee..."]')))
