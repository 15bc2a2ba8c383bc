"""Other wires (Anthropic, Google, Bedrock, ...) through `pydantic-ai-slim`, the extra `xclaw[providers]`.

Loaded on first use: it costs more than a second. Only its models are used, not its agents; their own
retries are off, since a chain retries.
"""

import asyncio
import importlib
import inspect
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Protocol

from xclaw.contracts.errors import ContextTooLong, ModelError, ModelRejected, UsageError, XclawError
from xclaw.contracts.messages import AssistantMessage, ImageRef, ToolCall
from xclaw.contracts.models import Finish, ModelProfile, ModelReply, ModelRequest, ReplySink
from xclaw.contracts.usage import Usage
from xclaw.models.estimates import estimated_usage
from xclaw.models.failures import EmptyReply, FailureReader
from xclaw.models.openai.request import NO_PICTURES, sent_arguments, wire_name
from xclaw.models.openai.surrogates import sendable
from xclaw.models.pictures import is_about_pictures, pictures_of, shown_after_tools, unseen_note
from xclaw.models.prices import Pricing
from xclaw.models.settings import ModelsSettings, ProviderSettings

_FINISHES: Mapping[str, Finish] = {"length": "length", "content_filter": "content_filter"}


@dataclass(frozen=True, slots=True)
class Wire:
    """One provider of that library, as data."""

    key_name: str
    """"" for one that has another way to log in."""
    price_list: str | None
    library_name: str


WIRES = {
    "anthropic": Wire("ANTHROPIC_API_KEY", "anthropic", "anthropic"),
    "google": Wire("GOOGLE_API_KEY", "google", "google"),
    "gemini": Wire("GOOGLE_API_KEY", "google", "google"),
    "bedrock": Wire("", "aws", "bedrock"),
    "cohere": Wire("CO_API_KEY", "cohere", "cohere"),
    "huggingface": Wire("HF_TOKEN", None, "huggingface"),
    "openai-responses": Wire("OPENAI_API_KEY", "openai", "openai-responses"),
    "openai-chat": Wire("OPENAI_API_KEY", "openai", "openai-chat"),
}


class _Part(Protocol):
    part_kind: str
    content: str
    tool_name: str
    tool_call_id: str
    args: object

    def args_as_json_str(self) -> str: ...


class _Delta(Protocol):
    part_delta_kind: str
    content_delta: str | None


class _StreamEvent(Protocol):
    event_kind: str
    part: _Part
    delta: _Delta


class _Counts(Protocol):
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int


class _Response(Protocol):
    parts: list[_Part]
    finish_reason: str | None
    provider_details: dict[str, object] | None
    usage: _Counts


class _Stream(Protocol):
    def __aiter__(self) -> AsyncIterator[_StreamEvent]: ...

    def get(self) -> _Response: ...


_OpenStream = Callable[..., AbstractAsyncContextManager[_Stream]]


