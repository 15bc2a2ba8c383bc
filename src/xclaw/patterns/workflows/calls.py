"""The agents that a script asks for: each found again by what it was asked, else started."""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from xclaw.contracts.errors import LimitReached, SpawnRefused, ToolFailed
from xclaw.contracts.results import Result
from xclaw.contracts.tasks import Task
from xclaw.contracts.tools import ToolContext
from xclaw.contracts.workflows import WorkflowNoted
from xclaw.patterns.children import unknown_agent
from xclaw.patterns.inputs import FindArtifact, handed_on
from xclaw.patterns.output_schema import schema_argument
from xclaw.patterns.render import failure_reason, plain_output, pointer_paths
from xclaw.patterns.selfcontained import check
from xclaw.patterns.workflows.allowance import Allowance

MAX_TASK_CHARACTERS = 200_000


@dataclass(frozen=True, slots=True)
class Ended:
    """One agent that has ended, for the report."""

    agent: str
    phase: str
    result: Result


@dataclass(slots=True, eq=False)
class AgentCalls:
    """All agent() calls of one script."""

    context: ToolContext
    find_artifact: FindArtifact
    allowance: Allowance
    earlier: Mapping[str, Result]
    """Results of an earlier run, by key."""
    phase: str = ""
    reused: int = 0
    ended: list[Ended] = field(default_factory=list[Ended])
    _asked: Counter[str] = field(default_factory=Counter[str])

    async def answer(self, asked: Mapping[str, object]) -> dict[str, object]:
        """What the script is told. A refusal is an answer; cancelling ends the agent."""
        phase = self.phase
        try:
            task = await self._task(asked)
            result = self._reused(task, phase)
            if result is None:
                result = await self._run(task)
        except (SpawnRefused, LimitReached, ToolFailed) as refusal:
            text = str(refusal)[:2_000]
            self.context.record(WorkflowNoted(self.context.call_id, "refused", text, phase))
            return {"refused": text}
        self.ended.append(Ended(task.agent, phase, result))
        return {"result": _for_script(task.agent, result)}

    async def _task(self, asked: Mapping[str, object]) -> Task:
        name, text = str(asked.get("agent", "")), str(asked.get("task", ""))
        if not text.strip() or len(text) > MAX_TASK_CHARACTERS:
            raise ToolFailed(f"a task has 1 to {MAX_TASK_CHARACTERS:,} characters, not {len(text):,}")
        agent = self.context.spawn.resolve(name)
        if agent is None:
            raise ToolFailed(unknown_agent(self.context.spawn, name))
        schema = schema_argument(asked.get("schema"))
        inputs = await handed_on(asked.get("inputs"), [text], self.find_artifact, self.context.workspace)
        dangling = check(text, has_inputs=bool(inputs))
        if dangling:
            raise ToolFailed(f"the task is not self-contained: {dangling}")
        content = content_key(agent, text, [pointer.path for pointer in inputs], schema)
        self._asked[content] += 1
        return Task(
            agent,
            text,
            "workflow",
            key=f"{content}#{self._asked[content]}",
            inputs=inputs,
            output_schema=schema,
        )

    def _reused(self, task: Task, phase: str) -> Result | None:
        """The result of the earlier run that was asked the same, unless this call has started its own."""
        result = self.earlier.get(task.key)
        if result is None:
            return None
        self.reused += 1
        line = task.text.strip().split("\n", 1)[0][:120]
        self.context.record(WorkflowNoted(self.context.call_id, "reused", f"{task.agent}: {line}", phase))
        self.context.workspace.grant(tuple(result.pointers.values()))
        return result

    async def _run(self, task: Task) -> Result:
        spawn = self.context.spawn
        quoted = self.allowance.quote.agents
        allowed = None if quoted is None else frozenset(spawn.resolve(name) or name for name in quoted)
        limits = self.allowance.take(task.agent, allowed)
        ended: Result | None = None
        try:
            ended = result = await spawn.run(replace(task, limits=limits))
        finally:
            self.allowance.give_back(limits, ended)
        return result


def content_key(agent: str, text: str, inputs: list[str], schema: dict[str, object] | None) -> str:
    """The same for the same question to the same agent."""
    content = json.dumps([agent, text, sorted(inputs), schema], sort_keys=True, ensure_ascii=True)
    return f"{agent}:{hashlib.sha256(content.encode()).hexdigest()[:20]}"


def _for_script(agent: str, result: Result) -> dict[str, object]:
    return {
        "agent": agent,
        "ok": result.succeeded,
        "outcome": result.outcome,
        "text": plain_output(result),
        "data": {} if result.summary_data is None else result.summary_data,
        "artifacts": pointer_paths(result.pointers),
        "reason": "" if result.succeeded else failure_reason(result),
    }
