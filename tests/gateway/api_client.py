"""A client of the HTTP API over real sockets, and a reader of server-sent events."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import aiohttp
from yarl import URL

from behaviour.harness import settings_for
from gateway.served import Served, served, with_gateway
from xclaw.testing import FakeProvider

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Got:
    """One answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Json:
        return cast("Json", json.loads(self.body))

    @property
    def rows(self) -> list[Json]:
        return cast("list[Json]", json.loads(self.body))

    @property
    def error(self) -> tuple[int, str]:
        """Status and code."""
        return self.status, str(self.json["error"]["code"])


@dataclass(frozen=True, slots=True)
class Told:
    """One server-sent event."""

    event: str
    data: Json
    id: int | None


@dataclass
class Stream:
    """An open stream of events."""

    response: aiohttp.ClientResponse
    comments: list[str] = field(default_factory=list[str])

    async def events(self) -> AsyncIterator[Told]:
        fields: dict[str, str] = {}
        async for line in self._lines():
            if line.startswith(":"):
                self.comments.append(line)
            elif line:
                name, _, value = line.partition(": ")
                fields[name] = value
            elif fields:
                number = int(fields["id"]) if "id" in fields else None
                yield Told(fields["event"], cast("Json", json.loads(fields["data"])), number)
                fields = {}

    async def _lines(self) -> AsyncIterator[str]:
        """Of any length."""
        rest = b""
        async for chunk in self.response.content.iter_any():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                yield line.decode()

    async def until(self, wanted: Callable[[Told], bool]) -> list[Told]:
        """Events up to the one that is wanted."""
        told: list[Told] = []
        async for each in self.events():
            told.append(each)
            if wanted(each):
                return told
        raise AssertionError(f"the stream ended after {[each.event for each in told]}")

    async def to_reply(self) -> list[Told]:
        return await self.until(lambda told: told.event == "reply")

    async def to_end(self) -> list[Told]:
        return [told async for told in self.events()]


@dataclass
class Api:
    """The API as one user sees it."""

    http: aiohttp.ClientSession
    url: str
    token: str

    async def call(
        self, method: str, path: str, body: object = None, *, raw: bytes | None = None, **headers: str
    ) -> Got:
        """`path` as it is sent, escapes included."""
        sent = json.dumps(body).encode() if body is not None else raw
        async with self.http.request(
            method, self._url(path), data=sent, headers=self._headers(headers, sent is not None)
        ) as response:
            return Got(response.status, response.headers, await response.read())

    async def get(self, path: str, **headers: str) -> Got:
        return await self.call("GET", path, raw=None, **headers)

    async def post(self, path: str, body: object = None, **headers: str) -> Got:
        return await self.call("POST", path, body, raw=None, **headers)

    async def delete(self, path: str) -> Got:
        return await self.call("DELETE", path)

    async def say(self, session: str, text: str, **fields: object) -> Json:
        """The message, accepted."""
        got = await self.post(f"/sessions/{session}/messages", {"text": text, **fields})
        assert got.status == 202, got.body
        return got.json

    @asynccontextmanager
    async def stream(self, path: str, **headers: str) -> AsyncGenerator[Stream]:
        async with self.http.get(self._url(path), headers=self._headers(headers, False)) as response:
            assert response.status == 200, await response.read()
            yield Stream(response)

    async def reply(self, accepted: Json) -> list[Told]:
        """What happens up to the answer of a message."""
        path = f"/sessions/{accepted['session']}/events?after={accepted['after']}"
        async with self.stream(path) as stream:
            return await stream.until(
                lambda told: told.event == "reply" and told.data["request"] == accepted["request"]
            )

    async def ask(self, session: str, text: str, **fields: object) -> list[Told]:
        return await self.reply(await self.say(session, text, **fields))

    def _url(self, path: str) -> URL:
        prefix = "" if path.startswith("!") else "/api/v1"
        return URL(f"{self.url}{prefix}{path.removeprefix('!')}", encoded=True)

    def _headers(self, more: Mapping[str, str], has_body: bool) -> dict[str, str]:
        headers = {"Authorization": f"Bearer {self.token}"}
        if has_body:
            headers["Content-Type"] = "application/json"
        return headers | {name.replace("_", "-"): value for name, value in more.items()}


@dataclass
class Scene:
    """A gateway, the provider behind it, and its users."""

    served: Served
    provider: FakeProvider
    owner: Api
    home: Path

    def as_user(self, user: str, *scopes: str) -> Api:
        token = self.served.token_of(user, scopes or ("chat",))  # pyright: ignore[reportArgumentType]
        return Api(self.owner.http, self.owner.url, token)


def at_the_api(
    home: Path, body: Callable[[Scene], Awaitable[None]], *, within_s: float = 30, **gateway: object
) -> None:
    """Run `body` against a gateway on a real socket, whose model is a fake provider's."""

    async def main() -> None:
        async with asyncio.timeout(within_s), FakeProvider() as provider:
            env = {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": provider.url}
            settings = with_gateway(settings_for(home, "openai:fake", env=env), **gateway)
            async with served(settings) as running, aiohttp.ClientSession() as http:
                owner = Api(http, running.url, running.tokens.ensure()[0])
                await body(Scene(running, provider, owner, home))

    asyncio.run(main())
