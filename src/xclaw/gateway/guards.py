"""The wall in front of the routes: who may come in, and with how much.

Nothing behind it runs for a request that it refuses, and nothing of a request's body is read before it
is known whose it is. Being on loopback proves nothing: every web page that the user visits is too.
"""

import logging
import re
from collections.abc import Iterable, MutableMapping
from typing import Protocol, cast
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketDisconnect

from xclaw.contracts.errors import UsageError
from xclaw.gateway.bodies import read_body, replayed
from xclaw.gateway.identity import Identity
from xclaw.gateway.origins import Origins
from xclaw.gateway.refusals import Headers, Refusal, refuse, secured
from xclaw.gateway.settings import GatewaySettings

SUBPROTOCOL = "xclaw.v1"
TOKEN_SUBPROTOCOL = "xclaw.token."
"""Browsers cannot set headers of a WebSocket: the token goes among the subprotocols, after this."""
OPEN_PATHS = frozenset({"/healthz", "/readyz"})

_TOKEN_NAMES = frozenset(
    {"token", "access_token", "auth_token", "api_key", "apikey", "api-key", "authorization"}
)
_TOKEN = re.compile(r"xc_[a-z0-9]+_[A-Za-z0-9_-]{20,}")

_INTERNAL = Refusal(500, "internal_error", "something unexpected happened; the gateway's log says what.")

_log = logging.getLogger(__name__)


class Authenticator(Protocol):
    """Knows who holds a token; a `TokenBook` is one."""

    def authenticate(self, token: str) -> Identity | None: ...


def identity_of(scope: Scope) -> Identity:
    """Whose request it is. Only behind `Guards`, and not on open paths."""
    return cast("dict[str, Identity]", scope["state"])["identity"]


class Guards:
    """The gateway's app behind its wall, for HTTP and WebSockets alike. Pure ASGI: streams pass as they are.

    What is refused, in this order: a Host that is not ours and an Origin that is not allowed (403), a
    token in the address (400), no good token (401), a body of another type than JSON (415), too long
    (413) or too slow (408). What is let in finds its `Identity` with `identity_of`, its whole body
    at once, and of subprotocols only ours, which is selected when the app accepts.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: GatewaySettings,
        tokens: Authenticator,
        open_paths: Iterable[str] = OPEN_PATHS,
    ) -> None:
        """`open_paths` need no token. Raises `UsageError` for names in the settings that are none."""
        self._app = app
        self._settings = settings
        self._tokens = tokens
        self._open = frozenset(open_paths)
        self._origins = Origins(settings.host, settings.allowed_hosts, settings.allowed_origins)
        self._told = ""
        """The last error of the tokens that was logged: whoever knocks must not fill the log."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        send = secured(send)
        refusal = self._refusal(scope)
        if refusal is not None:
            await refuse(scope, send, refusal)
        elif scope["type"] == "websocket":
            await _guarded(self._app, scope, receive, send)
        else:
            await self._with_body(scope, receive, send)

    async def _with_body(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await read_body(scope, receive, self._settings)
        if isinstance(body, Refusal):
            await refuse(scope, send, body)
        elif body is not None:
            await _guarded(self._app, scope, replayed(body, receive), send)

    def _refusal(self, scope: Scope) -> Refusal | None:
        """Why the head of a request is refused; else its identity is put into the scope."""
        headers = cast("Headers", scope["headers"])
        refusal = self._origins.refusal(headers)
        if refusal is not None:
            return refusal
        if _TOKEN.search(cast("str", scope["path"])) or _holds_token(cast("bytes", scope["query_string"])):
            return Refusal(
                400,
                "token_in_url",
                "a token must not be in the address: addresses are kept in histories and logs. Send the header "
                "'Authorization: Bearer TOKEN', and revoke this one if others may have seen it.",
            )
        token = _bearer(headers)
        if scope["type"] == "websocket":
            token = _taken_from_subprotocols(scope) or token
        if scope["path"] in self._open:
            return None
        return self._admitted(scope, token)

    def _admitted(self, scope: Scope, token: str | None) -> Refusal | None:
        if token is None:
            return _unauthorized("missing_token", "a token is needed: 'Authorization: Bearer TOKEN'.", b"")
        try:
            identity = self._tokens.authenticate(token)
        except UsageError as error:
            if str(error) != self._told:
                self._told = str(error)
                _log.error("tokens cannot be checked: %s", error)
            return Refusal(503, "tokens_unusable", "tokens cannot be checked; the gateway's log says why.")
        if identity is None:
            why = "this token is unknown, was revoked or has expired."
            return _unauthorized("invalid_api_key", why, b', error="invalid_token"')
        state = cast("MutableMapping[str, object]", scope.setdefault("state", {}))
        state["identity"] = identity
        return None


async def _guarded(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Run the app. What it raises is logged, and an answer that tells nothing of it."""
    answered = False

    async def send_noted(message: Message) -> None:
        nonlocal answered
        answered = True
        await send(message)

    try:
        await app(scope, receive, _selecting(scope, send_noted))
    except (ClientDisconnect, WebSocketDisconnect):
        return
    except Exception:
        if answered and scope["type"] == "http":
            raise  # the server logs it, and cuts the connection so that the answer does not seem whole
        _log.exception("a request failed")
        if answered:
            await send({"type": "websocket.close", "code": 1011, "reason": _INTERNAL.code})
        else:
            await refuse(scope, send, _INTERNAL)


def _selecting(scope: Scope, send: Send) -> Send:
    """`send`, selecting our subprotocol when a WebSocket that offered it is accepted."""
    if SUBPROTOCOL not in cast("list[str]", scope.get("subprotocols") or ()):
        return send

    async def send_selecting(message: Message) -> None:
        if message["type"] == "websocket.accept" and not message.get("subprotocol"):
            message = {**message, "subprotocol": SUBPROTOCOL}
        await send(message)

    return send_selecting


def _holds_token(query: bytes) -> bool:
    """Whether a query string has a token in it, or a parameter that is meant for one."""
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    return any(
        name.lower() in _TOKEN_NAMES or _TOKEN.search(name) or _TOKEN.search(value) for name, value in pairs
    )


def _bearer(headers: Headers) -> str | None:
    """The bearer token; None when there is none, or more than one to choose from."""
    values = [value for name, value in headers if name.lower() == b"authorization"]
    scheme, _, token = (values[0] if len(values) == 1 else b"").partition(b" ")
    return token.strip().decode("latin-1") if scheme.lower() == b"bearer" and token.strip() else None


def _taken_from_subprotocols(scope: Scope) -> str | None:
    """The token among the offered subprotocols, which only the gateway's own are left of."""
    offered = cast("list[str]", scope.get("subprotocols") or [])
    tokens = [name.removeprefix(TOKEN_SUBPROTOCOL) for name in offered if name.startswith(TOKEN_SUBPROTOCOL)]
    scope["subprotocols"] = [name for name in offered if name == SUBPROTOCOL]
    scope["headers"] = [
        header for header in cast("Headers", scope["headers"]) if header[0] != b"sec-websocket-protocol"
    ]
    return tokens[0] if len(tokens) == 1 else None


def _unauthorized(code: str, why: str, detail: bytes) -> Refusal:
    return Refusal(401, code, why, ((b"www-authenticate", b'Bearer realm="xclaw"' + detail),))
