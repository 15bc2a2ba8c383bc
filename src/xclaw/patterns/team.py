"""create_team: several specialists at one goal, who write to one another (SPEC G5)."""

import json
from collections.abc import Mapping
from dataclasses import asdict

from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.events import Warned
from xclaw.contracts.models import ToolSpec
from xclaw.contracts.results import Result
from xclaw.contracts.teams import Strategy
from xclaw.contracts.tools import ToolContext, ToolOutput
from xclaw.contracts.usage import Spend
from xclaw.patterns.arguments import list_of_names, optional_text, shown, text_argument, whole_number
from xclaw.patterns.children import unknown_agent
from xclaw.patterns.delegate import refuse_dangling
from xclaw.patterns.fanout import hint
from xclaw.patterns.inputs import FindArtifact, handed_on
from xclaw.patterns.parameters import list_of, optional
from xclaw.patterns.render import REASON_CHARACTERS, TEXT_CHARACTERS, pointer_paths, shorten
from xclaw.patterns.seats import seats_of
from xclaw.patterns.strategies import Plan, Said, work

STRATEGIES: tuple[Strategy, ...] = ("parallel", "sequential", "round-robin")
MAX_MEMBERS = 12
MAX_ROUNDS = 5
DEFAULT_ROUNDS = 2
NAME_CHARACTERS = 40

_AGENTS_EXAMPLE = '["explorer", "coder", "writer"]'
_DESCRIPTION = (
    "Put several specialists at one goal as a team: they can write to one another and share a task board, "
    "which delegates cannot. strategy: parallel (all at once, writing to one another until all have "
    "answered), sequential (in order, each seeing the results before it), round-robin (in turns on one "
    "shared thread). Comes back when all are done, with each member's result. Several times the cost of "
    "delegates: for work whose parts need each other's findings."
)


class CreateTeamTool:
    """Runs a team to its end. A member that fails stops nobody; cancelling ends all."""

    replayable: bool = True
    """The same call finds the members that it had started, and what they have said."""
    timeout_s: float | None = None

    def __init__(self, find_artifact: FindArtifact) -> None:
        self._find_artifact = find_artifact
        self.spec = ToolSpec(
            "create_team",
            _DESCRIPTION,
            {
                "type": "object",
                "properties": {
                    "name": {
                        "type": "string",
                        "description": "A short name for the team, e.g. research-squad",
                    },
                    "agents": list_of({"type": "string"}, f"Who is in it, e.g. {_AGENTS_EXAMPLE}"),
                    "strategy": optional(["string"], "parallel (the default), sequential or round-robin"),
                    "goal": {
                        "type": "string",
                        "description": "What the team is to achieve, self-contained; who does what, if it matters",
                    },
                    "rounds": optional(
                        ["integer", "string"],
                        f"Of round-robin: 1 to {MAX_ROUNDS}, {DEFAULT_ROUNDS} when left out",
                    ),
                },
                "required": ["name", "agents", "goal"],
            },
            effect="reads",
        )

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        goal = text_argument(arguments, "goal", '"Find out ..., and write ..."')
        inputs = await handed_on(None, [goal], self._find_artifact, context.workspace)
        refuse_dangling(goal, context, has_inputs=bool(inputs), place="goal")
        plan = _checked(arguments, goal, context)
        note = hint(context.request, [goal])
        if note:
            context.record(Warned("fan_out", note))
        said = await work(plan, inputs, context.spawn)
        record = _record(plan, said, context)
        if note:
            record["note"] = note
        return ToolOutput(
            json.dumps(record, ensure_ascii=False, default=repr),
            ok=any(each.result.succeeded for each in said.values()),
        )


def _checked(arguments: Mapping[str, object], goal: str, context: ToolContext) -> Plan:
    """Everything that can be refused is refused here, before a member is paid for."""
    names = list_of_names(arguments.get("agents"), "agents", _AGENTS_EXAMPLE)
    if not 2 <= len(names) <= MAX_MEMBERS:
        raise ToolFailed(f"a team has 2 to {MAX_MEMBERS} members, not {len(names)}")
    seats = seats_of(names, context.spawn)
    for seat, name in zip(seats, names, strict=True):
        if seat.fault:
            raise ToolFailed(f"agents: {unknown_agent(context.spawn, name)}")
    rounds = whole_number(arguments, "rounds", default=DEFAULT_ROUNDS, most=MAX_ROUNDS)
    return Plan(_team_name(arguments), goal, _strategy(arguments), seats, rounds)


def _strategy(arguments: Mapping[str, object]) -> Strategy:
    text = optional_text(arguments, "strategy") or "parallel"
    folded = "-".join(text.casefold().replace("_", " ").replace("-", " ").split())
    for strategy in STRATEGIES:
        if folded in (strategy, strategy.replace("-", "")):
            return strategy
    raise ToolFailed(f"strategy {shown(text)} is not available; use {', '.join(STRATEGIES)}")


def _team_name(arguments: Mapping[str, object]) -> str:
    """What the members' sessions are named after: a word, whatever was written."""
    text = text_argument(arguments, "name", '"research-squad"')
    words = "".join(c if c.isalnum() or c in "-_" else " " for c in text).split()
    return "-".join(words)[:NAME_CHARACTERS] or "team"


def _record(plan: Plan, said: Mapping[str, Said], context: ToolContext) -> dict[str, object]:
    """What the lead's model reads. What is large comes last, so that a cut never hides a pointer."""
    results = [each.result for each in said.values()]
    record: dict[str, object] = {
        "team": plan.name,
        "strategy": plan.strategy,
        "status": "success" if all(result.succeeded for result in results) else "incomplete",
    }
    stopped = next((result.reason for result in results if result.reason.startswith("deadlock: ")), "")
    if stopped:
        record["reason"] = stopped[:REASON_CHARACTERS]
    total = sum((result.spend for result in results), Spend())
    record["tokens"], record["cost_usd"] = total.usage.total_tokens, round(total.known_usd, 6)
    if any(each.run_id for each in said.values()):
        lead = context.spawn.team()
        record["mail"] = {f"{sender} to {to}": count for (sender, to), count in lead.traffic().items()}
        record["tasks"] = [asdict(task) for task in lead.tasks()]
    record["members"] = {name: _member(each) for name, each in said.items()}
    return record


def _member(said: Said) -> dict[str, object]:
    result: Result = said.result
    record: dict[str, object] = {
        "status": "success" if result.succeeded else "error",
        "outcome": result.outcome,
        "tokens": result.spend.usage.total_tokens,
    }
    if result.reason or not result.succeeded:
        record["reason"] = shorten(result.reason or "it gave no reason", REASON_CHARACTERS)
    record["artifact_pointers"] = pointer_paths(result.pointers)
    record["text"] = shorten(said.text, TEXT_CHARACTERS)
    return record
