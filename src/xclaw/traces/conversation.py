"""What was said in a run: every message with the model's own words, read from entries alone."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from xclaw.contracts.events import (
    AttemptFailed,
    Compacted,
    Entry,
    Event,
    MessageAdded,
    ModelAnswered,
    RunStarted,
    ToolCallEnded,
)
from xclaw.contracts.messages import ToolCall
from xclaw.contracts.usage import Usage
from xclaw.traces.grouping import entries_by_run

Role = Literal["user", "assistant", "tool", "retracted", "compacted"]
"""Who speaks. "retracted": what a failed attempt had said, which no later prompt holds. "compacted":
everything before `kept_from` is, from here on, the summary in `text`."""


@dataclass(frozen=True, slots=True)
class Said:
    """One message of a conversation."""

    role: Role
    text: str
    at: float
    """Unix time, seconds."""
    origin: str = ""
    """Of a user message: who wrote it."""
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""
    completion: str = ""
    """What the model wrote, when the conversation keeps something else."""
    model: str = ""
    turn: int = 0
    finish: str = ""
    usage: Usage | None = None
    cost_usd: float | None = None
    call_id: str = ""
    name: str = ""
    ok: bool = True
    spilled: str = ""
    kept_from: int = 0


@dataclass(frozen=True, slots=True)
class Conversation:
    """A whole run's prompt and answers. The prompt of a turn is `instructions`, the conversation
    that the session had before the run, and every message up to that turn's answer."""

    run_id: str
    session_id: str
    agent: str
    instructions: str
    tools: tuple[str, ...]
    models: tuple[str, ...]
    dialect: str
    messages: tuple[Said, ...]


def conversations(entries: Iterable[Entry]) -> list[Conversation]:
    """One for each run among the entries, in the order in which they started."""
    ordered = sorted(entries_by_run(entries).values(), key=lambda own: (own[0].at, own[0].id))
    return [_conversation(own) for own in ordered]


def _conversation(own: list[Entry]) -> Conversation:
    started = next((entry.event for entry in own if isinstance(entry.event, RunStarted)), None)
    return Conversation(
        run_id=own[0].address.run_id,
        session_id=own[0].address.session_id,
        agent=started.agent if started else "",
        instructions=started.instructions if started else "",
        tools=started.tools if started else (),
        models=started.models if started else (),
        dialect=started.dialect if started else "",
        messages=tuple(said for entry in own for said in _said(entry.event, entry.at)),
    )


def _said(event: Event, at: float) -> Iterator[Said]:
    match event:
        case RunStarted():
            yield Said("user", event.input, at, origin=event.caller)
        case MessageAdded():
            yield Said("user", event.text, at, origin=event.origin)
        case ModelAnswered():
            yield _answer(event, at)
        case AttemptFailed():
            yield Said(
                "retracted",
                event.retracted,
                at,
                model=event.model,
                turn=event.turn,
                finish=event.error,
                usage=event.usage,
                cost_usd=event.cost_usd,
                ok=False,
            )
        case ToolCallEnded():
            yield Said(
                "tool",
                event.content,
                at,
                call_id=event.call_id,
                name=event.name,
                ok=event.ok,
                spilled=event.spilled,
            )
        case Compacted():
            yield Said("compacted", event.summary, at, usage=event.usage, kept_from=event.kept_from)
        case _:
            pass


def _answer(event: ModelAnswered, at: float) -> Said:
    return Said(
        "assistant",
        event.message.text,
        at,
        tool_calls=event.message.tool_calls,
        reasoning=event.message.reasoning,
        completion=event.completion,
        model=event.model,
        turn=event.turn,
        finish=event.finish,
        usage=event.usage,
        cost_usd=event.cost_usd,
    )
