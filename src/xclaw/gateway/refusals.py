"""How a request is turned away: one answer, in the form that its client reads, before the routes see it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import msgspec
from starlette.types import Message, Scope, Send

SECURITY_HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)
"""On every response. A route may have a policy or caching of its own."""

Headers = Sequence[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is not answered."""

    status: int
    code: str
    """For programs."""
    message: str
    """What, and what to do."""
    headers: tuple[tuple[bytes, bytes], ...] = ()


def error_body(path: str, refusal: Refusal) -> bytes:
    """The JSON of an error: OpenAI's form below `/v1/`, as its clients show nothing else."""
    error: dict[str, object] = {"code": refusal.code, "message": refusal.message}
    if path.startswith("/v1/"):
        error["type"] = "server_error" if refusal.status >= 500 else "invalid_request_error"
        error["param"] = None
    return msgspec.json.encode({"error": error})


async def refuse(scope: Scope, send: Send, refusal: Refusal) -> None:
    """Answer an HTTP request, or a WebSocket that was not accepted yet, with the refusal."""
    body = error_body(cast("str", scope["path"]), refusal)
    prefix = ""
    if scope["type"] == "websocket":
        if "websocket.http.response" not in cast("Mapping[str, object]", scope.get("extensions") or {}):
            await send({"type": "websocket.close", "code": 1008, "reason": refusal.code})
            return
        prefix = "websocket."
    headers = [
        *refusal.headers,
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": f"{prefix}http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": f"{prefix}http.response.body", "body": body})


def secured(send: Send) -> Send:
    """`send`, with the security headers on every response, and never one that opens it to other origins."""

    async def send_secured(message: Message) -> None:
        if message["type"] in ("http.response.start", "websocket.http.response.start"):
            message = {**message, "headers": with_security(cast("Headers", message.get("headers", ())))}
        await send(message)

    return send_secured


def with_security(headers: Headers) -> list[tuple[bytes, bytes]]:
    """Headers with those of security that are not among them."""
    kept = [(name.lower(), value) for name, value in headers]
    kept = [(name, value) for name, value in kept if not name.startswith(b"access-control-")]
    names = {name for name, _ in kept}
    return [*kept, *(header for header in SECURITY_HEADERS if header[0] not in names)]
