"""What a provider's refusal means: HTTP answers and error objects to the classes of contracts/errors."""

import math
import re
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import cast

import msgspec

from xclaw.contracts.errors import (
    ContextTooLong,
    ModelError,
    ModelInterrupted,
    ModelRejected,
    ModelUnavailable,
)

MAX_ERROR_CHARACTERS = 2_000
_MAX_HEADER_CHARACTERS = 100
_MAX_NUMBER_CHARACTERS = 20
_PASSING_STATUS = frozenset({408, 425, 429, 498})
_TOO_LONG = re.compile(
    r"context[_ ]?(length|window|size)|maximum context|exceed\w* (the |your |model )*(available )?context"
    r"|prompt (is )?too (long|large)|input (is )?too (long|large)|maximum prompt length"
    r"|reduce (the length of|your) (the )?(messages?|prompt|input)|exceeded model token limit"
    r"|input token count .{0,80}exceeds|range of input length|too many (input )?tokens"
    r"|string_above_max_length|request_too_large|tokens in (the )?request more than",
    re.IGNORECASE,
)
_STATUS_OF_KIND = {
    "authentication_error": 401,
    "context_length_exceeded": 400,
    "internal_error": 500,
    "internal_server_error": 500,
    "invalid_api_key": 401,
    "invalid_request_error": 400,
    "model_not_found": 404,
    "not_found_error": 404,
    "overloaded": 529,
    "overloaded_error": 529,
    "permission_error": 403,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "server_error": 500,
    "service_unavailable": 503,
}


class EmptyReply(ModelInterrupted):
    """The model said nothing. Worth another try; no sign that its endpoint is down."""


class FailureReader:
    """Turns one endpoint's errors into `ModelError`s whose text never shows its secrets."""

    __slots__ = ("_max_wait_s", "_secrets", "label")

    def __init__(self, label: str, secrets: Sequence[str] = (), max_wait_s: float = 60.0) -> None:
        self.label = label
        """`provider:model`, in front of every text."""
        self._secrets = tuple(sorted((s for s in secrets if len(s) > 3), key=len, reverse=True))
        self._max_wait_s = max_wait_s

    def text(self, text: str) -> str:
        """Redacted, without control characters, bounded."""
        for secret in self._secrets:
            text = text.replace(secret, "[redacted]")
        text = "".join(c if c.isprintable() else " " for c in text[: MAX_ERROR_CHARACTERS + 1])
        if len(text) > MAX_ERROR_CHARACTERS:
            text = text[:MAX_ERROR_CHARACTERS] + "..."
        return f"{self.label}: {text.strip()}"

    def from_response(self, status: int, headers: Mapping[str, str], body: bytes, now: float) -> ModelError:
        """The error that an HTTP answer other than 200 is. `now` is Unix time."""
        message, _ = message_of(_decoded(body)) or (_plain(body), None)
        if 300 <= status < 400:
            target = headers.get("Location", "elsewhere")[:200]
            message = f"redirects to {target}, which is not followed with a key; set its `base_url`"
        wait_s = retry_after_s(headers, now)
        return self._classified(status, f"HTTP {status}: {message or 'no message'}", message, wait_s)

    def from_object(self, payload: object) -> ModelError:
        """The error inside an answer that began as 200."""
        message, status = message_of(payload) or ("the provider reported an error", None)
        text = f"error {status}: {message}" if status else f"error: {message}"
        return self._classified(status, f"{text} (inside the answer)", message, None)

    def from_status(self, status: int, message: str, wait_s: float | None) -> ModelError:
        """The error that a library reports with a status; `wait_s` as the provider asked for it."""
        return self._classified(status, f"HTTP {status}: {message}", message, wait_s)

    def interrupted(self, text: str) -> ModelInterrupted:
        return ModelInterrupted(self.text(text))

    def unavailable(self, text: str) -> ModelUnavailable:
        return ModelUnavailable(self.text(text))

    def _classified(self, status: int | None, text: str, message: str, wait_s: float | None) -> ModelError:
        text = self.text(text)
        if is_context_too_long(status, message):
            return ContextTooLong(text, status=status)
        if status is None or status >= 500 or status in _PASSING_STATUS or status < 300:
            wait_s = None if wait_s is None else min(wait_s, self._max_wait_s)
            return ModelUnavailable(text, status=status, retry_after_s=wait_s)
        return ModelRejected(text, status=status)


