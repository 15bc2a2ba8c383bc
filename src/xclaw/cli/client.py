"""A chat's side of a gateway: its link, its session and its questions, on one event loop."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Protocol
from urllib.parse import quote

import aiohttp

from xclaw.cli.gateway_api import GatewayApi, session_path
from xclaw.cli.gateway_link import GatewayLink, Reach
from xclaw.cli.messages import Ended
from xclaw.cli.stage import SessionStage
from xclaw.cli.talk import Standing, Talk
from xclaw.contracts.approvals import Answer
from xclaw.contracts.errors import XclawError
from xclaw.contracts.events import Entry
from xclaw.gateway.wire import Hello, Say, ServerFrame


class Finder(Protocol):
    """Knows where the gateway is; may start one."""

    @property
    def patience_s(self) -> float | None:
        """For how long one that does not answer is tried again; None: for good."""
        ...

    async def find(self) -> Reach:
        """Raises `UsageError` when there is none and none can be started."""
        ...


class Client:
    """Made by `opened_client`, which also ends it."""

    def __init__(
        self, finder: Finder, http: aiohttp.ClientSession, session: str, stage: SessionStage
    ) -> None:
        self._finder = finder
        self._http = http
        self._reach: Reach | None = None
        self._failure: Exception | None = None
        self._connected = asyncio.Event()
        self.stage = stage
        self._link = GatewayLink(self._find, self, stage.note, finder.patience_s)
        self.talk = Talk(session, self._link.send, stage, self)

    async def keep(self) -> None:
        """Keep the link up. What ends it for good is told to whoever waits for an answer."""
        try:
            await self._link.keep()
        except Exception as error:
            self._failure = error
            self._connected.set()
            self.talk.fail(error)

    async def ready(self) -> None:
        """Wait for the first connection. Raises what prevents it for good."""
        await self._connected.wait()
        if self._failure is not None:
            raise self._failure

    async def ask(self, say: Say) -> Ended:
        """Say something and wait for what becomes of it. Cancelling it forgets the answer, not the run.

        Raises `XclawError` when the gateway is lost for good.
        """
        if self._failure is not None:
            raise self._failure
        return await self.talk.ask(say).ended

    async def with_api(self, body: Callable[[GatewayApi], Awaitable[None]]) -> None:
        """Ask the gateway over HTTP. Raises `XclawError`."""
        await body(self._api())

    async def move_to(self, session: str) -> None:
        """Go on with another session."""
        self.talk.move_to(session)

    async def answer(self, approval_id: str, answer: Answer) -> None:
        """Decide an approval. Raises `UsageError` for one that waits no longer."""
        body = {
            "decision": answer.decision,
            "reason": answer.reason,
            "arguments": answer.arguments,
            "rule": answer.rule,
        }
        await self._api().post(f"/approvals/{quote(approval_id, safe='')}", body)

    async def stop_session(self, session: str, reason: str) -> None:
        """End what runs in a session, and wait for the end. A gateway that does not answer is left alone."""
        with suppress(XclawError):
            await self._api().post(f"{session_path(session)}/cancel", {"reason": reason})

    # --- Listener of the link

    def connected(self, hello: Hello) -> None:
        self._connected.set()
        self.talk.connected(hello)

    def heard(self, frame: ServerFrame) -> None:
        self.talk.heard(frame)

    def cut(self) -> None:
        self.talk.cut()

    # --- Records of the talk

    async def standing(self, request: str) -> Standing:
        answer = await self._api().get(f"/messages/{quote(request, safe='')}")
        return Standing(str(answer["status"]), str(answer["run"]), str(answer["reason"]))

    async def history(self, root_id: str) -> list[Entry]:
        return await self._api().entries(root_id)

    async def drop(self, request: str) -> None:
        await self._api().delete(f"/messages/{quote(request, safe='')}")

    async def _find(self) -> Reach:
        self._reach = await self._finder.find()
        return self._reach

    def _api(self) -> GatewayApi:
        if self._reach is None:
            raise XclawError("there is no connection to a gateway yet")
        return GatewayApi(self._http, self._reach)


@asynccontextmanager
async def opened_client(finder: Finder, session: str, stage: SessionStage) -> AsyncGenerator[Client]:
    """A client that is connected, for as long as the block lasts."""
    async with aiohttp.ClientSession() as http:
        client = Client(finder, http, session, stage)
        stage.on_closed = lambda: client.talk.interrupt("nobody reads the output")
        keeping = asyncio.create_task(client.keep())
        try:
            await client.ready()
            yield client
        finally:
            keeping.cancel()
            await asyncio.wait([keeping])
            stage.close()
