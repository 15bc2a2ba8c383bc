"""A streamed answer put together: text handed on as it comes, the rest when the provider has finished."""

import json
from typing import Final, cast

import msgspec

from xclaw.contracts.errors import ModelRejected
from xclaw.contracts.messages import AssistantMessage
from xclaw.contracts.models import Finish
from xclaw.contracts.usage import Usage
from xclaw.models.failures import EmptyReply, FailureReader, message_of
from xclaw.models.openai.calls import CallAssembler
from xclaw.models.openai.sse import Event
from xclaw.models.openai.surrogates import mended, split_pair
from xclaw.models.openai.usage import usage_from_wire

MAX_REPLY_CHARACTERS = 8 * 1024 * 1024
_FINISHES: Final[dict[str, Finish]] = {
    "stop": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "max_output_tokens": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "tool_use": "tool_calls",
    "content_filter": "content_filter",
    "safety": "content_filter",
    "sensitive": "content_filter",
    "refusal": "content_filter",
}
_BROKEN = frozenset(
    {"error", "abort", "aborted", "cancelled", "network_error", "insufficient_system_resource", "timeout"}
)
_NO_FINISH = frozenset({"", "null", "none"})
_REASONING_KEYS = ("reasoning_content", "reasoning", "thinking")
_decode_json = msgspec.json.Decoder().decode


