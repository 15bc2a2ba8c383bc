"""A gateway on a real socket, a fake provider behind it, and clients of the OpenAI wire in front of it."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import aiohttp
from openai import AsyncOpenAI
from tests.behaviour.harness import settings_for

from gateway.served import Served, served
from xclaw.contracts.events import Entry, RunEnded
from xclaw.gateway.identity import Scope
from xclaw.settings import Settings
from xclaw.testing import FakeProvider

Json = dict[str, Any]
USER: list[Json] = [{"role": "user", "content": "hi"}]
ADD: Json = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "adds",
        "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}},
    },
}


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
    def error(self) -> tuple[int, str]:
        """Status and code."""
        return self.status, str(self.json["error"]["code"])

    @property
    def text(self) -> str | None:
        """Of a chat completion."""
        assert self.status == 200, self.body
        return cast("str | None", self.json["choices"][0]["message"]["content"])


@dataclass
class Events:
    """A stream of server-sent events, read strictly: whatever is not in their grammar fails the test."""

    response: aiohttp.ClientResponse
    comments: list[str] = field(default_factory=list[str])
    names: list[str] = field(default_factory=list[str])

    async def read(self) -> AsyncIterator[str]:
        """The data of each event."""
        data: list[str] = []
        async for raw in self.response.content:
            line = raw.decode().removesuffix("\n")
            if not line:
                if data:
                    yield "\n".join(data)
                data = []
            elif line.startswith(":"):
                self.comments.append(line)
            elif line.startswith("event: "):
                self.names.append(line.removeprefix("event: "))
            else:
                assert line.startswith("data: "), line
                data.append(line.removeprefix("data: "))
        assert data == [], "the last event was cut off"

    async def all(self) -> list[str]:
        return [data async for data in self.read()]


def deltas(events: list[str]) -> list[Json]:
    """The deltas of a chat stream, in order."""
    chunks = [cast("Json", json.loads(data)) for data in events if data != "[DONE]"]
    return [choice["delta"] for chunk in chunks for choice in chunk.get("choices", [])]


def joined(events: list[str], name: str = "content") -> str:
    return "".join(delta.get(name) or "" for delta in deltas(events))


@dataclass
class Scene:
    """What a test works with."""

    served: Served
    provider: FakeProvider
    http: aiohttp.ClientSession
    token: str

    @property
    def base(self) -> str:
        return f"{self.served.url}/v1"

    def as_user(self, user: str, *scopes: Scope) -> "Scene":
        return replace(self, token=self.served.token_of(user, scopes or ("chat",)))

    def client(self, *, token: str | None = None, max_retries: int = 0) -> AsyncOpenAI:
        return AsyncOpenAI(base_url=self.base, api_key=token or self.token, max_retries=max_retries)

    def request(self, method: str, path: str, body: object = None, **headers: str) -> Any:
        """A request that is not awaited yet."""
        own = {name.replace("_", "-"): value for name, value in headers.items()}
        all_headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"} | own
        data = body if isinstance(body, bytes | None) else json.dumps(body)
        return self.http.request(method, self.base + path, data=data, headers=all_headers)

    async def call(self, method: str, path: str, body: object = None, **headers: str) -> Got:
        async with self.request(method, path, body, **headers) as response:
            return Got(response.status, response.headers, await response.read())

    async def chat(self, messages: object = USER, **fields: Any) -> Got:
        body = {"model": "xclaw/coder", "messages": messages, **fields}
        return await self.call("POST", "/chat/completions", body)

    async def chat_stream(self, messages: object = USER, **fields: Any) -> list[str]:
        """The data of every event."""
        body = {"model": "xclaw/coder", "messages": messages, "stream": True, **fields}
        async with self.request("POST", "/chat/completions", body) as response:
            assert response.status == 200, await response.read()
            return await Events(response).all()

    def sent(self, index: int = -1) -> list[Json]:
        """The messages of a request to the provider."""
        return cast("list[Json]", self.provider.requests[index].body["messages"])

    def ends(self) -> asyncio.Queue[str]:
        """The outcomes of root runs that end from now on."""
        outcomes: asyncio.Queue[str] = asyncio.Queue()

        def hear(entry: Entry) -> None:
            if isinstance(entry.event, RunEnded) and entry.address.run_id == entry.address.root_id:
                outcomes.put_nowait(entry.event.outcome)

        self.served.gateway.runs.subscribe(hear)
        return outcomes

    async def runs(self) -> list[tuple[str, str | None]]:
        """Agent and outcome of every run, newest first."""
        return [(row.agent, row.outcome) for row in await self.served.gateway.journal.runs(limit=100)]


def wire_settings(home: Path, provider: FakeProvider, **gateway: object) -> Settings:
    """Of a gateway on a free port, whose model is the provider's."""
    env = {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": provider.url}
    settings = settings_for(home, "openai:fake", env=env)
    own = {"port": 0, "drain_s": 1.0, **gateway}
    return replace(
        settings,
        gateway=replace(settings.gateway, **own),  # pyright: ignore[reportArgumentType] - test shorthand
        models=replace(settings.models, backoff_s=0.001),
    )


def at_the_wire(
    home: Path,
    body: Callable[[Scene], Awaitable[None]],
    *,
    within_s: float = 30,
    change: Callable[[Settings], Settings] = lambda settings: settings,
    **gateway: object,
) -> None:
    """Run `body` against a gateway on a real socket, whose model is a fake provider's."""

    async def main() -> None:
        async with asyncio.timeout(within_s), FakeProvider() as provider:
            settings = change(wire_settings(home, provider, **gateway))
            async with served(settings) as running, aiohttp.ClientSession() as http:
                await body(Scene(running, provider, http, running.tokens.ensure()[0]))

    asyncio.run(main())
