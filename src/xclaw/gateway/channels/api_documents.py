"""Routes for the API's own descriptions, and the command that keeps their copies in `docs/` current:

python -m xclaw.gateway.channels.api_documents DIRECTORY
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
from starlette.responses import Response

from xclaw.gateway.channels.api_route import AnyRoute, ApiRoute, Call, Nothing
from xclaw.gateway.channels.api_table import ROUTES
from xclaw.gateway.openapi import Json, frames_schema, openapi_document
from xclaw.gateway.openapi_page import POLICY, reference_page
from xclaw.gateway.wire import Data

OPENAPI_FILE, FRAMES_FILE = "openapi.json", "frames.schema.json"
"""Below `docs/`."""


def all_routes() -> tuple[AnyRoute, ...]:
    """What is documented: the API, and its documents."""
    return (*ROUTES, *DOCUMENTS)


async def openapi(call: Call[Nothing, Nothing]) -> Response:
    return _json(openapi_document(all_routes()))


async def frames(call: Call[Nothing, Nothing]) -> Response:
    return _json(frames_schema())


async def reference(call: Call[Nothing, Nothing]) -> Response:
    page = reference_page(openapi_document(all_routes()))
    return Response(page, headers={"Content-Security-Policy": POLICY}, media_type="text/html")


DOCUMENTS: tuple[AnyRoute, ...] = (
    ApiRoute("GET", "/openapi.json", openapi, "documents", "This description", Data, at_root=True),
    ApiRoute(
        "GET",
        "/schema.json",
        frames,
        "documents",
        "The JSON Schema of the WebSocket's frames",
        Data,
        at_root=True,
    ),
    ApiRoute(
        "GET",
        "/docs",
        reference,
        "documents",
        "This description, to read",
        str,
        media_types=("text/html",),
        at_root=True,
    ),
)


def file_text(document: Json) -> str:
    """A document as it is kept in a repository: readable, and the same wherever it is made."""
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _json(document: Json) -> Response:
    return Response(msgspec.json.encode(document), media_type="application/json")


def main(arguments: Sequence[str]) -> None:
    """Write both documents into a directory."""
    directory = Path(arguments[0])
    (directory / OPENAPI_FILE).write_text(file_text(openapi_document(all_routes())), encoding="utf-8")
    (directory / FRAMES_FILE).write_text(file_text(frames_schema()), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
