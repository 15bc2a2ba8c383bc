"""The HTTP API described for programs: OpenAPI 3.1, made of the routes themselves and their types."""

import http
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

import msgspec

from xclaw.gateway.channels.api_errors import ErrorAnswer
from xclaw.gateway.channels.api_route import AnyRoute
from xclaw.gateway.wire import WIRE_VERSION, ClientFrame, ServerFrame

Json = dict[str, object]

API_VERSION = "1"
_REFERENCE = "#/components/schemas/{name}"
_COMMON_REFUSALS = (400, 401, 403)
_OF_BODIES = (408, 413, 415)
_ABOUT = """\
One door to the agents. Every request carries a token: `Authorization: Bearer TOKEN`. What another user
has is not there for you. Times are Unix seconds. Errors have a stable `code` and a text for people. Fields
that this version does not know are left out of what you send, and may be added to what you get.
"""

_REASONS: Mapping[int, str] = {
    204: "There is nothing more.",
    400: "The request is not what it should be; the text names the field.",
    401: "No token, or one that is not good any more.",
    403: "The token's scopes do not allow it.",
    404: "There is no such thing, or it is another user's.",
    408: "The body did not arrive in time.",
    409: "Not now: something goes on.",
    413: "The body is too long.",
    415: "The body is not JSON.",
    503: "The gateway is closing; send it again in a moment.",
}
_PARAMETERS: Mapping[str, tuple[str, int]] = {
    "session": ("What you call the session: printable characters, no ':'.", 200),
    "request": ("The id of a message.", 200),
    "run": ("The id of a run.", 200),
    "name": ("The name of a delivered file, as the run lists it.", 1_000),
    "agent": ("The name of an agent.", 200),
    "approval": ("The id of an approval.", 200),
}
"""What each parameter of an address is, and how many characters it has at most."""


def openapi_document(routes: Sequence[AnyRoute]) -> Json:
    """The document that describes `routes`."""
    schemas = _Schemas(routes)
    paths: dict[str, dict[str, object]] = {}
    for route in routes:
        links = _links(route, routes, schemas)
        paths.setdefault(route.full_path, {})[route.method.lower()] = _operation(route, schemas, links)
    return {
        "openapi": "3.1.0",
        "info": {"title": "xclaw", "version": API_VERSION, "description": _ABOUT},
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas.components,
        },
    }


def frames_schema() -> Json:
    """The JSON Schema of the WebSocket's frames: `ClientFrame` is what a client sends, `ServerFrame` what it gets."""
    (client, server), components = msgspec.json.schema_components(
        (ClientFrame, ServerFrame), ref_template="#/$defs/{name}"
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Frames of the xclaw gateway",
        "description": f"Version {WIRE_VERSION}. One JSON object in each text message.",
        "anyOf": [{"$ref": "#/$defs/ClientFrame"}, {"$ref": "#/$defs/ServerFrame"}],
        "$defs": {**_tidied(components), "ClientFrame": client, "ServerFrame": server},
    }


def _tidied(schema: object) -> Json:
    """Docstrings on one line, without the marks of code."""
    return cast("Json", _tidied_value(schema))


def _tidied_value(value: object) -> object:
    if isinstance(value, dict):
        items = cast("dict[str, object]", value)
        return {
            key: _one_line(each) if key == "description" and isinstance(each, str) else _tidied_value(each)
            for key, each in items.items()
        }
    if isinstance(value, list | tuple):
        return [_tidied_value(each) for each in cast("Sequence[object]", value)]
    return value


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


