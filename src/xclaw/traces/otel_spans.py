"""The journal's entries as spans for OpenTelemetry: plain records, so that no vendor's class is needed.

One trace per root. An agent's span holds its model and tool calls; a child's stands under the tool call
that spawned it. Tokens stand on model calls only, so receivers that add up spans count each once.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from xclaw.contracts.events import (
    AttemptFailed,
    Entry,
    ModelAnswered,
    RunEnded,
    RunStarted,
    ToolCallEnded,
    ToolCallStarted,
)
from xclaw.contracts.usage import Spend
from xclaw.traces import otel_content as content
from xclaw.traces import otel_names as names
from xclaw.traces.grouping import entries_by_run
from xclaw.traces.otel_attributes import (
    Attribute,
    attempt_error,
    bounded,
    provider_and_model,
    short,
    titled,
    used,
)
from xclaw.traces.otel_ids import TraceParent, call_span_id, model_span_id, run_span_id, trace_id_of
from xclaw.traces.timeline import Span, timeline
from xclaw.traces.tree import trace_trees


@dataclass(frozen=True, slots=True)
class SpanRecord:
    """One span. Times are Unix nanoseconds."""

    trace_id: int
    span_id: int
    parent_id: int | None
    parent_is_remote: bool
    name: str
    calls_out: bool
    """It waited for another service: a model call."""
    start_ns: int
    end_ns: int
    attributes: Mapping[str, Attribute]
    failed: bool
    error: str
    """Why it failed, in words; empty unless contents are exported."""


@dataclass(frozen=True, slots=True)
class _Tree:
    """What the spans of one run must know of the others."""

    calls: frozenset[tuple[str, str]]
    """All tool calls among the entries, as (run id, call id)."""
    sessions: Mapping[str, str]
    totals: Mapping[str, Spend]
    parent: TraceParent | None
    include_content: bool


def span_records(
    entries: Iterable[Entry], *, include_content: bool = False, parent: TraceParent | None = None
) -> list[SpanRecord]:
    """The spans of every run among the entries, by start time. `parent` is where roots stand under.

    A call that a crash cut off has no length; a run without an end ends with its last entry.
    """
    held = list(entries)
    runs = entries_by_run(held)
    tree = _Tree(
        frozenset(
            (entry.address.run_id, entry.event.call_id)
            for entry in held
            if isinstance(entry.event, ToolCallStarted | ToolCallEnded)
        ),
        {run_id: own[0].address.session_id for run_id, own in runs.items()},
        {node.run_id: node.total for top in trace_trees(held) for node in top.walk()},
        parent,
        include_content,
    )
    found = [record for own in runs.values() for record in _RunSpans(own, tree).records()]
    return sorted(found, key=lambda record: record.start_ns)


class _RunSpans:
    """The spans of one run."""

    def __init__(self, own: Sequence[Entry], tree: _Tree) -> None:
        self._own = own
        self._tree = tree
        self._address = own[0].address
        self._run_id = self._address.run_id
        self._span_id = run_span_id(self._run_id)
        events = [entry.event for entry in own]
        self._started = next((event for event in events if isinstance(event, RunStarted)), None)
        self._ended = next((event for event in events if isinstance(event, RunEnded)), None)
        self._agent = self._started.agent if self._started else ""
        self._by_seq = {entry.seq: entry.event for entry in own}
        self._prompts = self._read_prompts() if tree.include_content else {}
        self._arguments = {
            event.call_id: event.arguments for event in events if isinstance(event, ToolCallStarted)
        }

    def records(self) -> list[SpanRecord]:
        records: list[SpanRecord] = []
        tools: dict[str, Span] = {}
        for span in timeline(self._own):
            match span.kind:
                case "run":
                    records.append(self._run(span))
                case "tool":
                    # A call that a crash cut off and that was made again is one call.
                    first = tools.get(span.detail)
                    tools[span.detail] = span if first is None else _joined(first, span)
                case "model" | "attempt" | "compaction":
                    records.append(self._model(span))
                case "approval":
                    pass  # GenAI has no name for the wait for a person; the call that waited has its own span
        records.extend(self._tool(call_id, span) for call_id, span in tools.items())
        return records

    def _run(self, span: Span) -> SpanRecord:
        outcome = self._ended.outcome if self._ended else "open"
        total = self._tree.totals.get(self._run_id, Spend())
        attributes = self._common(names.INVOKE_AGENT)
        attributes |= {
            names.ROOT_ID: short(self._address.root_id),
            names.OUTCOME: outcome,
            names.TOTAL_INPUT_TOKENS: bounded(total.usage.input_tokens),
            names.TOTAL_OUTPUT_TOKENS: bounded(total.usage.output_tokens),
        }
        if total.cost_usd is not None:
            attributes[names.TOTAL_COST_USD] = total.cost_usd
        if self._started and self._started.scripted:
            attributes[names.SCRIPTED] = True
        if self._tree.include_content:
            attributes |= self._run_content()
        reason = self._ended.result.reason if self._ended else ""
        last = max(self._own[-1].at, span.start)
        duration_s = last - span.start if span.duration_s is None else span.duration_s
        return self._record(
            _Place(self._span_id, titled(names.INVOKE_AGENT, self._agent), *self._parent()),
            _Length(span.start, duration_s),
            attributes,
            outcome if span.ok is False else "",
            reason,
        )

    def _parent(self) -> tuple[int | None, bool]:
        """The span that this run stands under, and whether it is another program's."""
        parent_run = self._address.parent_id
        if not parent_run:
            outside = self._tree.parent
            return (outside.span_id, True) if outside else (None, False)
        call_id = self._started.parent_call_id if self._started else ""
        if call_id and ((parent_run, call_id) in self._tree.calls or parent_run not in self._tree.sessions):
            return call_span_id(parent_run, call_id), False
        return run_span_id(parent_run), False

    def _run_content(self) -> dict[str, Attribute]:
        found: dict[str, Attribute] = {}
        started, ended = self._started, self._ended
        is_root = not self._address.parent_id
        if started:
            found[names.SYSTEM_INSTRUCTIONS] = content.text_parts(started.instructions)
            found[names.INPUT_MESSAGES] = content.messages([content.said("user", started.input)])
            if is_root:
                found[names.INPUT_VALUE] = content.shortened(started.input)
        if ended:
            found[names.OUTPUT_MESSAGES] = content.messages(
                [content.said("assistant", ended.result.text, "stop")]
            )
            if is_root:
                found[names.OUTPUT_VALUE] = content.shortened(ended.result.text)
        return found

    def _model(self, span: Span) -> SpanRecord:
        attributes = self._common(names.CHAT)
        title = names.CHAT
        if span.kind == "compaction":
            attributes[names.COMPACTION] = True
        else:
            provider, model = provider_and_model(span.name)
            title = titled(names.CHAT, model)
            attributes |= {names.PROVIDER: provider, names.REQUEST_MODEL: model}
        if span.usage and (span.kind != "attempt" or span.usage.total_tokens):
            attributes |= used(span.usage, span.cost_usd)
        event = self._by_seq.get(span.seq)
        failure, reason = "", ""
        if isinstance(event, ModelAnswered):
            attributes |= self._answered(event)
        elif isinstance(event, AttemptFailed) and span.kind == "attempt":
            attributes[names.TURN] = event.turn
            failure, reason = attempt_error(event), event.error
        elif span.ok is False:
            failure = self._cut_off(span)
        if span.kind != "compaction" and span.seq in self._prompts:
            attributes[names.INPUT_MESSAGES] = self._prompts[span.seq]
        return self._record(
            _Place(model_span_id(self._run_id, span.kind, span.seq), title, self._span_id, calls_out=True),
            _Length(span.start, span.duration_s or 0.0),
            attributes,
            failure,
            reason,
        )

    def _answered(self, event: ModelAnswered) -> dict[str, Attribute]:
        found: dict[str, Attribute] = {
            names.RESPONSE_MODEL: provider_and_model(event.model)[1],
            names.FINISH_REASONS: (short(event.finish),),
            names.TURN: event.turn,
        }
        if event.first_token_s is not None:
            found[names.FIRST_TOKEN_S] = event.first_token_s
        if self._tree.include_content:
            found[names.OUTPUT_MESSAGES] = content.messages([content.answer(event)])
        return found

    def _tool(self, call_id: str, span: Span) -> SpanRecord:
        tool = short(span.name)
        attributes = self._common(names.EXECUTE_TOOL)
        attributes |= {names.TOOL_NAME: tool, names.TOOL_CALL_ID: short(call_id)}
        event = self._by_seq.get(span.seq)
        ended = event if isinstance(event, ToolCallEnded) else None
        if self._tree.include_content:
            if call_id in self._arguments:
                attributes[names.TOOL_ARGUMENTS] = content.shortened(self._arguments[call_id])
            if ended:
                attributes[names.TOOL_RESULT] = content.shortened(ended.content)
        failure = ""
        if span.ok is False:
            failure = names.TOOL_FAILED if ended else self._cut_off(span)
        return self._record(
            _Place(call_span_id(self._run_id, call_id), titled(names.EXECUTE_TOOL, tool), self._span_id),
            _Length(span.start, span.duration_s or 0.0),
            attributes,
            failure,
            ended.content if ended else "",
        )

    def _cut_off(self, span: Span) -> str:
        """The error of what the run's end, or a crash, cut off."""
        return self._ended.outcome if self._ended and span.duration_s is not None else names.INTERRUPTED

    def _common(self, operation: str) -> dict[str, Attribute]:
        root_session = self._tree.sessions.get(self._address.root_id, self._address.session_id)
        return {
            names.OPERATION: operation,
            names.AGENT_NAME: short(self._agent),
            names.CONVERSATION_ID: short(self._address.session_id),
            names.SESSION_ID: short(root_session),
            names.RUN_ID: short(self._run_id),
        }

    def _record(
        self,
        place: "_Place",
        length: "_Length",
        attributes: dict[str, Attribute],
        failure: str,
        reason: str,
    ) -> SpanRecord:
        if failure:
            attributes[names.ERROR_TYPE] = failure
        outside = self._tree.parent
        return SpanRecord(
            trace_id=outside.trace_id if outside else trace_id_of(self._address.root_id),
            span_id=place.span_id,
            parent_id=place.parent_id,
            parent_is_remote=place.parent_is_remote,
            name=place.name,
            calls_out=place.calls_out,
            start_ns=_nanoseconds(length.start),
            end_ns=_nanoseconds(length.start + length.duration_s),
            attributes=attributes,
            failed=bool(failure),
            error=content.shortened(reason) if failure and self._tree.include_content else "",
        )

    def _read_prompts(self) -> dict[int, str]:
        """What each model call was sent, by the entry that ended it; or began it, when it has no end."""
        prompts = content.Prompts()
        found: dict[int, str] = {}
        for entry in self._own:
            if entry.event.kind in ("turn_started", "attempt_failed", "model_answered"):
                found[entry.seq] = prompts.current()
            prompts.apply(entry.event)
        return found


@dataclass(frozen=True, slots=True)
class _Place:
    span_id: int
    name: str
    parent_id: int | None
    parent_is_remote: bool = False
    calls_out: bool = False


@dataclass(frozen=True, slots=True)
class _Length:
    start: float
    duration_s: float


def _joined(first: Span, again: Span) -> Span:
    """One span over both; what came of it is what came of the later one."""
    end = again.start + (again.duration_s or 0.0)
    return Span(
        "tool",
        again.run_id,
        again.agent,
        again.name,
        first.start,
        max(0.0, end - first.start),
        again.ok,
        detail=again.detail,
        seq=again.seq,
    )


def _nanoseconds(at: float) -> int:
    """Whole microseconds: a float of today's time holds no more."""
    return max(0, round(at * 1e6)) * 1000
