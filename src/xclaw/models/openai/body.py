"""The body of one request, let go once it is sent.

A model thinks for seconds or minutes, and what it was asked is as long as the conversation: a thousand
runs that wait for an answer need not hold a thousand conversations twice.
"""

import aiohttp
from aiohttp.abc import AbstractStreamWriter

_PART_BYTES = 256 * 1024
"""A longer body goes out in parts, so that it does not fill the transport's buffer."""


class RequestBody(aiohttp.Payload):
    """Sent once: an HTTP client must not repeat a model call on its own."""

    def __init__(self, content: bytes) -> None:
        super().__init__(None, content_type="application/json")
        self._content = content
        self._length = len(content)

    @property
    def size(self) -> int:
        return self._length

    @property
    def autoclose(self) -> bool:
        return True

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return self._content.decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        content, self._content = self._content, b""
        if len(content) != self._length:
            raise aiohttp.ClientPayloadError("the body of a model call is sent only once")
        if self._length <= _PART_BYTES:
            await writer.write(content)
            return
        for at in range(0, self._length, _PART_BYTES):
            await writer.write(content[at : at + _PART_BYTES])
