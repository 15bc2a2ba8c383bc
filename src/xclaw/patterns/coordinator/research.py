"""research: what the work depends on, found out by workers at once, read when all of them are done (SPEC H1)."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from xclaw.contracts.artifacts import Pointer
from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.models import ToolSpec
from xclaw.contracts.results import Result
from xclaw.contracts.tasks import Task
from xclaw.contracts.tools import ToolContext, ToolOutput
from xclaw.patterns.arguments import as_list, as_mapping, first_of, parsed_value, shown
from xclaw.patterns.children import attempt
from xclaw.patterns.coordinator.phases import PhaseCall
from xclaw.patterns.coordinator.reports import KeepNote, encoded, report_text, share, shown_report
from xclaw.patterns.coordinator.settings import CoordinatorSettings
from xclaw.patterns.coordinator.workers import worker
from xclaw.patterns.delegate import refuse_dangling
from xclaw.patterns.inputs import FindArtifact, handed_on
from xclaw.patterns.parameters import INPUTS, list_of

DEFAULT_AGENT = "explorer"
_EXAMPLE = '[{"agent": "explorer", "question": "Which packages are in ..., and who imports whom?"}]'


@dataclass(frozen=True, slots=True)
class _Question:
    agent: str
    text: str
    inputs: tuple[Pointer, ...]


class ResearchTool:
    """Runs one worker for each question, all at once. Cancelling ends them."""

    replayable: bool = True
    """The same call finds the workers that it had started."""
    timeout_s: float | None = None

    def __init__(self, find_artifact: FindArtifact, settings: CoordinatorSettings, keep: KeepNote) -> None:
        self._find_artifact = find_artifact
        self._settings = settings
        self._keep = keep
        question: dict[str, object] = {
            "type": "object",
            "properties": {
                "agent": {"type": "string", "description": f"Who finds out; {DEFAULT_AGENT} if left out"},
                "question": {"type": "string", "description": "Self-contained: the worker sees nothing else"},
                "inputs": INPUTS,
            },
            "required": ["question"],
        }
        self.spec = ToolSpec(
            "research",
            "The first phase: workers find out at the same time what the work depends on. Answers all reports "
            "together, when the last worker is done; each is on the scratchpad too.",
            {
                "type": "object",
                "properties": {"tasks": list_of(question, f"One worker for each, e.g. {_EXAMPLE}")},
                "required": ["tasks"],
            },
            effect="reads",
        )

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        call = PhaseCall("research", context, self._settings)
        questions = await self._checked(arguments.get("tasks"), context)
        call.begin("research", len(questions))
        async with asyncio.TaskGroup() as group:
            running = {
                number: group.create_task(self._ask(number, question, call, context))
                for number, question in enumerate(questions, 1)
            }
        results = {number: task.result() for number, task in running.items()}
        if any(result.succeeded for result, _ in results.values()):
            call.end("synthesis")
        characters = share(self._settings.report_chars, len(questions))
        reports: list[dict[str, object]] = []
        for number, (result, kept) in results.items():
            asked = questions[number - 1]
            report = await shown_report(f"research-{number}.md", result, characters, context, kept)
            reports.append({"n": number, "agent": asked.agent, "question": asked.text[:200], **report})
        succeeded = any(result.succeeded for result, _ in results.values())
        record = {"phase": "research", "next": call.next_step(), "reports": reports}
        return ToolOutput(encoded(record), ok=succeeded)

    async def _ask(
        self, number: int, question: _Question, call: PhaseCall, context: ToolContext
    ) -> tuple[Result, str]:
        task = Task(
            question.agent, question.text, "delegate", key=f"research:{number}", inputs=question.inputs
        )
        result = await attempt(context.spawn, task)
        kept = await self._keep(
            context, f"research-{number}-{question.agent}.md", report_text(result), question.agent
        )
        call.part_ended(str(number), question.agent, result.outcome)
        return result, kept

    async def _checked(self, value: object, context: ToolContext) -> list[_Question]:
        """Everything that can be refused is refused here, before a worker is paid for."""
        items = _items(value)
        if len(items) > self._settings.max_questions:
            raise ToolFailed(
                f"`tasks` has {len(items)} questions; at most {self._settings.max_questions} can be asked"
            )
        questions: list[_Question] = []
        for index, item in enumerate(items):
            place = f"tasks[{index}]"
            mapping = as_mapping(item)
            fields: Mapping[str, object] = (
                {"question": item} if isinstance(item, str) and mapping is None else mapping or {}
            )
            text = first_of(fields, ("question", "task", "prompt"))
            if not isinstance(text, str) or not text.strip():
                raise ToolFailed(f"{place}.question must be text, not {shown(text)}, e.g. {_EXAMPLE}")
            name = first_of(fields, ("agent", "worker", "name")) or DEFAULT_AGENT
            agent = worker(context.spawn, str(name), f"{place}.agent")
            inputs = await handed_on(fields.get("inputs"), [text], self._find_artifact, context.workspace)
            refuse_dangling(text, context, has_inputs=bool(inputs), place=f"{place}.question")
            questions.append(_Question(agent, text, inputs))
        return questions


def _items(value: object) -> list[object]:
    parsed = parsed_value(value) if isinstance(value, str) else value
    mapping = as_mapping(parsed)
    if mapping is not None:
        parsed = mapping.get("tasks", [mapping])
    items = as_list(parsed)
    if items is None and isinstance(value, str) and value.strip() and value.strip()[0] not in "[{":
        return [value]
    if not items:
        raise ToolFailed(
            f"`tasks` must be a list of {{agent, question}}, not {shown(value)}, e.g. {_EXAMPLE}"
        )
    return items
