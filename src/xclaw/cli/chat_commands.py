"""Commands of a chat that the gateway answers: lists, the team, the router."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from xclaw.cli.gateway_api import NotThere, session_path
from xclaw.cli.session_lines import resident_lines, route_lines, session_line, task_line
from xclaw.cli.text import one_line, printable
from xclaw.contracts.errors import UsageError

if TYPE_CHECKING:
    from xclaw.cli.gateway_api import GatewayApi, JsonValue


async def agents(api: "GatewayApi", _session: str, _rest: str) -> None:
    rows = await api.get("/agents")
    width = max((len(one_line(str(row["name"]), 30)) for row in rows), default=0)
    for row in rows:
        source = "" if row["source"] == "built-in" else f"  ({printable(str(row['source']))})"
        print(f"{one_line(str(row['name']), 30):{width}}  {one_line(str(row['description']), 90)}{source}")


async def team(api: "GatewayApi", session: str, _rest: str) -> None:
    rows = await _of_session(api, session, "/team")
    if not rows:
        print("no expert was asked in this session yet")
    for row in rows:
        print("\n".join(resident_lines(row)))


async def tasks(api: "GatewayApi", session: str, _rest: str) -> None:
    view = await _of_session(api, session, "")
    if not view or not view["runs"]:
        print("nothing has run in this session yet")
        return
    for row in view["runs"]:
        print(task_line(row))


async def sessions(api: "GatewayApi", session: str, _rest: str) -> None:
    rows = await api.get("/sessions", limit="50")
    if not rows:
        print("no sessions yet")
    for row in rows:
        mark = "*" if row["session"] == session else " "
        print(f"{mark} {session_line(row)}")


async def rename(api: "GatewayApi", session: str, rest: str) -> None:
    if not rest:
        raise UsageError("write the title behind it: /rename TITLE")
    view = await api.patch(session_path(session), {"title": rest})
    print(f"this session is called {one_line(str(view['title']), 200)!r} now")


async def route(api: "GatewayApi", _session: str, rest: str) -> None:
    if not rest:
        raise UsageError("write the message behind it: /route TEXT")
    print("\n".join(route_lines(await api.post("/route", {"text": rest}))))


async def _of_session(api: "GatewayApi", session: str, path: str) -> "JsonValue":
    """What the gateway says of a session; nothing for one in which nothing was said yet."""
    try:
        return await api.get(session_path(session) + path)
    except NotThere:
        return None


ASKED_OF_GATEWAY: dict[str, Callable[["GatewayApi", str, str], Awaitable[None]]] = {
    "/agents": agents,
    "/team": team,
    "/tasks": tasks,
    "/sessions": sessions,
    "/rename": rename,
    "/route": route,
}
