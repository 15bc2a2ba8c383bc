"""Bodies of requests: JSON only, bounded in size and time, read whole before the app begins."""

import asyncio
from collections.abc import Sequence

from starlette.types import Message, Receive, Scope

from xclaw.gateway.refusals import Refusal
from xclaw.gateway.settings import GatewaySettings

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})


async def read_body(scope: Scope, receive: Receive, settings: GatewaySettings) -> bytes | Refusal | None:
    """The whole body; empty where there is none; None when the client went away meanwhile.

    Bytes that are sent without JSON as their type are refused: forms of foreign pages can send any
    other type without asking first.
    """
    length = _value(scope, b"content-length")
    if length in (None, b"0") and _value(scope, b"transfer-encoding") is None:
        return b""
    media_type = (_value(scope, b"content-type") or b"").split(b";")[0].strip().lower()
    if scope["method"] not in _SAFE_METHODS and media_type != b"application/json":
        return Refusal(415, "not_json", "send the body as JSON, with 'Content-Type: application/json'.")
    if length is not None and int(length) > settings.max_message_bytes:
        return _too_long(settings)
    try:
        async with asyncio.timeout(settings.body_timeout_s):
            return await _read(receive, settings)
    except TimeoutError:
        message = f"the body did not arrive in {settings.body_timeout_s:g} s. Send it again."
        return Refusal(408, "body_timeout", message, ((b"connection", b"close"),))


def replayed(body: bytes, receive: Receive) -> Receive:
    """A `receive` that hands out the body, and then whatever comes after it."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_replayed() -> Message:
        return waiting.pop() if waiting else await receive()

    return receive_replayed


async def _read(receive: Receive, settings: GatewaySettings) -> bytes | Refusal | None:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if len(body) > settings.max_message_bytes:
            return _too_long(settings)
        if not message.get("more_body", False):
            return bytes(body)


def _too_long(settings: GatewaySettings) -> Refusal:
    return Refusal(
        413,
        "too_long",
        f"the body is longer than {settings.max_message_bytes:,} bytes, which is gateway.max_message_bytes.",
    )


def _value(scope: Scope, wanted: bytes) -> bytes | None:
    headers: Sequence[tuple[bytes, bytes]] = scope["headers"]
    return next((value for name, value in headers if name == wanted), None)
