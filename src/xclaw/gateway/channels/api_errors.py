"""How the HTTP API says no: one shape, with codes that stay the same."""

import re
import secrets
from typing import Literal

import msgspec
from starlette.responses import Response

from xclaw.contracts.errors import NotAllowed, SessionBusy, UsageError

ErrorCode = Literal[
    "bad_request",
    "refused",
    "not_found",
    "not_allowed",
    "busy",
    "closing",
    "internal",
]

STATUS: dict[ErrorCode, int] = {
    "bad_request": 400,
    "refused": 400,
    "not_allowed": 403,
    "not_found": 404,
    "busy": 409,
    "internal": 500,
    "closing": 503,
}

_LONGEST = 1_000
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class ErrorDetail(msgspec.Struct, frozen=True):
    """What was wrong."""

    code: str
    """For programs; the list is in docs/gateway.md."""
    message: str
    """For people: what, and what to do."""


class ErrorAnswer(msgspec.Struct, frozen=True):
    """What every request that is not carried out is answered with."""

    error: ErrorDetail


class ApiRefusal(Exception):
    """A request that is not carried out; the text is for the client."""

    def __init__(self, code: ErrorCode, text: str, *, status: int | None = None) -> None:
        super().__init__(text)
        self.code: ErrorCode = code
        self.status = STATUS[code] if status is None else status


def refusal_from(error: UsageError) -> ApiRefusal:
    """What a client is told of an error that is its own."""
    match error:
        case SessionBusy():
            return ApiRefusal("busy", str(error))
        case NotAllowed():
            return ApiRefusal("not_allowed", str(error))
        case _:
            return ApiRefusal("refused", str(error))


def error_response(refusal: ApiRefusal, headers: dict[str, str] | None = None) -> Response:
    text = _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", str(refusal))[:_LONGEST]
    body = msgspec.json.encode(ErrorAnswer(ErrorDetail(refusal.code, text)))
    return Response(body, refusal.status, headers, media_type="application/json")


def unexpected(mark: str) -> str:
    """What a client is told of an error that is ours: it tells nothing of it, but finds it in the log."""
    return f"something unexpected happened; the gateway's log says what, under {mark}"


def new_mark() -> str:
    return secrets.token_hex(4)
