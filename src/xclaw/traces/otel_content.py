"""What was said, in the JSON form that the GenAI conventions give messages. Exported only when asked for."""

import json
from collections.abc import Sequence

from xclaw.contracts.events import Compacted, Event, MessageAdded, ModelAnswered, RunStarted, ToolCallEnded

MAX_TEXT = 20_000
"""Characters of one text."""
MAX_MESSAGES = 100_000
"""Characters of all messages of one prompt; the oldest are left out first."""

Part = dict[str, str]


def shortened(text: str, limit: int = MAX_TEXT) -> str:
    """At most `limit` characters, encodable as UTF-8."""
    if len(text) > limit:
        text = f"{text[:limit]}... [{len(text) - limit} more characters]"
    return text.encode("utf-8", "replace").decode()


def text_parts(text: str) -> str:
    """System instructions: a list of parts."""
    return json.dumps([_text(text)], ensure_ascii=False)


def message(role: str, parts: Sequence[Part], finish: str = "") -> str:
    form: dict[str, object] = {"role": role, "parts": list(parts)}
    if finish:
        form["finish_reason"] = finish
    return json.dumps(form, ensure_ascii=False)


def said(role: str, text: str, finish: str = "") -> str:
    """A message that is one text."""
    return message(role, [_text(text)], finish)


def answer(event: ModelAnswered) -> str:
    parts: list[Part] = []
    if event.message.reasoning:
        parts.append({"type": "reasoning", "content": shortened(event.message.reasoning)})
    if event.message.text:
        parts.append(_text(event.message.text))
    parts.extend(
        {
            "type": "tool_call",
            "id": shortened(call.id),
            "name": shortened(call.name),
            "arguments": shortened(call.arguments),
        }
        for call in event.message.tool_calls
    )
    return message("assistant", parts, shortened(event.finish))


def messages(encoded: Sequence[str]) -> str:
    """A list of messages, the newest that fit."""
    kept: list[str] = []
    room = MAX_MESSAGES
    for one in reversed(encoded):
        if kept and len(one) > room:
            left_out = len(encoded) - len(kept)
            kept.append(said("system", f"[{left_out} earlier messages are left out here]"))
            break
        kept.append(one)
        room -= len(one)
    return f"[{','.join(reversed(kept))}]"


class Prompts:
    """The prompt of each model call of one run, as far as the run's own entries tell.

    What the session held before the run belongs to the traces of its earlier runs.
    """

    def __init__(self) -> None:
        self._all: list[str] = []
        self._kept_from = 0
        self._summary = ""
        self._current = ""

    def apply(self, event: Event) -> None:
        self._current = self._current if event.kind in ("turn_started", "attempt_failed") else ""
        match event:
            case RunStarted():
                self._all.append(said("user", event.input))
            case MessageAdded():
                self._all.append(said("user", event.text))
            case ModelAnswered():
                self._all.append(answer(event))
            case ToolCallEnded():
                part = {
                    "type": "tool_call_response",
                    "id": shortened(event.call_id),
                    "response": shortened(event.content),
                }
                self._all.append(message("tool", [part]))
            case Compacted():
                self._kept_from, self._summary = event.kept_from, said("user", event.summary)
            case _:
                pass

    def current(self) -> str:
        if not self._current:
            summary = [self._summary] if self._summary else []
            self._current = messages([*summary, *self._all[self._kept_from :]])
        return self._current


def _text(text: str) -> Part:
    return {"type": "text", "content": shortened(text)}
