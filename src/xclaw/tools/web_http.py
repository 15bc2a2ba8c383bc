"""Fetches one page: bounded in time, size and redirects, from addresses that may be fetched."""

import asyncio
import zlib
from dataclasses import dataclass
from http import HTTPStatus

import aiohttp
from yarl import URL

from xclaw.contracts.errors import ToolFailed
from xclaw.tools.web_addresses import (
    CheckedResolver,
    Forbidden,
    Target,
    check_literal,
    redirected,
    target_of,
)
from xclaw.tools.web_settings import WebSettings

REDIRECTS = frozenset({301, 302, 303, 307, 308})
CONNECT_S = 10.0
MAX_HEADER = 16_384
READ_BYTES = 65_536
ACCEPT = "text/html,application/xhtml+xml,text/markdown,text/plain,application/json;q=0.9,*/*;q=0.1"


@dataclass(frozen=True, slots=True)
class Fetched:
    """What came back."""

    url: str
    """Where it came from in the end."""
    content_type: str
    """In lower case, without parameters; empty when the server did not say."""
    charset: str
    data: bytes
    is_cut: bool
    """There was more than may be read."""
    moved_to: str = ""
    """Another host that the page says it is at; nothing was fetched then."""


async def fetch(url: str, settings: WebSettings, wanted: "Wanted") -> Fetched:
    """Raises `ToolFailed` that says why there is no page. Cancelling it closes the connection."""
    target = target_of(url)
    try:
        async with asyncio.timeout(settings.timeout_s), _session(settings) as session:
            return await _followed(session, target, settings, wanted)
    except TimeoutError:
        raise ToolFailed(f"{target} did not answer within {settings.timeout_s:g} s") from None
    except Forbidden as failure:
        raise ToolFailed(f"{target} is not fetched: {failure}") from None
    except aiohttp.ClientConnectorError as failure:
        cause = failure.os_error
        if isinstance(cause, Forbidden):
            raise ToolFailed(f"{target} is not fetched: {cause}") from None
        raise ToolFailed(f"{target} cannot be reached: {cause.strerror or cause}") from None
    except (aiohttp.ClientError, OSError, ValueError) as failure:
        raise ToolFailed(
            f"{target} cannot be fetched: {type(failure).__name__}: {str(failure)[:200]}"
        ) from None


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which kinds of content are read at all."""

    prefixes: tuple[str, ...]
    names: frozenset[str]
    suffixes: tuple[str, ...]
    hints: dict[str, str]
    """What to say of a kind that is not read."""

    def refuse(self, target: Target, content_type: str) -> None:
        """Raises `ToolFailed` for content that is not read."""
        if (
            not content_type
            or content_type.startswith(self.prefixes)
            or content_type in self.names
            or content_type.endswith(self.suffixes)
        ):
            return
        hint = self.hints.get(content_type, "only text, HTML, XML and JSON can be read")
        raise ToolFailed(f"{target} is {content_type[:80]}: {hint}")


def _session(settings: WebSettings) -> aiohttp.ClientSession:
    """One for each page: nothing of one fetch, no cookie and no connection, is there in the next."""
    connector = aiohttp.TCPConnector(
        resolver=CheckedResolver(allow_private=settings.allow_private), use_dns_cache=False, force_close=True
    )
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trust_env=False,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
        headers={"User-Agent": settings.user_agent, "Accept": ACCEPT, "Accept-Encoding": "gzip, deflate"},
        max_line_size=MAX_HEADER,
        max_field_size=MAX_HEADER,
    )


async def _followed(
    session: aiohttp.ClientSession, target: Target, settings: WebSettings, wanted: Wanted
) -> Fetched:
    for _ in range(settings.max_redirects + 1):
        check_literal(target, allow_private=settings.allow_private)
        async with session.get(URL(str(target), encoded=True), allow_redirects=False) as response:
            location = response.headers.get("Location", "")
            if response.status not in REDIRECTS or not location:
                return await _read(response, target, settings, wanted)
        following = redirected(target, location)
        if following.host != target.host:
            # Whoever may fetch one host was not asked about another.
            return Fetched(str(target), "", "", b"", False, str(following))
        if target.scheme == "https" and following.scheme == "http":
            raise ToolFailed(f"{target} leads to a page without encryption, which is not followed")
        target = following
    raise ToolFailed(f"more than {settings.max_redirects} redirects, the last to {target}")


async def _read(
    response: aiohttp.ClientResponse, target: Target, settings: WebSettings, wanted: Wanted
) -> Fetched:
    if response.status >= HTTPStatus.BAD_REQUEST or response.status < HTTPStatus.OK:
        raise ToolFailed(f"{target} answered {response.status} {_phrase(response.status)}".rstrip())
    stated = response.headers.get("Content-Type", "")
    content_type = stated.partition(";")[0].strip().lower()
    wanted.refuse(target, content_type)
    unpack = _unpacker(target, response.headers.get("Content-Encoding", ""))
    data = bytearray()
    async for chunk in response.content.iter_chunked(READ_BYTES):
        data += unpack.take(chunk, settings.max_bytes + 1 - len(data))
        if len(data) > settings.max_bytes:
            break
    is_cut = len(data) > settings.max_bytes
    return Fetched(
        str(target), content_type, response.charset or "", bytes(data[: settings.max_bytes]), is_cut
    )


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


class _Plain:
    def take(self, chunk: bytes, most: int) -> bytes:
        return chunk[:most]


class _Packed:
    """Unpacks no more than is asked for, however small what came was."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._unpacker = zlib.decompressobj(window)
        self._began = False

    def take(self, chunk: bytes, most: int) -> bytes:
        """Raises `ToolFailed` for what was not packed as it said."""
        try:
            data = self._unpacker.decompress(chunk, most)
        except zlib.error:
            if self._began or self._window != zlib.MAX_WBITS:
                raise ToolFailed("the page is not compressed as it says it is") from None
            # Many servers call it "deflate" and leave the header out.
            self._window = -zlib.MAX_WBITS
            self._unpacker = zlib.decompressobj(self._window)
            return self.take(chunk, most)
        self._began = True
        return data


def _unpacker(target: Target, encoding: str) -> _Plain | _Packed:
    match encoding.strip().lower():
        case "" | "identity":
            return _Plain()
        case "gzip" | "x-gzip":
            return _Packed(16 + zlib.MAX_WBITS)
        case "deflate":
            return _Packed(zlib.MAX_WBITS)
        case other:
            raise ToolFailed(f"{target} is compressed as {other[:40]!r}, which was not asked for")
