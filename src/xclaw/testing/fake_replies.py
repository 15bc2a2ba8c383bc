"""What a `FakeProvider` can answer, and how that looks on the chat-completions wire."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import msgspec

MODEL = "fake-model"
DONE = b"data: [DONE]\n\n"
Usage = tuple[int, int]
"""Input and output tokens, as the provider reports them."""
CallParts = tuple[str, str, str]
"""Id, name and arguments (JSON text, sent as it is) of a tool call."""


@dataclass(frozen=True, slots=True)
class Text:
    """A text answer. `chunk`: characters per delta, None for one; `finish`: None to leave it out."""

    text: str
    usage: Usage | None = (10, 2)
    chunk: int | None = None
    finish: str | None = "stop"
    model: str = MODEL


@dataclass(frozen=True, slots=True, init=False)
class Calls:
    """Tool calls, each `(id, name, arguments as JSON text)`, streamed in several deltas."""

    calls: tuple[CallParts, ...]
    text: str
    usage: Usage | None
    finish: str | None
    model: str

    def __init__(
        self,
        *calls: CallParts,
        text: str = "",
        usage: Usage | None = (10, 2),
        finish: str | None = "tool_calls",
        model: str = MODEL,
    ) -> None:
        object.__setattr__(self, "calls", calls)
        object.__setattr__(self, "text", text)
        object.__setattr__(self, "usage", usage)
        object.__setattr__(self, "finish", finish)
        object.__setattr__(self, "model", model)


@dataclass(frozen=True, slots=True)
class Status:
    """An HTTP error (or any status). `body` None: OpenAI's error object."""

    code: int
    body: str | bytes | Mapping[str, object] | None = None
    headers: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Pause:
    seconds: float


@dataclass(frozen=True, slots=True)
class Until:
    """Go on when the event is set."""

    event: asyncio.Event


@dataclass(frozen=True, slots=True)
class Cut:
    """Drop the connection: a TCP reset, or with `reset` False a FIN in the middle of the body."""

    reset: bool = True


Part = bytes | Pause | Until | Cut


@dataclass(frozen=True, slots=True, init=False)
class Raw:
    """A 200 whose body is these bytes, exactly; each is written on its own. Ends cleanly after the last."""

    parts: tuple[Part, ...]
    content_type: str

    def __init__(self, *parts: Part, content_type: str = "text/event-stream") -> None:
        object.__setattr__(self, "parts", parts)
        object.__setattr__(self, "content_type", content_type)


@dataclass(frozen=True, slots=True)
class Hang:
    """Never answers, not even with headers."""


Reply = Text | Calls | Status | Raw | Hang


def sse(data: object) -> bytes:
    """One server-sent event with JSON data."""
    return b"data: " + msgspec.json.encode(data) + b"\n\n"


def delta(
    content: str | None = None,
    *,
    tool_calls: list[dict[str, object]] | None = None,
    finish: str | None = None,
    model: str = MODEL,
) -> bytes:
    """One streamed chunk, as an event."""
    fields: dict[str, object] = {}
    if content is not None:
        fields["content"] = content
    if tool_calls is not None:
        fields["tool_calls"] = tool_calls
    return _chunk(fields, finish, model)


def usage_chunk(usage: Usage, model: str = MODEL) -> bytes:
    """The last chunk, whose `choices` is empty."""
    chunk = _envelope("chat.completion.chunk", model)
    no_choices: list[object] = []
    chunk["choices"] = no_choices
    chunk["usage"] = _usage_fields(usage)
    return sse(chunk)


@lru_cache(maxsize=4096)
def stream_of(reply: Text | Calls, with_usage: bool) -> bytes:
    """The whole event stream of an answer. Computed once for equal answers."""
    events = [*_deltas(reply)]
    if reply.finish is not None:
        events.append(delta(finish=reply.finish, model=reply.model))
    if with_usage and reply.usage is not None:
        events.append(usage_chunk(reply.usage, reply.model))
    events.append(DONE)
    return b"".join(events)


@lru_cache(maxsize=4096)
def document_of(reply: Text | Calls) -> bytes:
    """The answer to a request that does not stream."""
    message: dict[str, object] = {"role": "assistant", "content": reply.text or None}
    if isinstance(reply, Calls):
        message["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
            for call_id, name, arguments in reply.calls
        ]
    document = _envelope("chat.completion", reply.model)
    document["choices"] = [{"index": 0, "message": message, "finish_reason": reply.finish}]
    if reply.usage is not None:
        document["usage"] = _usage_fields(reply.usage)
    return msgspec.json.encode(document)


def error_body(status: Status) -> bytes:
    match status.body:
        case bytes():
            return status.body
        case str():
            return status.body.encode()
        case None:
            error: dict[str, object] = {
                "message": f"fake error {status.code}",
                "type": "fake_error",
                "code": None,
            }
            return msgspec.json.encode({"error": error})
        case _:
            return msgspec.json.encode(status.body)


def _envelope(kind: str, model: str) -> dict[str, object]:
    return {"id": "chatcmpl-fake", "object": kind, "created": 1_700_000_000, "model": model}


def _chunk(fields: dict[str, object], finish: str | None, model: str) -> bytes:
    chunk = _envelope("chat.completion.chunk", model)
    chunk["choices"] = [{"index": 0, "delta": fields, "finish_reason": finish}]
    return sse(chunk)


def _usage_fields(usage: Usage) -> dict[str, object]:
    prompt, completion = usage
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }


def _deltas(reply: Text | Calls) -> Iterator[bytes]:
    yield _chunk({"role": "assistant", "content": ""}, None, reply.model)
    size = reply.chunk if isinstance(reply, Text) and reply.chunk else max(len(reply.text), 1)
    for start in range(0, len(reply.text), size):
        yield delta(reply.text[start : start + size], model=reply.model)
    if isinstance(reply, Calls):
        for index, call in enumerate(reply.calls):
            yield from _call_deltas(index, call, reply.model)


def _call_deltas(index: int, call: CallParts, model: str) -> Iterator[bytes]:
    call_id, name, arguments = call
    head: dict[str, object] = {
        "index": index,
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": ""},
    }
    yield delta(tool_calls=[head], model=model)
    size = max((len(arguments) + 1) // 2, 1)
    for start in range(0, len(arguments), size):
        piece: dict[str, object] = {
            "index": index,
            "function": {"arguments": arguments[start : start + size]},
        }
        yield delta(tool_calls=[piece], model=model)
