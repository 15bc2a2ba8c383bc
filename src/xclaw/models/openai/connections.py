"""The one pool of HTTP connections that all models of a process share."""

import asyncio

import aiohttp

_KEEP_ALIVE_S = 15.0


class Connections:
    """Owns a `ClientSession`, made on first use and again after `close`. No limit on connections:
    the models' own limits hold, and a pool that queues is a hidden second one."""

    __slots__ = ("_connect_timeout_s", "_loop", "_session")

    def __init__(self, connect_timeout_s: float = 10.0) -> None:
        self._connect_timeout_s = connect_timeout_s
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def session(self) -> aiohttp.ClientSession:
        """The session of the running loop."""
        loop = asyncio.get_running_loop()
        if self._session is None or self._session.closed or self._loop is not loop:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE_S),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._connect_timeout_s),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=True,
            )
            self._loop = loop
        return self._session

    async def close(self) -> None:
        """Close all connections; requests under way fail. Safe to repeat."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()
