"""debate: one question to several specialists at once (SPEC D2).

The first round is blind, since agents that see one another agree too soon; a vote or a judge decides
better than more rounds do, which therefore are few and optional.
"""

from collections.abc import Mapping
from dataclasses import replace

from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.events import Warned
from xclaw.contracts.models import ToolSpec
from xclaw.contracts.tools import ToolContext, ToolOutput
from xclaw.patterns.arguments import list_of_names, optional_text, text_argument, whole_number
from xclaw.patterns.children import known_agent, shared_model, unknown_agent
from xclaw.patterns.delegate import refuse_dangling
from xclaw.patterns.fanout import hint
from xclaw.patterns.inputs import FindArtifact, handed_on
from xclaw.patterns.parameters import list_of, optional
from xclaw.patterns.rounds import Debate, hold, judgement
from xclaw.patterns.seats import seats_of, section
from xclaw.patterns.voting import ballot_argument, tally

DIVIDER = "\n\n---\n\n"
MAX_ROUNDS = 3
MAX_SEATS = 12

_AGENTS_EXAMPLE = '["coder", "skeptic"]'
_DESCRIPTION = (
    "Ask several specialists the same self-contained question at once; nobody sees another's first answer. "
    "For decisions that deserve several views. Answers come back as [name] sections, in the order asked. "
    "`vote` adds a tally, `judge` a verdict; `rounds` above 1 let each see the others' answers and change "
    "its own, at two to three times the cost."
)


class DebateTool:
    """Runs the seats of each round at once. A seat that fails stops nobody; cancelling ends all."""

    replayable: bool = True
    """The same call finds the seats that had answered."""
    timeout_s: float | None = None

    def __init__(self, find_artifact: FindArtifact) -> None:
        self._find_artifact = find_artifact
        self.spec = ToolSpec(
            "debate",
            _DESCRIPTION,
            {
                "type": "object",
                "properties": {
                    "question": {"type": "string", "description": "The question, self-contained"},
                    "agents": list_of({"type": "string"}, f"Who is asked, e.g. {_AGENTS_EXAMPLE}"),
                    "rounds": optional(["integer", "string"], f"1 (the default) to {MAX_ROUNDS}"),
                    "judge": optional(["string"], "An agent that reads all answers and decides"),
                    "vote": optional(
                        ["boolean", "array", "string"],
                        'true, or the options to choose from, e.g. ["Redis", "SQLite"]',
                    ),
                },
                "required": ["question", "agents"],
            },
            effect="reads",
        )

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        debate = _checked(arguments, context)
        inputs = await handed_on(None, [debate.question], self._find_artifact, context.workspace)
        refuse_dangling(debate.question, context, has_inputs=bool(inputs), place="question")
        debate = replace(debate, inputs=inputs)
        notes = _notes(debate, context)
        answers = await hold(debate, context.spawn)
        sections = [section(seat.label, answer, debate.labels) for seat, answer in answers.items()]
        answered = {seat: answer for seat, answer in answers.items() if answer.text}
        if debate.ballot is not None and answered:
            sections.append(
                tally(debate.ballot, {seat.label: answer.text for seat, answer in answered.items()})
            )
        if debate.judge is not None and answered:
            sections.append(await judgement(debate, debate.judge, answered, context.spawn))
        content = DIVIDER.join(sections)
        return ToolOutput("\n\n".join([content, *(f"(note: {note})" for note in notes)]), ok=bool(answered))


def _checked(arguments: Mapping[str, object], context: ToolContext) -> Debate:
    """Everything that can be refused is refused here, before a seat is paid for."""
    question = text_argument(arguments, "question", '"Redis or SQLite for ...?"')
    names = list_of_names(arguments.get("agents"), "agents", _AGENTS_EXAMPLE)
    if len(names) > MAX_SEATS:
        raise ToolFailed(f"`agents` has {len(names)} names; at most {MAX_SEATS} can debate")
    seats = seats_of(names, context.spawn)
    if all(seat.fault for seat in seats):
        raise ToolFailed(f"agents: {unknown_agent(context.spawn, names[0])}")
    judge = optional_text(arguments, "judge")
    return Debate(
        question,
        seats,
        rounds=whole_number(arguments, "rounds", default=1, most=MAX_ROUNDS),
        judge=known_agent(context.spawn, judge, "judge") if judge else None,
        ballot=ballot_argument(arguments.get("vote")),
    )


def _notes(debate: Debate, context: ToolContext) -> list[str]:
    """What a person and the model should know, recorded as warnings too."""
    notes: list[str] = []
    model = shared_model(context.spawn, [seat.agent for seat in debate.seats if not seat.fault])
    if model is not None:
        notes.append(f"all of them run on {model}, so that they agree proves less than it seems")
        context.record(Warned("same_model", notes[-1]))
    wasteful = hint(context.request, [debate.question])
    if wasteful:
        notes.append(wasteful)
        context.record(Warned("fan_out", wasteful))
    return notes
