"""The phases of a coordinator's run, read from its entries alone."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xclaw.contracts.events import Entry, PhaseChanged, RunEnded
from xclaw.contracts.plans import CheckRun, Phase, Verdict


@dataclass(frozen=True, slots=True)
class PhaseSpan:
    """One phase, from when it began until the next one did."""

    phase: Phase
    round: int
    rounds: int
    started_at: float
    """Unix time, seconds."""
    ended_at: float | None = None
    done: int = 0
    total: int = 0
    workers: tuple[str, ...] = ()
    """Who worked on it: "agent part: outcome", in the order in which they ended."""
    verdict: Verdict | None = None
    checks: tuple[CheckRun, ...] = ()


def phase_spans(own: Sequence[Entry]) -> tuple[PhaseSpan, ...]:
    """Of one run; nothing for a run that is no coordinator's."""
    spans: list[PhaseSpan] = []
    for entry in own:
        event = entry.event
        if isinstance(event, RunEnded) and spans:
            spans[-1] = replace(spans[-1], ended_at=entry.at)
        if not isinstance(event, PhaseChanged):
            continue
        last = spans[-1] if spans else None
        if last is not None and event.verdict is not None:
            last = spans[-1] = replace(last, verdict=event.verdict, checks=event.checks)
        if (
            last is None
            or event.verdict is not None
            or (last.phase, last.round) != (event.phase, event.round)
        ):
            if last is not None:
                spans[-1] = replace(last, ended_at=entry.at)
            spans.append(PhaseSpan(event.phase, event.round, event.rounds, entry.at))
        spans[-1] = _with(spans[-1], event)
    return tuple(spans)


def _with(span: PhaseSpan, event: PhaseChanged) -> PhaseSpan:
    worked = (f"{event.agent} {event.part}: {event.outcome}",) if event.part else ()
    return replace(
        span,
        done=max(span.done, event.done),
        total=max(span.total, event.total),
        workers=(*span.workers, *worked),
    )
