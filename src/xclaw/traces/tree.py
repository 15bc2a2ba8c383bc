"""The tree of runs under a root request, read from the journal's entries alone."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from xclaw.contracts.artifacts import Pointer
from xclaw.contracts.events import (
    ArtifactDelivered,
    AttemptFailed,
    ChildSpawned,
    Entry,
    ModelAnswered,
    RunEnded,
    RunResumed,
    RunStarted,
    ToolCallStarted,
    TurnStarted,
    Warned,
)
from xclaw.contracts.results import Outcome
from xclaw.contracts.tasks import Mode
from xclaw.contracts.usage import Spend
from xclaw.traces.grouping import entries_by_run
from xclaw.traces.phases import PhaseSpan, phase_spans
from xclaw.traces.spending import own_spend, spend_by_model

TraceStatus = Outcome | Literal["open", "not_started"]
"""How a run stands. "open": it has no end yet; "not_started": its parent asked for it, and that is all."""


@dataclass(frozen=True, slots=True)
class TraceNode:
    """One run, with what it and everything below it did."""

    run_id: str
    root_id: str
    parent_id: str
    """Empty for a root."""
    session_id: str
    agent: str
    task: str
    """What it was asked, headers included."""
    status: TraceStatus
    started_at: float
    """Unix time, seconds; of a run that has not started, when its parent asked for it."""
    ended_at: float | None
    own: Spend
    by_model: Mapping[str, Spend]
    """`own`, split by model."""
    total: Spend
    """`own` and the totals of the children: they always add up."""
    turns: int
    failed_attempts: int
    tool_calls: int
    resumes: int
    models: tuple[str, ...]
    """The models that answered, in order of first use."""
    artifacts: tuple[Pointer, ...]
    warnings: tuple[Warned, ...]
    reason: str
    text: str
    """Its final text, empty while it is open."""
    scripted: bool
    mode: Mode | None
    """How its parent handed the work out; None for a root."""
    background: bool
    children: tuple["TraceNode", ...]
    """In the order they were asked for."""
    phases: tuple[PhaseSpan, ...] = ()
    """Of a coordinator."""
    sandbox: str = ""
    """What its commands were kept in by; empty in host mode."""

    def walk(self) -> Iterator["TraceNode"]:
        """This run and everything below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()


def trace_trees(entries: Iterable[Entry]) -> tuple[TraceNode, ...]:
    """The trees that `entries` hold, oldest first.

    A run whose parent is not among the entries stands at the top, so a part of a tree can be shown.
    """
    runs = entries_by_run(entries)
    spawned = _spawned(runs)
    nested = _Nesting(runs, spawned)
    tops = [run_id for run_id, own in runs.items() if own[0].address.parent_id not in runs]
    trees = [nested.node(run_id) for run_id in tops]
    return tuple(sorted(trees, key=lambda node: (node.started_at, node.run_id)))


def _spawned(runs: Mapping[str, Sequence[Entry]]) -> dict[str, Entry]:
    """Every child's first ChildSpawned, by the child's id."""
    found: dict[str, Entry] = {}
    for own in runs.values():
        for entry in own:
            if isinstance(entry.event, ChildSpawned):
                found.setdefault(entry.event.child_run_id, entry)
    return found


class _Nesting:
    """Builds nodes bottom-up. A run met again on its own path (a forged parent) is not entered twice."""

    def __init__(self, runs: Mapping[str, Sequence[Entry]], spawned: Mapping[str, Entry]) -> None:
        self._runs = runs
        self._spawned = spawned
        self._below: dict[str, list[str]] = {}
        for child, entry in spawned.items():
            self._below.setdefault(entry.address.run_id, []).append(child)
        for run_id, own in runs.items():
            parent = own[0].address.parent_id
            if parent and run_id not in spawned:
                self._below.setdefault(parent, []).append(run_id)
        self._open: set[str] = set()

    def node(self, run_id: str) -> TraceNode:
        self._open.add(run_id)
        below = [child for child in self._below.get(run_id, ()) if child not in self._open]
        children = tuple(self.node(child) for child in below)
        self._open.discard(run_id)
        own = self._runs.get(run_id)
        if own is None:
            return _not_started(self._spawned[run_id])
        return _node(own, children, self._spawned.get(run_id))


def _not_started(spawned: Entry) -> TraceNode:
    event = spawned.event
    assert isinstance(event, ChildSpawned)
    return TraceNode(
        run_id=event.child_run_id,
        root_id=spawned.address.root_id,
        parent_id=spawned.address.run_id,
        session_id=event.child_session_id,
        agent=event.task.agent,
        task=event.task.text,
        status="not_started",
        started_at=spawned.at,
        ended_at=None,
        own=Spend(),
        by_model={},
        total=Spend(),
        turns=0,
        failed_attempts=0,
        tool_calls=0,
        resumes=0,
        models=(),
        artifacts=(),
        warnings=(),
        reason="",
        text="",
        scripted=False,
        mode=event.task.mode,
        background=event.background,
        children=(),
    )


def _node(own: Sequence[Entry], children: tuple[TraceNode, ...], spawned: Entry | None) -> TraceNode:
    events = [entry.event for entry in own]
    started = next((event for event in events if isinstance(event, RunStarted)), None)
    ended = next((entry for entry in own if isinstance(entry.event, RunEnded)), None)
    end = ended.event if ended is not None and isinstance(ended.event, RunEnded) else None
    asked = spawned.event if spawned is not None and isinstance(spawned.event, ChildSpawned) else None
    task = started.task if started else None
    spend = own_spend(own)
    return TraceNode(
        run_id=own[0].address.run_id,
        root_id=own[0].address.root_id,
        parent_id=own[0].address.parent_id,
        session_id=own[0].address.session_id,
        agent=started.agent if started else "",
        task=started.input if started else "",
        status=end.outcome if end else "open",
        started_at=own[0].at,
        ended_at=ended.at if ended else None,
        own=spend,
        by_model=spend_by_model(own),
        total=sum((child.total for child in children), spend),
        turns=max((event.turn for event in events if isinstance(event, TurnStarted)), default=0),
        failed_attempts=sum(isinstance(event, AttemptFailed) for event in events),
        tool_calls=sum(isinstance(event, ToolCallStarted) for event in events),
        resumes=sum(isinstance(event, RunResumed) for event in events),
        models=tuple(dict.fromkeys(event.model for event in events if isinstance(event, ModelAnswered))),
        artifacts=_artifacts(own),
        warnings=tuple(event for event in events if isinstance(event, Warned)),
        reason=end.result.reason if end else "",
        text=end.result.text if end else "",
        scripted=started.scripted if started else False,
        mode=asked.task.mode if asked else task.mode if task else None,
        background=asked.background if asked else False,
        children=children,
        phases=phase_spans(own),
        sandbox=started.sandbox if started else "",
    )


def _artifacts(own: Sequence[Entry]) -> tuple[Pointer, ...]:
    """What the run itself delivered, each version once; not what its children handed up."""
    found: dict[str, Pointer] = {}
    for entry in own:
        event = entry.event
        if isinstance(event, ArtifactDelivered):
            found[event.pointer.path] = event.pointer
        elif isinstance(event, RunEnded):
            own_id = entry.address.run_id
            handed = (pointer for pointer in event.artifacts if pointer.run_id in ("", own_id))
            found = {pointer.path: pointer for pointer in handed} | found
    return tuple(found.values())