class _Schemas:
    """The schemas of all types that the routes name, each once."""

    def __init__(self, routes: Iterable[AnyRoute]) -> None:
        types: list[object] = [ErrorAnswer]
        for route in routes:
            types += [route.query, route.answer] if route.is_described else [route.query]
            if route.has_body:
                types.append(route.body)
        self._types = [each for number, each in enumerate(types) if each not in types[:number]]
        schemas, components = msgspec.json.schema_components(self._types, ref_template=_REFERENCE)
        self._schemas = [_tidied(schema) for schema in schemas]
        self._components = _tidied(components)
        queries = {self.name(route.query) for route in routes}
        self.components = {name: schema for name, schema in self._components.items() if name not in queries}

    def of(self, wanted: object) -> Json:
        return self._schemas[self._types.index(wanted)]

    def name(self, wanted: object) -> str:
        return str(self.of(wanted).get("$ref", "")).rpartition("/")[2]

    def fields(self, wanted: object) -> tuple[dict[str, Json], Sequence[str]]:
        """The properties of an object's schema, and which of them must be there."""
        schema = cast("Json", self._components[self.name(wanted)])
        return cast("dict[str, Json]", schema["properties"]), cast("Sequence[str]", schema["required"])


def _links(route: AnyRoute, routes: Iterable[AnyRoute], schemas: _Schemas) -> Json:
    """Where to go on with what a route answers: those whose parameters are among its fields."""
    if not (route.is_json and schemas.name(route.answer)):
        return {}
    fields, _ = schemas.fields(route.answer)
    return {
        other.name: {
            "operationId": other.name,
            "parameters": {name: f"$response.body#/{name}" for name in other.parameters},
        }
        for other in routes
        if other is not route and other.parameters and set(other.parameters) <= fields.keys()
    }


def _operation(route: AnyRoute, schemas: _Schemas, links: Json) -> Json:
    operation: Json = {
        "operationId": route.name,
        "tags": [route.group],
        "summary": route.summary,
        "parameters": [
            *_path_parameters(route),
            *_query_parameters(route, schemas),
            *_header_parameters(route),
        ],
        "responses": _responses(route, schemas, links),
        "x-scope": route.scope,
    }
    if route.details:
        operation["description"] = route.details
    if route.has_body:
        operation["requestBody"] = {
            "required": route.body_required,
            "content": {"application/json": {"schema": schemas.of(route.body)}},
        }
    return operation


def _path_parameters(route: AnyRoute) -> list[Json]:
    found: list[Json] = []
    for name in route.parameters:
        description, length = _PARAMETERS[name]
        schema: Json = {"type": "string", "minLength": 1, "maxLength": length}
        if name == "session":
            schema["pattern"] = "^[^:]+$"
        found.append(
            {"name": name, "in": "path", "required": True, "description": description, "schema": schema}
        )
    return found


def _query_parameters(route: AnyRoute, schemas: _Schemas) -> list[Json]:
    properties, required = schemas.fields(route.query)
    found: list[Json] = []
    for name, schema in properties.items():
        kept = {key: value for key, value in schema.items() if key != "description"}
        parameter: Json = {"name": name, "in": "query", "required": name in required, "schema": kept}
        if "description" in schema:
            parameter["description"] = schema["description"]
        found.append(parameter)
    return found


def _header_parameters(route: AnyRoute) -> list[Json]:
    return [
        {
            "name": header.name,
            "in": "header",
            "required": False,
            "description": header.about,
            "schema": {"type": "string", "pattern": header.pattern},
        }
        for header in route.headers
    ]


def _responses(route: AnyRoute, schemas: _Schemas, links: Json) -> Json:
    good: Json = {"description": http.HTTPStatus(route.status).phrase}
    if links:
        good["links"] = links
    if route.answer is not None:
        schema = schemas.of(route.answer) if route.is_described else _text_schema(route)
        good["content"] = {media_type: {"schema": schema} for media_type in route.media_types}
    responses: Json = {str(route.status): good}
    refusals = {*_COMMON_REFUSALS, *route.refusals}
    refusals.update(_OF_BODIES if route.has_body else ())
    refusals.update((404,) if route.parameters else ())
    for status in sorted(refusals):
        refused: Json = {"description": _REASONS[status]}
        if status >= 400:
            refused["content"] = {"application/json": {"schema": schemas.of(ErrorAnswer)}}
        responses[str(status)] = refused
    return responses


def _text_schema(route: AnyRoute) -> Json:
    return {"type": "string"} if route.answer is str else {}