class PydanticAIModel:
    """A `Model` over one of that library's. Its structured output is not used.

    `reply` raises `ModelError`; cancelling it closes the connection.
    """

    def __init__(self, name: str, settings: ModelsSettings, *, profile: ModelProfile, price: Pricing) -> None:
        """Raises `UsageError` when the extra is not installed, or the key is missing."""
        provider, _, model = name.partition(":")
        self._name = name
        self._profile = profile
        self._price = price
        self._settings = settings
        endpoint = settings.providers.get(provider, ProviderSettings())
        self._library, self._library_model = _load(WIRES[provider], model, endpoint, name)
        secrets = [endpoint.api_key or "", *endpoint.headers.values()]
        self._failures = FailureReader(name, secrets, settings.max_retry_wait_s)

    @property
    def name(self) -> str:
        return self._name

    @property
    def profile(self) -> ModelProfile:
        return self._profile

    async def close(self) -> None:
        """Close the vendor's client. The model must not be used afterwards."""
        await self._library.close()

    async def reply(self, request: ModelRequest, sink: ReplySink) -> ModelReply:
        answer = _Answer(sink, asyncio.get_running_loop().time)
        try:
            await self._streamed(request, answer)
            message, finish = self._message(answer)
        except XclawError as error:
            if isinstance(error, ModelError):
                error.partial = answer.text
                error.usage = answer.usage(request) if answer.text or answer.response else None
            raise
        usage = answer.usage(request)
        return ModelReply(message, usage, self._name, finish, self._price(usage), answer.first_token_s)

    async def _streamed(self, request: ModelRequest, answer: "_Answer") -> None:
        try:
            await self._stream(request, answer)
        except ModelRejected as refused:
            if not (request.images and self._profile.images and is_about_pictures(str(refused))):
                raise
            await self._stream(replace(request, images={}), answer)

    async def _stream(self, request: ModelRequest, answer: "_Answer") -> None:
        try:
            async with (
                asyncio.timeout(self._settings.first_byte_timeout_s) as watchdog,
                self._library.open(
                    self._library_model,
                    self._library.messages(request, sees=self._profile.images),
                    model_settings=_model_settings(request),
                    model_request_parameters=self._library.parameters(request),
                ) as stream,
            ):
                async for event in stream:
                    watchdog.reschedule(asyncio.get_running_loop().time() + self._settings.idle_timeout_s)
                    answer.add(event)
                answer.response = stream.get()
        except XclawError:
            raise
        except TimeoutError as error:
            raise self._silent(answer) from error
        except Exception as error:
            raise self._failure(error, answer) from error

    def _message(self, answer: "_Answer") -> tuple[AssistantMessage, Finish]:
        response = answer.response
        # The library calls a stream that just ended "stop"; only the details tell what was really said.
        if response is None or not (response.provider_details or {}).get("finish_reason"):
            raise self._failures.interrupted("the stream ended before the answer did (no finish reason)")
        if response.finish_reason == "error":
            raise self._failures.interrupted("the answer broke off (finish reason 'error')")
        reasoning = "".join(part.content for part in response.parts if part.part_kind == "thinking")
        calls = tuple(
            ToolCall(part.tool_call_id, part.tool_name, _arguments_of(part))
            for part in response.parts
            if part.part_kind == "tool-call"
        )
        finish = _FINISHES.get(response.finish_reason or "", "tool_calls" if calls else "stop")
        if not calls and not answer.text.strip():
            if finish == "content_filter":
                raise ModelRejected(self._failures.text("the provider's content filter kept the answer back"))
            raise EmptyReply(self._failures.text("empty response"))
        return AssistantMessage(answer.text, calls, reasoning), finish

    def _silent(self, answer: "_Answer") -> ModelError:
        if answer.first_token_s is None:
            return self._failures.unavailable(f"no answer within {self._settings.first_byte_timeout_s:g} s")
        return self._failures.interrupted(f"silent for {self._settings.idle_timeout_s:g} s")

    def _failure(self, error: Exception, answer: "_Answer") -> ModelError:
        """The library's exceptions are known by their shape, so that it need not be imported here."""
        kinds = {kind.__name__ for kind in type(error).__mro__}
        status: object = getattr(error, "status_code", None)
        wait_s: object = getattr(error, "retry_after", None)
        text = f"{type(error).__name__}: {error}"
        if "ModelContextWindowExceededError" in kinds:
            return ContextTooLong(
                self._failures.text(text), status=status if isinstance(status, int) else None
            )
        if isinstance(status, int):
            return self._failures.from_status(
                status, text, wait_s if isinstance(wait_s, int | float) else None
            )
        if kinds & {"UserError", "ModelRequestRejectedError", "ModelQuotaExceededError"}:
            return ModelRejected(self._failures.text(text))
        if answer.text or "UnexpectedModelBehavior" in kinds:
            return self._failures.interrupted(text)
        return self._failures.unavailable(text)


class _Answer:
    """What has come of a streamed answer."""

    def __init__(self, sink: ReplySink, clock: Callable[[], float]) -> None:
        self._sink = sink
        self._clock = clock
        self._sent_at = clock()
        self._text: list[str] = []
        self.first_token_s: float | None = None
        self.response: _Response | None = None

    @property
    def text(self) -> str:
        return "".join(self._text)

    def add(self, event: _StreamEvent) -> None:
        text: str | None = None
        if event.event_kind == "part_start" and event.part.part_kind == "text":
            text = event.part.content
        elif event.event_kind == "part_delta" and event.delta.part_delta_kind == "text":
            text = event.delta.content_delta
        if self.first_token_s is None:
            self.first_token_s = self._clock() - self._sent_at
        if text:
            self._text.append(text)
            self._sink.on_text(text)

    def usage(self, request: ModelRequest) -> Usage:
        counts = self.response.usage if self.response is not None else None
        reported = None
        if counts is not None:
            cached = min(counts.cache_read_tokens, counts.input_tokens)
            reported = Usage(counts.input_tokens, counts.output_tokens, cached)
        return estimated_usage(request, self.text, reported)


