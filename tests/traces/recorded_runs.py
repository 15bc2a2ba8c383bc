"""Entries of made-up runs, numbered and timed as a runtime would."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from xclaw.contracts.agents import Limits
from xclaw.contracts.events import (
    Address,
    AttemptFailed,
    ChildEnded,
    ChildSpawned,
    Entry,
    Event,
    ModelAnswered,
    RunEnded,
    RunStarted,
    TurnStarted,
)
from xclaw.contracts.messages import AssistantMessage
from xclaw.contracts.results import Outcome, Result
from xclaw.contracts.tasks import Task
from xclaw.contracts.usage import Usage


@dataclass
class Recording:
    """Records the events of a tree; every event is one second after the one before it."""

    entries: list[Entry] = field(default_factory=list[Entry])
    now: float = 1000.0

    def record(self, run_id: str, *events: Event, parent: str = "") -> None:
        for event in events:
            seq = sum(entry.address.run_id == run_id for entry in self.entries) + 1
            address = Address(run_id, "root", parent, f"session-of-{run_id}")
            self.entries.append(Entry(address, seq, self.now, event, len(self.entries) + 1))
            self.now += 1.0


def started(agent: str, depth: int = 0, task: Task | None = None) -> RunStarted:
    return RunStarted(
        agent,
        f"input of {agent}",
        "user",
        depth,
        "be good",
        ("deliver",),
        ("m:1",),
        "native",
        Limits(),
        task=task,
    )


def turn(number: int, model: str = "m:1") -> TurnStarted:
    return TurnStarted(number, model, 0, None)


def answered(number: int, usage: Usage, cost_usd: float | None = 0.0, model: str = "m:1") -> ModelAnswered:
    message = AssistantMessage(f"answer {number}")
    return ModelAnswered(number, message, usage, cost_usd, model, "stop", 0.5, completion=f"raw {number}")


def failed(
    number: int, usage: Usage, cost_usd: float | None, model: str, following: str | None
) -> AttemptFailed:
    return AttemptFailed(number, model, "broke", 500, usage, cost_usd, "half a te", following)


def spawned(child: str, agent: str, *, background: bool = False) -> ChildSpawned:
    task = Task(agent, f"task of {child}", "delegate", "0")
    return ChildSpawned("call-1", child, f"session-of-{child}", "abc123", task, background)


def took(child: str, outcome: Outcome = "success") -> ChildEnded:
    return ChildEnded(child, Result(outcome))


def ended(outcome: Outcome = "success", turns: int = 1) -> RunEnded:
    return RunEnded(
        Result(outcome, "the end", reason="" if outcome == "success" else "because"), outcome, turns
    )


def entries_of(events: Iterable[Event]) -> list[Entry]:
    recording = Recording()
    recording.record("root", *events)
    return recording.entries
