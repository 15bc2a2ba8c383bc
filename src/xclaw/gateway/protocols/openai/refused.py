"""How the OpenAI wire says no, and what a run that failed is called there."""

import re
from typing import assert_never

import msgspec
from starlette.responses import Response

from xclaw.contracts.errors import NotAllowed, SessionBusy, UsageError
from xclaw.contracts.results import Outcome, Result

MAX_CHARACTERS = 1_000
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Refused(Exception):
    """A request without an answer; the text is for the client."""

    def __init__(
        self,
        text: str,
        *,
        code: str = "invalid_request",
        param: str | None = None,
        status: int = 400,
        again: bool = False,
    ) -> None:
        """`again`: sending it once more may help. Clients repeat 429 and 5xx on their own, and would pay
        for the whole run again, unless they are told not to."""
        super().__init__(_UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)[:MAX_CHARACTERS])
        self.code = code
        self.param = param
        self.status = status
        self.again = again

    @property
    def kind(self) -> str:
        """OpenAI's `type`."""
        if self.status == 429:
            return "insufficient_quota"
        return "server_error" if self.status >= 500 else "invalid_request_error"

    @property
    def fields(self) -> dict[str, object]:
        """The error object."""
        return {"message": str(self), "type": self.kind, "code": self.code, "param": self.param}


class Unmet(Refused):
    """An answer that is not what the client asked for; worth asking once more."""

    def __init__(self, text: str, *, code: str, correction: str) -> None:
        """`correction` is what the agent is told."""
        super().__init__(text, code=code, status=502)
        self.correction = correction


def refusal_response(refused: Refused) -> Response:
    headers: dict[str, str] = {}
    if refused.status == 429 or refused.status >= 500:
        headers["x-should-retry"] = "true" if refused.again else "false"
    body = msgspec.json.encode({"error": refused.fields})
    return Response(body, refused.status, headers, media_type="application/json")


def refused_by_usage(error: UsageError, *, closing: bool) -> Refused:
    """What a client is told of an error that is its own, or of a gateway that closes."""
    if closing:
        return Refused(str(error), code="closing", status=503, again=True)
    match error:
        case SessionBusy():
            return Refused(str(error), code="busy", status=409)
        case NotAllowed():
            return Refused(str(error), code="not_allowed", status=403)
        case _:
            return Refused(str(error), code="refused")


def refused_by_outcome(result: Result, run_id: str) -> Refused:
    """A run that ended without an answer."""
    code, status = _failure(result.outcome)
    why = result.reason or "no reason was given"
    text = f"run {run_id} ended without an answer ({result.outcome}): {why}"
    return Refused(text, code=code, status=status, again=result.outcome == "interrupted")


def _failure(outcome: Outcome) -> tuple[str, int]:
    match outcome:
        case "timeout":
            return "run_timeout", 504
        case "over_budget":
            return "over_budget", 429
        case "interrupted":
            return "interrupted", 503
        case "cancelled":
            return "run_cancelled", 502
        case "stuck" | "exhausted":
            return f"run_{outcome}", 502
        case "error" | "success" | "completed_unverified":
            return "run_failed", 502
        case _:
            assert_never(outcome)
