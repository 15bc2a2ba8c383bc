"""The JSON forms of traces, as `xclaw trace --json` prints them. Keys are stable: added to, never renamed.

Times are Unix seconds, durations seconds, costs US dollars; an unknown cost is null, never 0.
"""

from collections.abc import Iterable

from xclaw.contracts.artifacts import Pointer
from xclaw.contracts.usage import Spend, Usage
from xclaw.traces.conversation import Conversation, Said
from xclaw.traces.phases import PhaseSpan
from xclaw.traces.timeline import Span
from xclaw.traces.tree import TraceNode

Json = dict[str, object]


def usage_json(usage: Usage) -> Json:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "total_tokens": usage.total_tokens,
        "estimated": usage.estimated,
    }


def spend_json(spend: Spend) -> Json:
    return {
        **usage_json(spend.usage),
        "cost_usd": spend.cost_usd,
        "known_usd": spend.known_usd,
        "unpriced_calls": spend.unpriced_calls,
        "calls": spend.calls,
    }


def artifact_json(pointer: Pointer) -> Json:
    return {
        "path": pointer.path,
        "sha256": pointer.sha256,
        "size": pointer.size,
        "agent": pointer.agent,
        "version": pointer.version,
    }


def tree_json(node: TraceNode) -> Json:
    """A run; its children stand in `children`, in the same form."""
    ended = node.ended_at
    form: Json = {
        "run_id": node.run_id,
        "root_id": node.root_id,
        "parent_id": node.parent_id,
        "session_id": node.session_id,
        "agent": node.agent,
        "task": node.task,
        "mode": node.mode,
        "background": node.background,
        "status": node.status,
        "reason": node.reason,
        "text": node.text,
        "scripted": node.scripted,
        "started_at": node.started_at,
        "ended_at": ended,
        "duration_s": None if ended is None else round(ended - node.started_at, 6),
        "turns": node.turns,
        "tool_calls": node.tool_calls,
        "failed_attempts": node.failed_attempts,
        "resumes": node.resumes,
        "models": list(node.models),
        "own": spend_json(node.own),
        "own_by_model": {model: spend_json(spend) for model, spend in node.by_model.items()},
        "total": spend_json(node.total),
        "artifacts": [artifact_json(pointer) for pointer in node.artifacts],
        "warnings": [{"code": warned.code, "text": warned.text} for warned in node.warnings],
        "children": [tree_json(child) for child in node.children],
    }
    if node.sandbox:
        form["sandbox"] = node.sandbox
    if node.phases:
        form["phases"] = [_phase_json(phase) for phase in node.phases]
    return form


def _phase_json(phase: PhaseSpan) -> Json:
    return {
        "phase": phase.phase,
        "round": phase.round,
        "rounds": phase.rounds,
        "started_at": phase.started_at,
        "ended_at": phase.ended_at,
        "done": phase.done,
        "total": phase.total,
        "workers": list(phase.workers),
        "verdict": phase.verdict,
        "checks": [
            {
                "command": run.command,
                "ran": run.ran,
                "exit_code": run.exit_code,
                "call_id": run.call_id,
                "run_id": run.run_id,
            }
            for run in phase.checks
        ],
    }


def timeline_json(spans: Iterable[Span]) -> list[Json]:
    return [
        {
            "kind": span.kind,
            "run_id": span.run_id,
            "agent": span.agent,
            "name": span.name,
            "start": span.start,
            "duration_s": span.duration_s,
            "ok": span.ok,
            "detail": span.detail,
            "usage": usage_json(span.usage) if span.usage else None,
            "cost_usd": span.cost_usd,
            "first_token_s": span.first_token_s,
        }
        for span in spans
    ]


def conversation_json(conversation: Conversation) -> Json:
    return {
        "run_id": conversation.run_id,
        "session_id": conversation.session_id,
        "agent": conversation.agent,
        "models": list(conversation.models),
        "dialect": conversation.dialect,
        "tools": list(conversation.tools),
        "instructions": conversation.instructions,
        "messages": [_said_json(said) for said in conversation.messages],
    }


def _said_json(said: Said) -> Json:
    form: Json = {"role": said.role, "at": said.at, "text": said.text}
    match said.role:
        case "user":
            form["origin"] = said.origin
        case "tool":
            form |= {"call_id": said.call_id, "name": said.name, "ok": said.ok, "spilled": said.spilled}
        case "compacted":
            form["kept_from"] = said.kept_from
        case "retracted":
            form |= {"turn": said.turn, "model": said.model, "error": said.finish, **_paid(said)}
        case "assistant":
            calls = [
                {"id": call.id, "name": call.name, "arguments": call.arguments} for call in said.tool_calls
            ]
            form |= {
                "turn": said.turn,
                "model": said.model,
                "finish": said.finish,
                "tool_calls": calls,
                "reasoning": said.reasoning,
                "completion": said.completion or said.text,
                **_paid(said),
            }
    return form


def _paid(said: Said) -> Json:
    return {"usage": usage_json(said.usage) if said.usage else None, "cost_usd": said.cost_usd}
