"""A gateway that listens on a free port of this process, and clients that speak to it over real sockets."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from xclaw.app import open_gateway
from xclaw.contracts.agents import Agent
from xclaw.contracts.channels import Channel
from xclaw.gateway.gateway import Gateway
from xclaw.gateway.identity import Scope
from xclaw.gateway.serving import serve
from xclaw.gateway.tokens import TokenBook
from xclaw.gateway.wire import (
    ErrorFrame,
    EventFrame,
    Frame,
    Hello,
    ReplyFrame,
    Say,
    SayAccepted,
    ServerFrame,
    Watch,
    Watching,
    decode_server,
    encode,
)
from xclaw.settings import Settings

F = TypeVar("F", bound=Frame)


@dataclass
class Client:
    """One connection."""

    socket: ClientConnection
    hello: Hello
    ids: list[int] = field(default_factory=list[int])
    """Of all stored entries that came, in the order in which they did."""

    async def send(self, frame: Frame) -> None:
        await self.socket.send(encode(frame))

    async def next(self) -> ServerFrame:
        frame = decode_server(await self.socket.recv())
        if isinstance(frame, EventFrame | ReplyFrame):
            self.ids.append(frame.id)
        return frame

    async def until(self, kind: type[F], wanted: Callable[[F], bool] = lambda _: True) -> F:
        """The next frame of a kind; what comes before it is skipped."""
        while True:
            frame = await self.next()
            if isinstance(frame, kind) and wanted(frame):
                return frame
            if isinstance(frame, ErrorFrame):
                raise AssertionError(frame)

    async def answer(self, frame: Frame, kind: type[F]) -> F:
        await self.send(frame)
        return await self.until(kind)

    async def watch(self, session: str, after: int | None = None) -> Watching:
        return await self.answer(Watch(session=session, after=after), Watching)

    async def say(self, session: str, text: str, **fields: object) -> SayAccepted:
        say = Say(session=session, text=text, **fields)  # pyright: ignore[reportArgumentType] - shorthand
        return await self.answer(say, SayAccepted)

    async def stored(self, until: Callable[[EventFrame | ReplyFrame], bool]) -> list[EventFrame | ReplyFrame]:
        """Stored entries up to the one that is wanted, in order."""
        frames: list[EventFrame | ReplyFrame] = []
        while not frames or not until(frames[-1]):
            frame = await self.next()
            if isinstance(frame, ErrorFrame):
                raise AssertionError(frame)
            if isinstance(frame, EventFrame | ReplyFrame):
                frames.append(frame)
        return frames

    async def to_reply(self) -> list[EventFrame | ReplyFrame]:
        return await self.stored(lambda frame: isinstance(frame, ReplyFrame))

    async def to_close(self) -> int | None:
        """Read whatever comes until the server closes; its code."""
        with suppress(ConnectionClosed):
            while True:
                await self.next()
        return self.socket.close_code

    def abort(self) -> None:
        """Drop the connection without a word."""
        self.socket.transport.abort()


@dataclass
class Served:
    """A gateway that listens."""

    url: str
    gateway: Gateway
    tokens: TokenBook
    serving: asyncio.Task[None]

    @property
    def host(self) -> str:
        return self.url.removeprefix("http://")

    def token_of(self, user: str, scopes: Sequence[Scope] = ("chat",)) -> str:
        return self.tokens.add(user, scopes)[0]

    def headers(self, token: str | None = None) -> dict[str, str]:
        return {"Authorization": f"Bearer {token or self.tokens.ensure()[0]}"}

    @asynccontextmanager
    async def client(self, token: str | None = None) -> AsyncGenerator[Client]:
        """A connection, the owner's if nothing else is said. Queues one frame only: who does not call
        `next` does not read."""
        url = f"ws://{self.host}/ws"
        async with connect(
            url,
            additional_headers=self.headers(token),
            max_size=None,
            max_queue=1,
            close_timeout=0.1,
            proxy=None,
        ) as socket:
            hello = decode_server(await socket.recv())
            assert isinstance(hello, Hello)
            yield Client(socket, hello)


def with_gateway(settings: Settings, **gateway: object) -> Settings:
    """Settings of a gateway on a free port."""
    own = {"port": 0, "drain_s": 1.0, **gateway}
    changed = replace(settings.gateway, **own)  # pyright: ignore[reportArgumentType] - test shorthand
    return replace(settings, gateway=changed)


@asynccontextmanager
async def served(
    settings: Settings, channels: Sequence[Channel] = (), agents: Sequence[Agent] = ()
) -> AsyncGenerator[Served]:
    """A gateway that listens for as long as the block lasts."""
    tokens = TokenBook(Path(settings.gateway.token_file), Path(settings.gateway.users_file))
    tokens.ensure()
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    async with open_gateway(settings, agents=agents) as app:
        serving = asyncio.create_task(serve(app.gateway, tokens, channels, on_ready=ready.set_result))
        try:
            await asyncio.wait((ready, serving), return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                serving.result()
            yield Served(ready.result(), app.gateway, tokens, serving)
        finally:
            serving.cancel()
            await asyncio.wait((serving,))
