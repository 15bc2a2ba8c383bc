"""The model suite passes a right model and catches each wrong one."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal

import aiohttp
import msgspec
import pytest

from xclaw.contracts.errors import (
    ContextTooLong,
    ModelError,
    ModelInterrupted,
    ModelRejected,
    ModelUnavailable,
)
from xclaw.contracts.messages import AssistantMessage, ChatMessage, ToolCall, ToolMessage, UserMessage
from xclaw.contracts.models import Finish, Model, ModelProfile, ModelReply, ModelRequest, ReplySink
from xclaw.contracts.usage import Usage
from xclaw.testing import FakeProvider, model_conformance
from xclaw.testing.model_conformance import (
    MODEL_CHECKS,
    ModelCheck,
    ModelFactory,
    check_a_truncated_stream_is_no_answer,
    check_an_error_inside_a_stream_is_an_error,
    check_cancelling_closes_the_connection,
    check_concurrent_replies_do_not_mix,
    check_errors_say_what_to_do_next,
    check_name,
    check_text_is_streamed,
    check_the_conversation_is_sent,
    check_tool_calls_keep_their_order,
    check_usage_is_reported_or_estimated,
)

Flaw = Literal[
    "",
    "believes truncated streams",
    "streams at the end",
    "goes on when cancelled",
    "swaps calls",
    "one error class",
    "shares its state",
    "forgets tool results",
    "estimates nothing",
    "ignores errors in the stream",
]


class _Function(msgspec.Struct):
    name: str = ""
    arguments: str = ""


class _Call(msgspec.Struct):
    index: int
    function: _Function


class _Delta(msgspec.Struct):
    content: str | None = None
    tool_calls: list[_Call] = msgspec.field(default_factory=list[_Call])


class _Choice(msgspec.Struct):
    delta: _Delta
    finish_reason: Finish | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int
    completion_tokens: int


class _Chunk(msgspec.Struct):
    choices: list[_Choice] = msgspec.field(default_factory=list[_Choice])
    usage: _Usage | None = None
    error: dict[str, object] | None = None


@dataclass
class _Answer:
    text: str = ""
    calls: dict[int, ToolCall] = field(default_factory=dict[int, ToolCall])
    finish: Finish | None = None
    usage: Usage | None = None


class ReferenceModel:
    """The smallest model that passes, with flaws that each break it in one way."""

    def __init__(self, url: str, http: aiohttp.ClientSession, flaw: Flaw = "") -> None:
        self._url = f"{url}/chat/completions"
        self._http = http
        self._flaw: Flaw = flaw
        self._shared = _Answer()
        self._background: set[asyncio.Task[ModelReply]] = set()

    @property
    def name(self) -> str:
        return "reference:model"

    @property
    def profile(self) -> ModelProfile:
        return ModelProfile()

    async def reply(self, request: ModelRequest, sink: ReplySink) -> ModelReply:
        answer = self._shared if self._flaw == "shares its state" else _Answer()
        if self._flaw == "goes on when cancelled":
            task = asyncio.create_task(self._reply(request, sink, answer))
            self._background.add(task)
            task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
            return await asyncio.shield(task)
        return await self._reply(request, sink, answer)

    async def _reply(self, request: ModelRequest, sink: ReplySink, answer: _Answer) -> ModelReply:
        try:
            async with self._http.post(self._url, json=self._body(request)) as response:
                if response.status != 200:
                    raise self._http_error(response.status, await response.text(), response.headers)
                async for line in response.content:
                    if line.startswith(b"data: {") and line.endswith(b"\n"):
                        self._take(msgspec.json.decode(line[6:], type=_Chunk), answer, sink)
        except aiohttp.ClientPayloadError as error:
            raise ModelInterrupted(str(error), partial=answer.text) from error
        except aiohttp.ClientError as error:
            kind = ModelInterrupted if answer.text else ModelUnavailable
            raise kind(str(error), partial=answer.text) from error
        return self._finished(answer, sink)

    def _take(self, chunk: _Chunk, answer: _Answer, sink: ReplySink) -> None:
        if chunk.error is not None and self._flaw != "ignores errors in the stream":
            raise ModelUnavailable(str(chunk.error), partial=answer.text)
        if chunk.usage is not None:
            answer.usage = Usage(chunk.usage.prompt_tokens, chunk.usage.completion_tokens)
        for choice in chunk.choices:
            answer.finish = choice.finish_reason or answer.finish
            if choice.delta.content:
                answer.text += choice.delta.content
                if self._flaw != "streams at the end":
                    sink.on_text(choice.delta.content)
            for call in choice.delta.tool_calls:
                old = answer.calls.get(call.index, ToolCall("", call.function.name, ""))
                answer.calls[call.index] = ToolCall("", old.name, old.arguments + call.function.arguments)

    def _finished(self, answer: _Answer, sink: ReplySink) -> ModelReply:
        believes = self._flaw in ("believes truncated streams", "ignores errors in the stream")
        if answer.finish is None and not believes:
            raise ModelInterrupted("no finish reason", partial=answer.text)
        if self._flaw == "streams at the end":
            sink.on_text(answer.text)
        calls = [answer.calls[index] for index in sorted(answer.calls)]
        if self._flaw == "swaps calls":
            calls.reverse()
        guess = Usage() if self._flaw == "estimates nothing" else Usage(1, 1, estimated=True)
        message = AssistantMessage(answer.text, tuple(calls))
        return ModelReply(message, answer.usage or guess, self.name, answer.finish or "stop")

    def _http_error(self, status: int, text: str, headers: Mapping[str, str]) -> ModelError:
        if self._flaw != "one error class":
            if "context_length_exceeded" in text:
                return ContextTooLong(text, status=status)
            if status in (400, 401, 403, 404):
                return ModelRejected(text, status=status)
        wait = headers.get("Retry-After")
        return ModelUnavailable(text, status=status, retry_after_s=float(wait) if wait else None)

    def _body(self, request: ModelRequest) -> dict[str, object]:
        messages = [_wire(message) for message in request.messages]
        if self._flaw == "forgets tool results":
            messages = [message for message in messages if message["role"] != "tool"]
        return {
            "model": "m",
            "stream": True,
            "stream_options": {"include_usage": True},
            "messages": [{"role": "system", "content": request.instructions}, *messages],
            "tools": [{"type": "function", "function": {"name": tool.name}} for tool in request.tools],
        }


def _wire(message: ChatMessage) -> dict[str, object]:
    match message:
        case UserMessage():
            return {"role": "user", "content": message.text}
        case AssistantMessage():
            return {"role": "assistant", "content": message.text}
        case ToolMessage():
            return {"role": "tool", "tool_call_id": message.call_id, "content": message.content}


def _factory(flaw: Flaw) -> ModelFactory:
    @asynccontextmanager
    async def open_model(url: str) -> AsyncGenerator[Model]:
        async with aiohttp.ClientSession() as http:
            yield ReferenceModel(url, http, flaw)

    return open_model


def _run(check: ModelCheck, flaw: Flaw) -> None:
    async def main() -> None:
        async with FakeProvider() as provider:
            await check(_factory(flaw), provider)

    asyncio.run(main())


@pytest.mark.parametrize("check", MODEL_CHECKS, ids=check_name)
def test_a_right_model_passes(check: ModelCheck) -> None:
    _run(check, "")


@pytest.mark.parametrize(
    ("flaw", "check"),
    [
        ("believes truncated streams", check_a_truncated_stream_is_no_answer),
        ("goes on when cancelled", check_cancelling_closes_the_connection),
        ("swaps calls", check_tool_calls_keep_their_order),
        ("one error class", check_errors_say_what_to_do_next),
        ("shares its state", check_concurrent_replies_do_not_mix),
        ("forgets tool results", check_the_conversation_is_sent),
        ("estimates nothing", check_usage_is_reported_or_estimated),
        ("ignores errors in the stream", check_an_error_inside_a_stream_is_an_error),
    ],
)
def test_a_wrong_model_is_caught(flaw: Flaw, check: ModelCheck) -> None:
    with pytest.raises((AssertionError, ExceptionGroup)):
        _run(check, flaw)


def test_a_model_that_streams_only_at_the_end_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_conformance, "WAIT_S", 0.3)
    with pytest.raises(TimeoutError):
        _run(check_text_is_streamed, "streams at the end")
