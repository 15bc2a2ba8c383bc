"""A web server on this machine for tests of fetching."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from tools.workspaces_for_tools import make_setup
from xclaw.contracts.errors import ToolFailed
from xclaw.tools.web import web_fetch_tool
from xclaw.tools.web_settings import WebSettings

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def served(handler: Handler) -> AsyncGenerator[str]:
    """The address of a server that answers everything with `handler`."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


async def fetched(root: Path, url: str, settings: WebSettings, **more: object) -> str:
    """What the tool answers, or "failed: " and why not."""
    try:
        output = await web_fetch_tool(settings).run({"url": url, **more}, make_setup(root).context)
    except ToolFailed as failure:
        return f"failed: {failure}"
    return output.content
