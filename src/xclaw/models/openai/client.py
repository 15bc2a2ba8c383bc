"""One model behind a chat-completions endpoint.

Above: models/fallback, which retries. Below: HTTP. The hot path: each network read is framed, parsed and
handed to the sink at once, and every stream is read to its end, so that its connection serves again.
"""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import aiohttp
from yarl import URL

from xclaw.contracts.errors import ModelError, ModelRejected, UsageError
from xclaw.contracts.models import ModelProfile, ModelReply, ModelRequest, ReplySink
from xclaw.contracts.usage import Usage
from xclaw.models.estimates import estimated_usage
from xclaw.models.failures import FailureReader
from xclaw.models.openai.body import RequestBody
from xclaw.models.openai.connections import Connections
from xclaw.models.openai.reply import ReplyAssembler
from xclaw.models.openai.request import RequestEncoder, WireHabits
from xclaw.models.openai.sse import EventDecoder
from xclaw.models.pictures import is_about_pictures
from xclaw.models.prices import Pricing

PATH = "/chat/completions"
_MAX_ERROR_BYTES = 64 * 1024
_MAX_BODY_BYTES = 32 * 1024 * 1024
_SLICE_BYTES = 16 * 1024
_DRAIN_S = 0.5
_USAGE_GRACE_S = 5.0
_ADAPTATIONS = 5
_DEFAULT_PROFILE = ModelProfile()


def _no_price(_usage: Usage) -> float | None:
    return None


def _no_headers() -> dict[str, str]:
    return {}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is and how long it may take. The key and headers do not show in its repr."""

    base_url: str
    api_key: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=_no_headers, repr=False)
    first_byte_timeout_s: float = 120.0
    idle_timeout_s: float = 60.0
    call_timeout_s: float = 1800.0
    max_retry_wait_s: float = 60.0

    def url(self) -> URL:
        """Of the completions. Raises `UsageError`."""
        try:
            url = URL(self.base_url.strip())
        except ValueError:
            url = URL()
        if url.scheme not in ("http", "https") or not url.host:
            raise UsageError(f"`base_url` must be like https://host/v1, not {self._shown_url()!r}")
        path = url.path.rstrip("/")
        return url.with_path(path if path.endswith(PATH) else path + PATH).with_query(url.query)

    def secrets(self) -> list[str]:
        """What no error may show."""
        values = [self.api_key or "", *self.headers.values()]
        values += [value.split(" ", 1)[1] for value in values if value.startswith(("Bearer ", "Basic "))]
        url = self.url()
        return [*values, url.password or "", *url.query.values()]

    def _shown_url(self) -> str:
        return self.base_url.rpartition("@")[2][:200]


class OpenAIModel:
    """A `Model` over the chat-completions wire; what it learns of the endpoint it keeps for later calls.

    `reply` raises `ModelError` and nothing else, whatever the server sends. Cancelling it closes the
    connection, so that the server stops.
    """

    def __init__(
        self,
        name: str,
        endpoint: Endpoint,
        connections: Connections,
        *,
        profile: ModelProfile = _DEFAULT_PROFILE,
        habits: WireHabits | None = None,
        price: Pricing = _no_price,
    ) -> None:
        self._name = name
        self._endpoint = endpoint
        self._connections = connections
        self._profile = profile
        self._habits = habits or WireHabits()
        self._price = price
        self._url = endpoint.url()
        self._headers = _request_headers(endpoint)
        self._encoder = RequestEncoder(name.partition(":")[2], sees=profile.images)
        self._failures = FailureReader(name, endpoint.secrets(), endpoint.max_retry_wait_s)

    @property
    def name(self) -> str:
        return self._name

    @property
    def profile(self) -> ModelProfile:
        return self._profile

    def __repr__(self) -> str:
        return f"OpenAIModel({self._name!r})"

    async def reply(self, request: ModelRequest, sink: ReplySink) -> ModelReply:
        exchange = _Exchange(self._endpoint, self._failures, sink)
        try:
            await self._send(request, exchange)
            message, finish = exchange.answer.message()
        except ModelError as error:
            error.partial = exchange.answer.handed_on
            if exchange.answer.begun or exchange.answer.usage:
                error.usage = self._usage(request, exchange)
            raise
        usage = self._usage(request, exchange)
        return ModelReply(message, usage, self._name, finish, self._price(usage), exchange.first_token_s)

    def _usage(self, request: ModelRequest, exchange: "_Exchange") -> Usage:
        answer = exchange.answer
        usage = answer.usage
        if usage is not None and usage.input_tokens and usage.output_tokens:
            return usage
        return estimated_usage(request, answer.generated, usage)

    async def _send(self, request: ModelRequest, exchange: "_Exchange") -> None:
        """Post until the endpoint takes the request's optional fields."""
        session = self._connections.session()
        for tries_left in reversed(range(_ADAPTATIONS)):
            content, sent = self._encoder.body(request, self._habits)
            body = RequestBody(content)
            del content  # held by the body alone, until it is sent
            refusal = await exchange.run(session, self._url, body, self._headers)
            if refusal is None:
                return
            if "pictures" in sent and is_about_pictures(refusal.complaint):
                request = replace(request, images={})
                continue
            if not tries_left or not self._habits.learn(sent, refusal.complaint):
                raise refusal.error


