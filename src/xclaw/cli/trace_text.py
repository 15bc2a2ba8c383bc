"""Traces as lines of text."""

import time
from collections.abc import Iterator, Sequence

from xclaw.cli.phases import ROUNDS, check_text
from xclaw.cli.text import money, one_line, printable, seconds, tokens
from xclaw.contracts.usage import Spend
from xclaw.traces.conversation import Conversation, Said
from xclaw.traces.phases import PhaseSpan
from xclaw.traces.timeline import Span
from xclaw.traces.tree import TraceNode

BAR_CELLS = 30
NAME_CHARACTERS = 40


def tree_lines(root: TraceNode) -> Iterator[str]:
    """A line for each run, with what it delivered and warned of below it."""
    started = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(root.started_at))
    mark = "  [scripted model]" if any(node.scripted for node in root.walk()) else ""
    sandbox = f"  [sandbox: {one_line(root.sandbox, 20)}]" if root.sandbox else ""
    yield f"trace {root.root_id}  session {one_line(root.session_id, 80)}  {started}{sandbox}{mark}"
    yield from _branch(root, "", "")
    yield f"total: {_spend(root.total)}, {root.total.calls} model calls"


def _branch(node: TraceNode, first: str, rest: str) -> Iterator[str]:
    length = "" if node.ended_at is None else f"  {seconds(node.ended_at - node.started_at)}"
    mode = f"  {node.mode}" if node.mode else ""
    models = f"  {', '.join(one_line(model, 60) for model in node.models)}" if node.models else ""
    name = one_line(node.agent, NAME_CHARACTERS) or "?"
    yield (
        f"{first}{name}{mode}  {node.status}{length}  {node.turns} turns  {_spend(node.own)}{models}"
        f"  {node.run_id}"
    )
    below = rest + ("│  " if node.children else "   ")
    for line in _remarks(node):
        yield f"{below}{line}"
    for number, child in enumerate(node.children, 1):
        last = number == len(node.children)
        yield from _branch(child, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))


def _remarks(node: TraceNode) -> Iterator[str]:
    task = node.task
    while task.startswith("["):  # the headers of a task, which say where, not what
        header, _, remaining = task.partition("\n")
        if not header.endswith("]"):
            break
        task = remaining.lstrip("\n")
    if task.strip():
        yield one_line(task, 100)
    if node.reason:
        yield f"reason: {one_line(node.reason, 200)}"
    if node.failed_attempts:
        yield f"failed attempts: {node.failed_attempts}"
    if node.resumes:
        yield f"taken up after a crash: {node.resumes} times"
    for phase in node.phases:
        yield from _phase_lines(phase)
    for pointer in node.artifacts:
        yield f"delivered: {printable(pointer.path)} ({pointer.size:,} bytes)"
    for warned in node.warnings:
        yield f"warning ({warned.code}): {one_line(warned.text, 200)}"


def _phase_lines(phase: PhaseSpan) -> Iterator[str]:
    took = "" if phase.ended_at is None else f"  {seconds(phase.ended_at - phase.started_at)}"
    done = f"  {phase.done}/{phase.total}" if phase.done else ""
    verdict = f"  {phase.verdict.replace('_', ' ')}" if phase.verdict else ""
    rounds = f" (round {phase.round} of {phase.rounds})" if phase.phase in ROUNDS else ""
    yield f"phase {phase.phase}{rounds}{done}{verdict}{took}"
    for worker in phase.workers:
        yield f"  {one_line(worker, 120)}"
    for run in phase.checks:
        yield f"  {check_text(run)}  (call {run.call_id} of {run.run_id})"


def _spend(spend: Spend) -> str:
    usage = spend.usage
    text = f"{tokens(usage.input_tokens)} in + {tokens(usage.output_tokens)} out"
    mark = " (estimated)" if usage.estimated else ""
    return f"{text}{mark}  {money(spend.cost_usd)}"


def timeline_lines(spans: Sequence[Span]) -> Iterator[str]:
    """A bar for each span: when it began, how long it took, what it was."""
    if not spans:
        return
    begin = min(span.start for span in spans)
    end = max(span.start + (span.duration_s or 0.0) for span in spans)
    width = max(end - begin, 1e-9)
    yield f"{'start':>8} {'took':>8}"
    for span in spans:
        left = int((span.start - begin) / width * (BAR_CELLS - 1))
        cells = max(1, round((span.duration_s or 0.0) / width * BAR_CELLS))
        bar = (" " * left + "█" * min(cells, BAR_CELLS - left)).ljust(BAR_CELLS)
        took = "open" if span.duration_s is None else seconds(span.duration_s)
        yield f"{seconds(span.start - begin):>8} {took:>8} ▕{bar}▏ {_span_name(span)}"


def _span_name(span: Span) -> str:
    agent = one_line(span.agent, NAME_CHARACTERS)
    if span.kind == "run":
        return f"{agent}: {span.detail or 'open'}"
    bad = "" if span.ok is not False else " FAILED"
    paid = ""
    if span.usage is not None:
        usage = span.usage
        paid = f" {tokens(usage.input_tokens)}+{tokens(usage.output_tokens)} {money(span.cost_usd)}"
    why = f" ({one_line(span.detail, 100)})" if span.kind in ("attempt", "approval") and span.detail else ""
    return f"  {agent} · {span.kind} {one_line(span.name, 60)}{bad}{paid}{why}"


def conversation_lines(conversation: Conversation) -> Iterator[str]:
    """Everything that was said in a run, as the model saw it and as it answered."""
    yield f"=== {one_line(conversation.agent, NAME_CHARACTERS)}  {conversation.run_id}"
    yield f"--- system (dialect {conversation.dialect}; tools: {', '.join(conversation.tools) or 'none'})"
    yield printable(conversation.instructions)
    for said in conversation.messages:
        yield f"--- {_who(said)}"
        if said.reasoning:
            yield f"[reasoning] {printable(said.reasoning)}"
        if said.completion and said.completion != said.text:
            yield f"[as the model wrote it] {printable(said.completion)}"
        if said.text:
            yield printable(said.text)
        for call in said.tool_calls:
            yield f"[call {one_line(call.id, 70)}] {one_line(call.name, 64)} {printable(call.arguments)}"


def _who(said: Said) -> str:
    match said.role:
        case "user":
            return f"user ({said.origin})"
        case "tool":
            return (
                f"tool {one_line(said.name, 64)} [{one_line(said.call_id, 70)}]{'' if said.ok else ' failed'}"
            )
        case "assistant":
            usage = f", {said.usage.input_tokens}+{said.usage.output_tokens} tokens" if said.usage else ""
            return f"assistant, turn {said.turn} ({one_line(said.model, 80)}, {said.finish}{usage})"
        case "retracted":
            return f"retracted, turn {said.turn} ({one_line(said.model, 80)}: {one_line(said.finish, 200)})"
        case "compacted":
            return f"compacted: everything before message {said.kept_from} became this summary"
