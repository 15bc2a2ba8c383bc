"""Asks a gateway over HTTP for what a connection does not bring: lists, traces, teams."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast
from urllib.parse import quote

import aiohttp
import msgspec

from xclaw.cli.gateway_link import Reach, Unreachable
from xclaw.contracts.errors import NotAllowed, UsageError, XclawError
from xclaw.contracts.events import Entry
from xclaw.gateway.frames import entry_of
from xclaw.gateway.wire import EventFrame

PREFIX = "/api/v1"
TIMEOUT_S = 30.0

JsonValue = Any
"""What a JSON document decodes to; each reader knows the shape that its route promises."""


class NotThere(UsageError):
    """The gateway has no such thing, or it is another user's."""


class GatewayApi:
    """The HTTP API of one gateway, for the user whose token it has.

    Every method raises `UsageError` for what the user asked wrongly, `Unreachable` when nothing answers,
    and `XclawError` when the gateway failed.
    """

    def __init__(self, http: aiohttp.ClientSession, reach: Reach) -> None:
        self._http = http
        self._reach = reach

    async def get(self, path: str, **query: str) -> JsonValue:
        return _json(await self._ask("GET", path, query=query))

    async def post(self, path: str, body: Mapping[str, object]) -> JsonValue:
        return _json(await self._ask("POST", path, body))

    async def patch(self, path: str, body: Mapping[str, object]) -> JsonValue:
        return _json(await self._ask("PATCH", path, body))

    async def delete(self, path: str) -> None:
        await self._ask("DELETE", path)

    async def text(self, path: str, **query: str) -> str:
        return (await self._ask("GET", path, query=query)).decode("utf-8", "replace")

    async def entries(self, run_id: str) -> list[Entry]:
        """Everything that the tree of a run recorded, in order."""
        raw = await self._ask("GET", f"/runs/{quote(run_id, safe='')}/entries")
        return [entry_of(frame) for frame in msgspec.json.decode(raw, type=list[EventFrame])]

    async def _ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> bytes:
        headers = {
            **self._reach.headers,
            **({"Content-Type": "application/json"} if body is not None else {}),
        }
        try:
            async with self._http.request(
                method,
                f"{self._reach.url}{PREFIX}{path}",
                data=None if body is None else msgspec.json.encode(body),
                params=query,
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=TIMEOUT_S),
            ) as answer:
                content = await answer.read()
                if answer.status < 400:
                    return content
                raise _error(answer.status, content)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            reason = str(error) or type(error).__name__
            raise Unreachable(f"the gateway at {self._reach.url} does not answer: {reason}") from None


@asynccontextmanager
async def gateway_api(reach: Reach) -> AsyncGenerator[GatewayApi]:
    """The API for as long as the block lasts."""
    async with aiohttp.ClientSession() as http:
        yield GatewayApi(http, reach)


def session_path(name: str) -> str:
    return f"/sessions/{quote(name, safe='')}"


def _json(content: bytes) -> JsonValue:
    try:
        return msgspec.json.decode(content) if content else None
    except msgspec.MsgspecError:
        raise XclawError("the gateway answered with something that is no JSON") from None


def _error(status: int, content: bytes) -> XclawError:
    """What the gateway says was wrong."""
    try:
        document = cast("dict[str, dict[str, object]]", msgspec.json.decode(content))
        text = str(document["error"]["message"])
    except (msgspec.MsgspecError, KeyError, TypeError):
        text = f"the gateway answered with status {status}"
    if status in (403, 404):
        return NotAllowed(text) if status == 403 else NotThere(text)
    return UsageError(text) if status < 500 else XclawError(text)
