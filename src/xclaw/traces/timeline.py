"""What happened when: spans of runs, model calls and tool calls, read from entries alone."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from xclaw.contracts.events import (
    ApprovalAnswered,
    ApprovalAsked,
    AttemptFailed,
    Compacted,
    Entry,
    ModelAnswered,
    RunEnded,
    RunResumed,
    RunStarted,
    ToolCallEnded,
    ToolCallStarted,
    TurnStarted,
)
from xclaw.contracts.results import SUCCESSFUL
from xclaw.contracts.usage import Usage
from xclaw.traces.grouping import entries_by_run

SpanKind = Literal["run", "model", "attempt", "tool", "approval", "compaction"]
"""An "attempt" is a model call that failed; a "model" span is one that was answered, or goes on; an
"approval" is the wait of a tool call for a person."""


@dataclass(frozen=True, slots=True)
class Span:
    """One thing that took time."""

    kind: SpanKind
    run_id: str
    agent: str
    name: str
    """The agent, model or tool."""
    start: float
    """Unix time, seconds."""
    duration_s: float | None
    """None while it goes on, or when it was cut off and nobody saw its end."""
    ok: bool | None = None
    """None while it goes on."""
    usage: Usage | None = None
    cost_usd: float | None = None
    first_token_s: float | None = None
    detail: str = ""
    """The outcome of a run, the error of an attempt, the call id of a tool call, the answer to an approval."""
    seq: int = 0
    """The run's entry that ended it; of what has no end, the one that began it."""


def timeline(entries: Iterable[Entry]) -> list[Span]:
    """All spans, by start time; a run comes before what it did."""
    spans: list[Span] = []
    for own in entries_by_run(entries).values():
        spans.extend(_RunReader(own).spans())
    return sorted(spans, key=lambda span: (span.start, span.kind != "run"))


class _RunReader:
    """Folds one run's entries into spans; holds what is in flight."""

    def __init__(self, own: list[Entry]) -> None:
        first = own[0].event
        self._own = own
        self._run_id = own[0].address.run_id
        self._agent = first.agent if isinstance(first, RunStarted) else ""
        self._spans: list[Span] = []
        self._asked: tuple[float, str, int] | None = None
        """When the model call in flight began, whom it asked, and the entry that says so."""
        self._calls: dict[str, tuple[float, str, int]] = {}
        """The same of each tool call in flight, by call id."""
        self._questions: dict[str, Span] = {}
        """Approvals that nobody has answered, by id; a crash does not end them."""
        self._seq = 0

    def spans(self) -> list[Span]:
        end: Entry | None = None
        for entry in self._own:
            self._read(entry)
            if isinstance(entry.event, RunEnded):
                end = entry
        self._cut_off(end.at if end else None, ok=False if end else None)
        return [self._run(end), *self._spans, *self._questions.values()]

    def _read(self, entry: Entry) -> None:
        event = entry.event
        self._seq = entry.seq
        match event:
            case TurnStarted():
                self._asked = (entry.at, event.model, entry.seq)
            case AttemptFailed():
                self._attempt(entry.at, event)
            case ModelAnswered():
                self._answer(entry.at, event)
            case ToolCallStarted():
                self._calls[event.call_id] = (entry.at, event.name, entry.seq)
            case ToolCallEnded():
                self._tool(entry.at, event)
            case ApprovalAsked():
                self._questions[event.approval_id] = self._span("approval", event.tool, entry.at, None)
            case ApprovalAnswered():
                self._approval(entry.at, event)
            case Compacted() if event.usage.total_tokens:
                self._compaction(entry.at, event)
            case RunResumed():
                self._cut_off(None, ok=False)
            case _:
                pass

    def _span(self, kind: SpanKind, name: str, start: float, duration_s: float | None) -> Span:
        bounded = None if duration_s is None else max(0.0, duration_s)
        return Span(kind, self._run_id, self._agent, name, start, bounded, seq=self._seq)

    def _attempt(self, at: float, event: AttemptFailed) -> None:
        start = self._asked[0] if self._asked else at
        self._asked = (at, event.next_model, self._seq) if event.next_model else None
        span = self._span("attempt", event.model, start, at - start)
        self._spans.append(
            replace(span, ok=False, usage=event.usage, cost_usd=event.cost_usd, detail=event.error)
        )

    def _answer(self, at: float, event: ModelAnswered) -> None:
        start = at - event.duration_s
        if self._asked:
            start = max(start, self._asked[0])
        self._asked = None
        span = self._span("model", event.model, start, at - start)
        self._spans.append(
            replace(
                span,
                ok=True,
                usage=event.usage,
                cost_usd=event.cost_usd,
                first_token_s=event.first_token_s,
                detail=event.finish,
            )
        )

    def _tool(self, at: float, event: ToolCallEnded) -> None:
        start = self._calls.pop(event.call_id, (at - event.duration_s, event.name, self._seq))[0]
        span = self._span("tool", event.name, start, min(event.duration_s, at - start))
        self._spans.append(replace(span, ok=event.ok, detail=event.call_id))

    def _approval(self, at: float, event: ApprovalAnswered) -> None:
        asked = self._questions.pop(event.approval_id, None)
        if asked is not None:
            ok = event.decision not in ("deny", "void")
            detail = f"{event.decision}, by {event.by}"
            waited = max(0.0, at - asked.start)
            self._spans.append(replace(asked, duration_s=waited, ok=ok, detail=detail, seq=self._seq))

    def _compaction(self, at: float, event: Compacted) -> None:
        span = self._span("compaction", "compaction", at, 0.0)
        self._spans.append(replace(span, ok=True, usage=event.usage, cost_usd=event.cost_usd))

    def _cut_off(self, end: float | None, ok: bool | None) -> None:
        """Close what is in flight: at the run's end, or without an end when nobody saw one."""
        flying: list[tuple[SpanKind, str, tuple[float, str, int]]] = []
        if self._asked:
            flying.append(("model", "", self._asked))
        flying.extend(("tool", call_id, begun) for call_id, begun in self._calls.items())
        for kind, detail, (start, name, seq) in flying:
            span = self._span(kind, name, start, None if end is None else end - start)
            self._spans.append(replace(span, ok=ok, detail=detail, seq=seq))
        self._asked = None
        self._calls = {}

    def _run(self, end: Entry | None) -> Span:
        start = self._own[0].at
        span = self._span("run", self._agent, start, end.at - start if end else None)
        if end is None or not isinstance(end.event, RunEnded):
            return span
        return replace(span, ok=end.event.outcome in SUCCESSFUL, detail=end.event.outcome)