@dataclass(frozen=True, slots=True)
class _Refusal:
    error: ModelError
    complaint: str
    """What the server said, where it is a 400 that another body may avoid."""


class _Exchange:
    """One request and its answer as it comes in."""

    def __init__(self, endpoint: Endpoint, failures: FailureReader, sink: ReplySink) -> None:
        self._endpoint = endpoint
        self._failures = failures
        self._sink = sink
        self._loop = asyncio.get_running_loop()
        self._sent_at = 0.0
        self._responding = False
        self.answer = ReplyAssembler(failures)
        self.first_token_s: float | None = None

    async def run(
        self, session: aiohttp.ClientSession, url: URL, body: RequestBody, headers: Mapping[str, str]
    ) -> _Refusal | None:
        """Send and read to the end. Raises `ModelError`; answers a refusal that may be worth adapting to."""
        self._sent_at = self._loop.time()
        try:
            async with (
                asyncio.timeout(self._endpoint.first_byte_timeout_s) as watchdog,
                session.post(url, data=body, headers=headers, allow_redirects=False) as response,
            ):
                try:
                    if response.status != 200:
                        return await self._refusal(response)
                    self._responding = True
                    await self._read(response, watchdog)
                except BaseException:
                    response.close()
                    raise
        except TimeoutError:
            self._timed_out()
        except (aiohttp.ClientError, OSError, ValueError) as error:
            self._broke(error)
        return None

    async def _refusal(self, response: aiohttp.ClientResponse) -> _Refusal:
        body = await _read_at_most(response, _MAX_ERROR_BYTES)
        error = self._failures.from_response(response.status, response.headers, body, time.time())
        adaptable = response.status in (400, 422) and isinstance(error, ModelRejected)
        return _Refusal(error, body.decode("utf-8", "replace") if adaptable else "")

    async def _read(self, response: aiohttp.ClientResponse, watchdog: asyncio.Timeout) -> None:
        content = response.content
        start = await self._first_bytes(content, watchdog)
        if start.startswith((b"{", b"[")):
            await self._read_json(content, start, watchdog)
        elif start.startswith(b"<"):
            raise self._failures.unavailable(
                "answered with a web page, not with a completion; see `base_url`"
            )
        else:
            await self._read_events(content, start, watchdog)

    async def _first_bytes(self, content: aiohttp.StreamReader, watchdog: asyncio.Timeout) -> bytes:
        """Up to the first byte that shows what kind of body this is; "" for an empty one."""
        start = b""
        while not start and (data := await content.readany()):
            if not content.at_eof():
                watchdog.reschedule(self._next_deadline())
            start = data.lstrip(b" \t\r\n\xef\xbb\xbf") if data[:1] in b" \t\r\n\xef" else data
        return start

    async def _read_events(
        self, content: aiohttp.StreamReader, data: bytes, watchdog: asyncio.Timeout
    ) -> None:
        answer, decoder = self.answer, EventDecoder()
        while data:
            for at in range(
                0, len(data), _SLICE_BYTES
            ):  # the first words of a burst need not wait for its last
                try:
                    for event in decoder.feed(data[at : at + _SLICE_BYTES]):
                        answer.add(event)
                finally:
                    self._hand_on()  # what came before an error was said, and will be taken back
            if answer.done:
                await _drain(content)
                return
            watchdog.reschedule(self._next_deadline())
            data = await content.readany()
        for event in decoder.close():
            answer.add(event, last=True)
        self._hand_on()
        if not (answer.finished or answer.done or answer.begun):
            raise self._failures.interrupted("the stream ended before it began")

    async def _read_json(
        self, content: aiohttp.StreamReader, start: bytes, watchdog: asyncio.Timeout
    ) -> None:
        parts, size = [start], len(start)
        while data := await content.readany():
            watchdog.reschedule(self._next_deadline())
            parts.append(data)
            size += len(data)
            if size > _MAX_BODY_BYTES:
                raise self._failures.interrupted(f"the answer is longer than {_MAX_BODY_BYTES} bytes")
        self.answer.add_body(b"".join(parts))
        self._hand_on()

    def _hand_on(self) -> None:
        text = self.answer.take_text()
        if self.first_token_s is None and self.answer.begun:
            self.first_token_s = self._loop.time() - self._sent_at
        if text:
            self._sink.on_text(text)

    def _next_deadline(self) -> float:
        idle_s = self._endpoint.idle_timeout_s
        if self.answer.finished:  # only the usage may still follow
            idle_s = min(idle_s, _USAGE_GRACE_S)
        return min(self._loop.time() + idle_s, self._sent_at + self._endpoint.call_timeout_s)

    def _timed_out(self) -> None:
        if self.answer.finished:
            return
        if not self._responding:
            raise self._failures.unavailable(f"no answer within {self._endpoint.first_byte_timeout_s:g} s")
        raise self._failures.interrupted(
            f"silent for {self._endpoint.idle_timeout_s:g} s, or not done after "
            f"{self._endpoint.call_timeout_s:g} s"
        )

    def _broke(self, error: Exception) -> None:
        if self.answer.finished:
            return
        text = f"{type(error).__name__}: {error}"
        if self._responding:
            raise self._failures.interrupted(f"the connection broke: {text}") from error
        if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.InvalidURL | ValueError):
            raise ModelRejected(self._failures.text(text)) from error
        raise self._failures.unavailable(f"cannot reach {self._endpoint.url().host}: {text}") from error


async def _drain(content: aiohttp.StreamReader) -> None:
    """Read what follows `[DONE]`, normally just the HTTP end, so that the connection can be reused."""
    if content.at_eof():
        return
    try:
        async with asyncio.timeout(_DRAIN_S):
            for _ in range(16):
                if not await content.readany():
                    return
    except (TimeoutError, aiohttp.ClientError, OSError):
        return  # the answer is complete; leaving the response unread closes the connection


async def _read_at_most(response: aiohttp.ClientResponse, limit: int) -> bytes:
    body = bytearray()
    try:
        while len(body) < limit and (data := await response.content.readany()):
            body += data
    except (aiohttp.ClientError, OSError):
        pass  # the status says enough
    return bytes(body[:limit])


def _request_headers(endpoint: Endpoint) -> dict[str, str]:
    headers = {
        "Content-Type": "application/json",
        "Accept": "text/event-stream, application/json",
        "Accept-Encoding": "identity",
        "User-Agent": "xclaw",
    }
    if endpoint.api_key:
        headers["Authorization"] = f"Bearer {endpoint.api_key.strip()}"
    given = {name.lower() for name in endpoint.headers}
    return {name: v for name, v in headers.items() if name.lower() not in given} | dict(endpoint.headers)
