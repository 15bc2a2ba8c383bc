"""Sessions and teams for a command: through the gateway that runs, else in the journal itself."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from xclaw.cli.gateway_api import GatewayApi, JsonValue, session_path
from xclaw.contracts.users import OWNER

if TYPE_CHECKING:
    from xclaw.app import App
    from xclaw.settings import Settings

ExportFormat = Literal["markdown", "jsonl"]


class Desk(Protocol):
    """What can be done with sessions, by the names that their user gave them; answers are JSON.

    Raises `UsageError` for a session that is not there or is busy.
    """

    async def list(self, limit: int) -> JsonValue: ...

    async def show(self, session: str) -> JsonValue: ...

    async def rename(self, session: str, title: str) -> JsonValue: ...

    async def delete(self, session: str) -> None: ...

    async def export(self, session: str, form: ExportFormat) -> str: ...

    async def team(self, session: str) -> JsonValue: ...

    async def reset(self, session: str, agent: str) -> None: ...


def at_desk(settings: "Settings", body: Callable[[Desk], Awaitable[int]]) -> int:
    """Run `body` with whichever desk there is; answers the exit code."""
    from xclaw.cli.opening import run_to_end

    return run_to_end(_at_desk(settings, body))


async def _at_desk(settings: "Settings", body: Callable[[Desk], Awaitable[int]]) -> int:
    from xclaw.cli.gateway_api import gateway_api
    from xclaw.cli.gateway_finder import owner_token, settled
    from xclaw.cli.gateway_link import Reach
    from xclaw.cli.opening import opened

    running = await settled(settings)
    if running is not None and running.workspace == settings.workspace.root:
        async with gateway_api(Reach(running.url, owner_token(settings))) as api:
            return await body(_GatewayDesk(api))
    async with opened(settings) as app:
        return await body(_JournalDesk(app))


class _GatewayDesk:
    """The desk of a gateway, over HTTP."""

    def __init__(self, api: GatewayApi) -> None:
        self._api = api

    async def list(self, limit: int) -> JsonValue:
        return await self._api.get("/sessions", limit=str(limit))

    async def show(self, session: str) -> JsonValue:
        return await self._api.get(session_path(session))

    async def rename(self, session: str, title: str) -> JsonValue:
        return await self._api.patch(session_path(session), {"title": title})

    async def delete(self, session: str) -> None:
        await self._api.delete(session_path(session))

    async def export(self, session: str, form: ExportFormat) -> str:
        return await self._api.text(f"{session_path(session)}/export", format=form)

    async def team(self, session: str) -> JsonValue:
        return await self._api.get(f"{session_path(session)}/team")

    async def reset(self, session: str, agent: str) -> None:
        from urllib.parse import quote

        await self._api.delete(f"{session_path(session)}/team/{quote(agent, safe='')}")


class _JournalDesk:
    """The same without a gateway."""

    def __init__(self, app: "App") -> None:
        from xclaw.gateway.desk import SessionDesk

        self._desk = SessionDesk(app.journal.sessions, app.journal, app.runs, app.agents)

    async def list(self, limit: int) -> JsonValue:
        return msgspec.to_builtins(await self._desk.list(OWNER, limit=limit))

    async def show(self, session: str) -> JsonValue:
        return msgspec.to_builtins(await self._desk.show(_key(session)))

    async def rename(self, session: str, title: str) -> JsonValue:
        return msgspec.to_builtins(await self._desk.rename(_key(session), title))

    async def delete(self, session: str) -> None:
        await self._desk.delete(_key(session))

    async def export(self, session: str, form: ExportFormat) -> str:
        pieces: AsyncIterator[str] = await self._desk.export(_key(session), form)
        return "".join([piece async for piece in pieces])

    async def team(self, session: str) -> JsonValue:
        return msgspec.to_builtins(await self._desk.team(_key(session)))

    async def reset(self, session: str, agent: str) -> None:
        await self._desk.reset(_key(session), agent)


def _key(session: str) -> str:
    from xclaw.gateway.names import conversation_key

    return conversation_key(session, OWNER)