def _load(wire: Wire, model: str, endpoint: ProviderSettings, name: str) -> "tuple[_Library, object]":
    try:
        library = _Library()
        return library, library.model(wire, model, endpoint)
    except ImportError as error:
        raise UsageError(f"model {name!r} needs more packages: pip install 'xclaw[providers]'") from error
    except (ValueError, TypeError, RuntimeError) as error:
        why = FailureReader(name, [endpoint.api_key or ""]).text(str(error))
        raise UsageError(f"{why}; see [models.providers.{name.partition(':')[0]}]") from error


class _Library:
    """The parts of pydantic-ai that are used. Imported by name: it is not there in a plain install."""

    def __init__(self) -> None:
        """Raises `ImportError`."""
        self._models = importlib.import_module("pydantic_ai.models")
        self._providers = importlib.import_module("pydantic_ai.providers")
        self._messages = importlib.import_module("pydantic_ai.messages")
        self._tools = importlib.import_module("pydantic_ai.tools")
        self._client: object = None
        self.open: _OpenStream = importlib.import_module("pydantic_ai.direct").model_request_stream

    def model(self, wire: Wire, model: str, endpoint: ProviderSettings) -> object:
        given = {"api_key": endpoint.api_key, "base_url": endpoint.base_url}
        arguments = {name: value for name, value in given.items() if value}

        def provider(library_name: str) -> object:
            kind: Callable[..., object] = self._providers.infer_provider_class(library_name)
            made = kind(**arguments)
            self._client = getattr(made, "client", None)
            if hasattr(self._client, "max_retries"):
                setattr(self._client, "max_retries", 0)  # noqa: B010 - whatever the vendor's client is
            return made

        infer: Callable[..., object] = self._models.infer_model
        return infer(f"{wire.library_name}:{model}", provider)

    async def close(self) -> None:
        close: Callable[[], object] | None = getattr(self._client, "close", None)
        if inspect.iscoroutinefunction(close):
            await close()

    def messages(self, request: ModelRequest, *, sees: bool) -> list[object]:
        """The conversation in the library's words; what follows one another on one side is one message."""
        pictures = request.images if sees else NO_PICTURES
        shown: list[ImageRef] = []
        part, messages = self._messages, list[object]()
        asked: list[object] = []
        instructions = sendable(request.instructions) or None
        for message in request.messages:
            if message.kind == "user":
                asked += self._pictures(shown, pictures)
                shown = []
                text = sendable(message.text + unseen_note(message.images, pictures))
                said = [text, *self._contents(message.images, pictures)]
                asked.append(part.UserPromptPart(said if len(said) > 1 else text))
            elif message.kind == "tool":
                content = sendable(message.content + unseen_note(message.images, pictures))
                asked.append(part.ToolReturnPart(wire_name(message.name), content, message.call_id))
                shown += [image for image in message.images if image.sha256 in pictures]
            else:
                asked += self._pictures(shown, pictures)
                shown = []
                if asked:
                    messages.append(part.ModelRequest(asked, instructions=instructions))
                    asked = []
                messages.append(part.ModelResponse(self._answered(message)))
        asked += self._pictures(shown, pictures)
        if asked or not messages:
            messages.append(part.ModelRequest(asked, instructions=instructions))
        return messages

    def _pictures(self, images: list[ImageRef], pictures: Mapping[str, bytes]) -> list[object]:
        """Those of tools, which follow the answers of all of them."""
        if not images:
            return []
        said = [sendable(shown_after_tools(images)), *self._contents(images, pictures)]
        return [self._messages.UserPromptPart(said)]

    def _contents(self, images: Sequence[ImageRef], pictures: Mapping[str, bytes]) -> list[object]:
        content = self._messages.BinaryContent
        return [content(one.content, media_type=one.media_type) for one in pictures_of(images, pictures)]

    def _answered(self, message: AssistantMessage) -> list[object]:
        part, parts = self._messages, list[object]()
        if message.text:
            parts.append(part.TextPart(sendable(message.text)))
        for call in message.tool_calls:
            arguments = sent_arguments(call.arguments)
            parts.append(part.ToolCallPart(wire_name(call.name), arguments, call.id))
        return parts

    def parameters(self, request: ModelRequest) -> object:
        tools = [
            self._tools.ToolDefinition(
                name=wire_name(tool.name),
                description=sendable(tool.description),
                parameters_json_schema=tool.parameters,
            )
            for tool in request.tools
        ]
        return self._models.ModelRequestParameters(function_tools=tools)


def _arguments_of(part: _Part) -> str:
    """As the model wrote them, where the library kept that."""
    return part.args if isinstance(part.args, str) else part.args_as_json_str()


def _model_settings(request: ModelRequest) -> dict[str, object]:
    given = {"max_tokens": request.max_output_tokens, "temperature": request.temperature}
    return {name: value for name, value in given.items() if value is not None}
