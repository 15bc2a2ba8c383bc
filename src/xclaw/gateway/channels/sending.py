"""Frames to one client, in order, never more of them than it reads."""

import asyncio

from starlette.types import Send

from xclaw.gateway.channels.line import SLOW_CLIENT, Line
from xclaw.gateway.wire import Frame, encode


class ClientGone(Exception):
    """The connection has ended."""


class Sender:
    """Of one connection. Who sends waits for the client, first come, first served.

    A client that takes nothing of what there is to read for `stall_s` loses its connection.
    """

    def __init__(self, send: Send, line: Line, stall_s: float) -> None:
        self._send = send
        self._line = line
        self._stall_s = stall_s
        self._turn = asyncio.Lock()

    async def accept(self) -> None:
        """Open the connection. Raises `ClientGone`."""
        try:
            await self._send({"type": "websocket.accept"})
        except OSError:
            raise ClientGone from None

    async def send(self, frame: Frame) -> None:
        """Raises `ClientGone`."""
        text = encode(frame)
        async with self._turn:
            while self._line.full:
                await self._progress()
            try:
                await self._send({"type": "websocket.send", "text": text})
            except OSError:
                raise ClientGone from None

    def hang_up(self, code: int, reason: str) -> None:
        """Close without waiting. A reason is at most 123 bytes."""
        self._line.hang_up(code, reason)

    async def _progress(self) -> None:
        unsent = self._line.unsent_bytes
        try:
            async with asyncio.timeout(self._stall_s):
                await self._line.room()
        except TimeoutError:
            if self._line.unsent_bytes >= unsent:
                self.hang_up(SLOW_CLIENT, "you read too slowly: connect again with the last id you have")
