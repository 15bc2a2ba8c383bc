"""From the end of a run to what a client is answered."""

import secrets
import time
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

import msgspec

from xclaw.contracts.messages import ToolCall
from xclaw.contracts.results import Result
from xclaw.contracts.usage import Usage
from xclaw.gateway.artifacts import Artifact, artifacts_of
from xclaw.gateway.protocols.openai.ask import Ask
from xclaw.gateway.protocols.openai.refused import Refused, Unmet, refused_by_outcome
from xclaw.gateway.protocols.openai.tools import are_whole, sent_arguments
from xclaw.gateway.protocols.openai.transcript import Transcript
from xclaw.loop.client_tools import CLIENT_TOOLS

Finish = Literal["stop", "length", "tool_calls", "content_filter"]

MAX_REASON = 1_000


@dataclass(frozen=True, slots=True)
class Answer:
    """What a run came to, for a client. `text` is what a stream has shown of it, to the letter."""

    text: str
    progress: str
    calls: tuple[ToolCall, ...]
    finish: Finish
    result: Result
    run_id: str
    agent: str
    artifacts: tuple[Artifact, ...] = ()
    passed_over: tuple[str, ...] = ()

    @property
    def usage(self) -> Usage:
        """Of the whole tree."""
        return self.result.spend.usage

    @property
    def extension(self) -> dict[str, object]:
        """The field `xclaw` of an answer."""
        spend = self.result.spend
        return {
            "run": self.run_id,
            "agent": self.agent,
            "outcome": self.result.outcome,
            "reason": "" if self.result.reason == CLIENT_TOOLS else self.result.reason[:MAX_REASON],
            "artifacts": [_described(artifact, self.run_id) for artifact in self.artifacts],
            "model_calls": spend.calls,
            "cost_usd": spend.cost_usd,
            "usage_estimated": spend.usage.estimated,
            "ignored_tools": list(self.passed_over),
        }


def answer_of(transcript: Transcript, result: Result, ask: Ask, run_id: str) -> Answer:
    """Raises `Refused` for a run without an answer, `Unmet` for one that the client did not ask for."""
    finish, calls = _finish(transcript, result, run_id)
    if ask.tools.must_call and finish in ("stop", "content_filter"):
        raise _without_call(ask)
    if finish != "length" or not transcript.is_full:
        transcript.conclude(_last_text(transcript, result, ask, finish))
    if transcript.is_broken:
        raise Refused(
            "the model failed in the middle of its answer, and the one after it said something else; "
            "what was sent cannot be taken back. Ask again.",
            code="text_retracted",
            status=502,
            again=True,
        )
    if transcript.is_full:
        finish, calls = "length", ()
    if ask.tools.one_call:
        calls = calls[:1]
    return Answer(
        transcript.content,
        transcript.progress,
        calls,
        finish,
        result,
        run_id,
        transcript.agent,
        artifacts_of(transcript.deliveries),
        ask.tools.passed_over,
    )


def _without_call(ask: Ask) -> Unmet:
    names = ", ".join(spec.name for spec in ask.tools.specs)
    return Unmet(
        "tool_choice requires a call, and the agent answered without one",
        code="tool_choice_unmet",
        correction=f"That has to be a tool call: call {names} now, and write nothing else.",
    )


def _finish(transcript: Transcript, result: Result, run_id: str) -> tuple[Finish, tuple[ToolCall, ...]]:
    last = transcript.last
    cut = last is not None and last.finish == "length"
    if transcript.is_full:
        return "length", ()
    if result.succeeded and result.reason == CLIENT_TOOLS and last is not None:
        calls = tuple(
            ToolCall(call.id, call.name, sent_arguments(call.arguments)) for call in last.message.tool_calls
        )
        if cut:
            return "length", tuple(call for call in calls if are_whole(call.arguments))
        return "tool_calls", calls
    if result.succeeded:
        return "stop", ()
    if result.outcome == "exhausted" and cut:
        return "length", ()
    if result.outcome == "error" and last is not None and last.finish == "content_filter":
        return "content_filter", ()
    if transcript.is_broken:
        return "stop", ()  # the caller says so
    raise refused_by_outcome(result, run_id)


def _last_text(transcript: Transcript, result: Result, ask: Ask, finish: Finish) -> str:
    if result.reason == CLIENT_TOOLS:
        return transcript.last.message.text if transcript.last else ""
    if ask.format is not None and finish == "stop" and not transcript.is_broken:
        return ask.format.checked(result.text)
    return result.text


def _described(artifact: Artifact, run_id: str) -> dict[str, object]:
    """Where the file can be fetched; never where it lies."""
    pointer, name = artifact.pointer, quote(artifact.name, safe="")
    return {
        "name": artifact.name,
        "agent": pointer.agent,
        "size": pointer.size,
        "sha256": pointer.sha256,
        "version": pointer.version,
        "url": f"/api/v1/runs/{run_id}/artifacts/{name}?version={pointer.version}",
    }


def fresh_id(kind: str) -> str:
    return f"{kind}{secrets.token_hex(12)}"


def now() -> int:
    """Unix time, seconds."""
    return int(time.time())


def sse_event(data: object, name: str = "") -> bytes:
    """One server-sent event."""
    head = f"event: {name}\n" if name else ""
    return head.encode() + b"data: " + msgspec.json.encode(data) + b"\n\n"
