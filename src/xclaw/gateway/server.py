"""Everything that the gateway serves, as one ASGI application behind its wall."""

import logging
import secrets

from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route, Router, WebSocketRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from xclaw.gateway.channels.api import api_routes
from xclaw.gateway.channels.websocket import WebSocketChannel
from xclaw.gateway.gateway import Gateway
from xclaw.gateway.guards import Guards, identity_of
from xclaw.gateway.protocols.openai.routes import openai_routes
from xclaw.gateway.refusals import Refusal, error_body, refuse
from xclaw.gateway.settings import GatewaySettings
from xclaw.gateway.tokens import TokenBook

logger = logging.getLogger(__name__)

_CODES = {404: "not_found", 405: "bad_request"}


def create_server(gateway: Gateway, settings: GatewaySettings, tokens: TokenBook) -> ASGIApp:
    """The gateway's application: /ws, the HTTP API, the OpenAI endpoint, health and metrics.

    Raises `UsageError` for hosts and origins in the settings that name nothing.
    """
    routes: list[BaseRoute] = [
        WebSocketRoute("/ws", WebSocketChannel(gateway, settings, tokens)),
        *_service_routes(gateway),
        *api_routes(gateway, tokens.holds),
        *openai_routes(gateway),
    ]
    return Guards(_Application(routes), settings, tokens)


class _Application:
    """Routes, whose errors are JSON too."""

    def __init__(self, routes: list[BaseRoute]) -> None:
        router = Router(routes, redirect_slashes=False)
        self._app = ExceptionMiddleware(router, handlers={HTTPException: _refused})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["app"] = self  # without one, the router answers in plain text
        begun = False

        async def send_noted(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, send_noted)
        except Exception:
            if begun:
                raise  # half an answer cannot become another one: the connection is cut
            mark = secrets.token_hex(4)
            logger.exception("%s %s failed [%s]", scope["method"], scope["path"], mark)
            text = f"something unexpected happened; the gateway's log says what, under {mark}"
            await refuse(scope, send, Refusal(500, "internal", text))


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    method, path = request.method, request.url.path
    text = f"there is no {path[:200]}" if error.status_code == 404 else f"{path[:200]} has no {method}"
    refusal = Refusal(error.status_code, _CODES.get(error.status_code, "bad_request"), text)
    body = error_body(path, refusal)
    return Response(body, error.status_code, error.headers, media_type="application/json")


def _service_routes(gateway: Gateway) -> list[BaseRoute]:
    """For whoever keeps the gateway running."""

    async def healthz(_: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def readyz(_: Request) -> Response:
        if gateway.closing:
            return JSONResponse({"status": "draining"}, 503)
        return JSONResponse({"status": "ready"})

    async def metrics(request: Request) -> Response:
        if "admin" not in identity_of(request.scope).scopes:
            refusal = Refusal(403, "not_allowed", "metrics need a token with the scope admin")
            return Response(error_body("/metrics", refusal), 403, media_type="application/json")
        return Response(gateway.metrics.render(), media_type=gateway.metrics.media_type)

    return [Route("/healthz", healthz), Route("/readyz", readyz), Route("/metrics", metrics)]