class ReplyAssembler:
    """Reads the chunks of one answer. Whatever they hold, it raises nothing but `ModelError`."""

    __slots__ = (
        "_calls",
        "_choice",
        "_failures",
        "_finish",
        "_fresh",
        "_half_pair",
        "_limit",
        "_loose",
        "_reasoning",
        "_size",
        "_text",
        "done",
        "usage",
    )

    def __init__(self, failures: FailureReader, limit: int = MAX_REPLY_CHARACTERS) -> None:
        self._failures = failures
        self._limit = limit
        self._size = 0
        self._fresh: list[str] = []
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls = CallAssembler()
        self._finish: str | None = None
        self._choice: object = None
        """The index of the one choice that is read."""
        self._loose = False
        self._half_pair = ""
        self.done = False
        """`[DONE]` was read: nothing of meaning follows."""
        self.usage: Usage | None = None
        """As reported, None when it was not."""

    @property
    def finished(self) -> bool:
        """The provider has said that the answer is complete."""
        return self._finish is not None

    @property
    def begun(self) -> bool:
        """Something was generated, and so has to be paid for."""
        return bool(self._text or self._fresh or self._reasoning or self._calls)

    @property
    def handed_on(self) -> str:
        """The text that `take_text` has given out."""
        return "".join(self._text)

    @property
    def generated(self) -> str:
        """All that was generated so far, for an estimate of its tokens."""
        calls = "".join(call.name + call.arguments for call in self._calls.calls())
        return "".join((*self._text, *self._fresh, *self._reasoning, calls))

    def add(self, event: Event, *, last: bool = False) -> None:
        """Read one event. `last`: the stream ended in it, so it may be cut off."""
        name, data = event
        if self.done or not data or data.isspace() or data.startswith(b":"):
            return
        if data.startswith(b"[DONE]"):
            self.done = True
            return
        chunk = self._decoded(data)
        if name == b"error":
            said = chunk if chunk is not None else data.decode("utf-8", "replace")
            raise self._failures.from_object(said)
        if chunk is None:
            if last:
                return
            raise self._failures.interrupted("sent an event that is not JSON")
        self._add_bounded(chunk)

    def add_body(self, body: bytes) -> None:
        """Read a whole answer that came as plain JSON."""
        chunk = self._decoded(body)
        if chunk is None:
            raise self._failures.interrupted("sent a JSON answer that is cut off or malformed")
        self._add_bounded(chunk)

    def _add_bounded(self, chunk: object) -> None:
        try:
            self._add_chunk(chunk)
        except RecursionError:
            raise self._failures.interrupted("sent JSON that is nested too deeply") from None

    def _add_chunk(self, chunk: object) -> None:
        if isinstance(chunk, list):
            for item in cast("list[object]", chunk):
                self._add_chunk(item)
            return
        if not isinstance(chunk, dict):
            return
        fields = cast("dict[str, object]", chunk)
        if fields.get("error"):
            raise self._failures.from_object(fields)
        choices = fields.get("choices")
        if isinstance(choices, list) and choices:
            self._add_choice(cast("list[object]", choices)[0])
        elif choices is None and message_of(fields) is not None:
            raise self._failures.from_object(fields)
        usage = fields.get("usage")
        if usage is None and "x_groq" in fields:
            usage = fields["x_groq"]
        if usage is not None:
            self.usage = usage_from_wire(usage, self.usage)
        if self._size + self._calls.size > self._limit:
            raise self._failures.interrupted(f"the answer is longer than {self._limit} characters")

    def take_text(self) -> str:
        """The text since the last time, "" if there is none."""
        if not self._fresh:
            return ""
        text = "".join(self._fresh)
        self._fresh.clear()
        if self._loose:
            text, self._half_pair = split_pair(self._half_pair + text)
            text = mended(text)
        if text:
            self._text.append(text)
        return text

    def message(self) -> tuple[AssistantMessage, Finish]:
        """The complete answer; all text must have been taken.

        Raises:
            ModelInterrupted: it has not finished, or it is empty.
            ModelRejected: a content filter kept all of it back.
        """
        if self._finish is None:
            raise self._failures.interrupted("the stream ended before the answer did (no finish reason)")
        if self._finish in _BROKEN:
            raise self._failures.interrupted(f"the answer broke off (finish reason {self._finish!r})")
        text, reasoning, calls = self.handed_on, "".join(self._reasoning), self._calls.calls()
        if self._loose:
            reasoning = mended(reasoning)
            calls = tuple(type(c)(mended(c.id), mended(c.name), mended(c.arguments)) for c in calls)
        finish = _FINISHES.get(self._finish, "stop")
        if finish == "content_filter" and not (text or calls):
            raise ModelRejected(self._failures.text("the provider's content filter kept the answer back"))
        if not calls and not text.strip():
            why = " (the output limit was reached first)" if finish == "length" else ""
            raise EmptyReply(self._failures.text(f"empty response{why}"))
        if finish in ("stop", "tool_calls"):
            finish = "tool_calls" if calls else "stop"
        return AssistantMessage(text, calls, reasoning), finish

    def _decoded(self, data: bytes) -> object:
        try:
            return cast("object", _decode_json(data))
        except (msgspec.MsgspecError, ValueError, RecursionError):
            pass
        try:  # NaN, half of a surrogate pair, raw control characters: rare and slow
            value = cast("object", json.loads(data.decode("utf-8", "replace"), strict=False))
        except (ValueError, RecursionError):
            return None
        self._loose = True
        return value

    def _add_choice(self, choice: object) -> None:
        if not isinstance(choice, dict):
            return
        fields = cast("dict[str, object]", choice)
        if self._choice is None:
            self._choice = fields.get("index")
        elif fields.get("index", self._choice) != self._choice:
            return
        if fields.get("error"):
            raise self._failures.from_object(fields)
        delta = fields.get("delta")
        if not isinstance(delta, dict):
            delta = fields.get("message")
        if isinstance(delta, dict):
            self._add_delta(cast("dict[str, object]", delta))
        elif isinstance(fields.get("text"), str):
            self._add_text(fields["text"])
        finish = fields.get("finish_reason")
        if isinstance(finish, str) and finish.lower() not in _NO_FINISH:
            self._finish = finish.lower()[:40]
        if isinstance(fields.get("usage"), dict):
            self.usage = usage_from_wire(fields["usage"], self.usage)

    def _add_delta(self, delta: dict[str, object]) -> None:
        content = delta.get("content")
        if content is not None:
            self._add_text(content)
            if len(delta) == 1 or (len(delta) == 2 and "role" in delta):
                return  # the common chunk: nothing else is in it
        for key in _REASONING_KEYS:
            value = delta.get(key)
            if value:
                self._add_reasoning(value)
                break
        if delta.get("refusal"):
            self._add_text(delta["refusal"])
        if delta.get("tool_calls"):
            self._calls.add(delta["tool_calls"])
        elif delta.get("function_call"):
            self._calls.add_legacy(delta["function_call"])

    def _add_text(self, content: object) -> None:
        if isinstance(content, str):
            if content:
                self._fresh.append(content)
                self._size += len(content)
        elif isinstance(content, list):
            for part in cast("list[object]", content):
                self._add_part(part)

    def _add_part(self, part: object) -> None:
        if isinstance(part, str):
            self._add_text(part)
        elif isinstance(part, dict):
            fields = cast("dict[str, object]", part)
            if fields.get("type") in ("thinking", "reasoning"):
                self._add_reasoning(fields.get("thinking") or fields.get("text"))
            elif isinstance(fields.get("text"), str):
                self._add_text(fields["text"])

    def _add_reasoning(self, value: object) -> None:
        if isinstance(value, str):
            self._reasoning.append(value)
            self._size += len(value)
        elif isinstance(value, list):
            for part in cast("list[object]", value):
                self._add_reasoning(part)
        elif isinstance(value, dict):
            fields = cast("dict[str, object]", value)
            self._add_reasoning(fields.get("text") or fields.get("content"))
