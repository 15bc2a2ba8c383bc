"""The HTTP channel: finds the route of a request, reads and checks what it says, answers in one form."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import cast
from urllib.parse import unquote_to_bytes

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from xclaw.contracts.errors import UsageError
from xclaw.gateway.channels.api_documents import DOCUMENTS
from xclaw.gateway.channels.api_errors import ApiRefusal, error_response, new_mark, refusal_from, unexpected
from xclaw.gateway.channels.api_route import PREFIX, AnyRoute, Call, user_of
from xclaw.gateway.channels.api_table import ROUTES
from xclaw.gateway.desk import NoSuchSession, SessionDesk
from xclaw.gateway.gateway import Gateway
from xclaw.gateway.guards import identity_of
from xclaw.gateway.identity import Identity

logger = logging.getLogger(__name__)

Holds = Callable[[Identity], bool]
"""Whether a token still lets its holder in, as `TokenBook.holds`."""


def _always(_identity: Identity) -> bool:
    return True


def api_routes(gateway: Gateway, holds: Holds = _always) -> list[Route]:
    """What the server mounts at its root, behind `Guards`. Streams end when `holds` says no."""
    below = ApiChannel(gateway, ROUTES, holds)
    at_root = ApiChannel(gateway, DOCUMENTS, holds)
    return [
        Route(PREFIX + "/{rest:path}", below, include_in_schema=False),
        *(Route(route.full_path, at_root, include_in_schema=False) for route in DOCUMENTS),
    ]


class ApiChannel:
    """The ASGI app of some routes of the API."""

    def __init__(self, gateway: Gateway, routes: Sequence[AnyRoute], holds: Holds) -> None:
        self._gateway = gateway
        self._desk = SessionDesk(gateway.sessions, gateway.journal, gateway.runs, gateway.agents)
        self._holds = holds
        self._paths = _Paths(routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            answer = await self._answer(request)
        except ApiRefusal as refusal:
            answer = error_response(refusal)
        except NoSuchSession as error:
            answer = error_response(ApiRefusal("not_found", str(error)))
        except UsageError as error:
            answer = error_response(refusal_from(error))
        except ClientDisconnect:
            return
        except Exception:
            mark = new_mark()
            logger.exception("a request failed [%s]", mark)
            answer = error_response(ApiRefusal("internal", unexpected(mark)))
        await answer(scope, receive, send)

    async def _answer(self, request: Request) -> ASGIApp:
        found, parameters = self._paths.find(request.scope)
        route = found.get(request.method)
        if route is None:
            methods = ", ".join(found)
            refusal = ApiRefusal("bad_request", f"here you can only {methods}", status=405)
            return error_response(refusal, {"Allow": methods})
        identity = identity_of(request.scope)
        if route.scope not in identity.scopes:
            raise ApiRefusal("not_allowed", f"this token's scopes do not allow it: {route.scope!r} is needed")
        query = route.read_query(request.query_params)
        call = Call(
            self._gateway,
            self._desk,
            identity,
            user_of(identity, query),
            parameters,
            route.read_body(await request.body() if route.has_body else b""),
            query,
            request.headers,
            lambda: self._is_welcome(identity),
        )
        answer = await route.handle(call)
        return cast("ASGIApp", answer) if callable(answer) else _response(answer, route.status)

    def _is_welcome(self, identity: Identity) -> bool:
        try:
            return self._holds(identity)
        except UsageError as error:
            logger.error("tokens cannot be checked: %s", error)
            return False


def _response(answer: object, status: int) -> Response:
    if answer is None:
        return Response(status_code=status)
    return Response(msgspec.json.encode(answer), status, media_type="application/json")


class _Paths:
    """Finds routes by the parts of an address as they were sent: a name may hold "/" as `%2F`."""

    def __init__(self, routes: Iterable[AnyRoute]) -> None:
        self._found: dict[tuple[str, ...], dict[str, AnyRoute]] = {}
        for route in routes:
            parts = tuple(route.full_path.strip("/").split("/"))
            self._found.setdefault(parts, {})[route.method] = route

    def find(self, scope: Scope) -> tuple[Mapping[str, AnyRoute], dict[str, str]]:
        """The routes of an address by method, and its parameters. Raises `ApiRefusal` for no address."""
        raw = cast("bytes", scope.get("raw_path") or scope["path"].encode())
        asked = [unquote_to_bytes(part).decode("utf-8", "replace") for part in raw.strip(b"/").split(b"/")]
        for parts, routes in self._found.items():
            parameters = _fitting(parts, asked)
            if parameters is not None:
                return routes, parameters
        raise ApiRefusal("not_found", "there is nothing at this address; /openapi.json lists what there is")


def _fitting(parts: Sequence[str], asked: Sequence[str]) -> dict[str, str] | None:
    """The parameters, if an address fits the parts of a path."""
    if len(parts) != len(asked):
        return None
    parameters: dict[str, str] = {}
    for part, text in zip(parts, asked, strict=True):
        if part.startswith("{"):
            if not text:
                return None
            parameters[part[1:-1]] = text
        elif part != text:
            return None
    return parameters