def is_context_too_long(status: int | None, message: str) -> bool:
    """Whether a refusal means that the request must shrink."""
    if status == 413:
        return True
    return status in (None, 400, 422, 500) and _TOO_LONG.search(message[:MAX_ERROR_CHARACTERS]) is not None


def retry_after_s(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that a provider asks to wait; None when it does not say, or nothing understandable."""
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return max(0.0, milliseconds / 1000)
    value = headers.get("Retry-After", "").strip()[:_MAX_HEADER_CHARACTERS]
    seconds = _number(value)
    if seconds is not None:
        return max(0.0, seconds)
    moment = _moment(value)
    if moment is None:
        return None
    # The provider's own clock, where it shows it: ours may be wrong.
    return max(0.0, moment - (_moment(headers.get("Date", "")) or now))


def _number(value: str) -> float | None:
    try:
        number = float(value) if len(value) <= _MAX_NUMBER_CHARACTERS else math.inf
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _moment(value: str) -> float | None:
    try:
        return parsedate_to_datetime(value[:_MAX_HEADER_CHARACTERS]).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError, OSError):
        return None


def message_of(payload: object) -> tuple[str, int | None] | None:
    """The message and status in any of the shapes that errors have on this wire; None if it is none."""
    if isinstance(payload, list):
        return next(
            (found for item in cast("list[object]", payload)[:3] if (found := message_of(item))), None
        )
    if isinstance(payload, str):
        return (payload, None) if payload.strip() else None
    if not isinstance(payload, dict):
        return None
    outer = cast("dict[str, object]", payload)
    error = outer.get("error")
    if isinstance(error, dict) and error:
        return _message_in(cast("dict[str, object]", error))
    if isinstance(error, str) and error:
        message = outer.get("message")
        return f"{error}: {message}" if isinstance(message, str) else error, _status_in(outer)
    if error:
        return _as_json(cast("object", error)), _status_in(outer)
    return _message_in(outer) if any(outer.get(key) for key in ("message", "detail", "msg")) else None


def _message_in(error: dict[str, object]) -> tuple[str, int | None]:
    parts = [error.get("message") or error.get("detail") or error.get("msg")]
    parts += [error.get(key) for key in ("code", "type", "param")]
    metadata = error.get("metadata")  # OpenRouter: what the provider behind it said
    if isinstance(metadata, dict):
        parts.append(cast("dict[str, object]", metadata).get("raw"))
    texts = [part if isinstance(part, str) else _as_json(part) for part in parts if part]
    head, *rest = texts or [_as_json(error)]
    extra = ", ".join(text for text in rest if text not in head)
    return (f"{head} ({extra})" if extra else head), _status_in(error)


def _status_in(error: dict[str, object]) -> int | None:
    for key in ("status", "code", "status_code", "type", "error"):
        value = error.get(key)
        if isinstance(value, str):
            value = (
                int(value) if re.fullmatch("[1-5][0-9][0-9]", value) else _STATUS_OF_KIND.get(value.lower())
            )
        if isinstance(value, int) and not isinstance(value, bool) and 400 <= value < 600:
            return value
    return None


def _as_json(value: object) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError):
        return "an error that cannot be shown"


def _decoded(body: bytes) -> object:
    try:
        return cast("object", msgspec.json.decode(body))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _plain(body: bytes) -> str:
    """The readable part of a body that is no JSON, an HTML error page for example."""
    text = body.decode("utf-8", "replace")
    if re.match(r"\s*<", text):
        text = re.sub(r"(?is)<(script|style)\b.*?</\1>|<[^>]*>", " ", text)
    return " ".join(text.split())
