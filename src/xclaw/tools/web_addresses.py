"""Which addresses may be fetched: what a URL says, and where its name leads when it is looked up.

A name is looked up once, and the connection goes to the very address that was looked at, so that a name
which leads elsewhere a moment later gains nothing.
"""

import asyncio
import ipaddress
import re
import socket
from dataclasses import dataclass
from urllib.parse import quote, urljoin, urlsplit

from aiohttp.abc import AbstractResolver, ResolveResult

from xclaw.contracts.addresses import is_public
from xclaw.contracts.errors import ToolFailed

MAX_URL = 4_000
_SAFE = "%/:=&?~#+!$,;'@()*[]"
_HOST = re.compile(r"[a-z0-9_](?:[a-z0-9._-]*[a-z0-9])?\.?|\[[0-9a-f:.]+\]", re.ASCII)


class Forbidden(OSError):
    """An address that may not be fetched; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Target:
    """A URL that was understood in exactly one way."""

    scheme: str
    host: str
    """As it goes on the wire: lower case, IDNA; an IPv6 address in brackets."""
    port: int | None
    path: str
    """With the query, escaped."""

    def __str__(self) -> str:
        port = f":{self.port}" if self.port is not None else ""
        return f"{self.scheme}://{self.host}{port}{self.path}"


def target_of(url: str) -> Target:
    """Raises `ToolFailed` for what is no address of a page, or could be read in several ways."""
    text = url.strip()
    if len(text) > MAX_URL:
        raise ToolFailed(f"the URL has {len(text):,} characters; at most {MAX_URL:,} are possible")
    if not text.isprintable() or re.search(r"[\s\\]", text):
        raise ToolFailed("the URL holds spaces, backslashes or control characters; escape them")
    try:
        parts = urlsplit(text)
        port = parts.port
        host = parts.hostname or ""
    except ValueError as error:
        raise ToolFailed(f"that is no URL: {error}") from None
    if parts.scheme not in ("http", "https"):
        raise ToolFailed("only http:// and https:// can be fetched")
    if "@" in parts.netloc:
        raise ToolFailed("a URL with a user name or a password in it is not fetched")
    path = quote(f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}", safe=_SAFE)
    return Target(parts.scheme, _host(host), port, path.replace("#", "%23"))


def redirected(target: Target, location: str) -> Target:
    """Where a redirect leads. Raises `ToolFailed` for what cannot be followed."""
    return target_of(urljoin(str(target), location.strip()))


def _host(host: str) -> str:
    try:
        wire = host.encode("idna").decode("ascii").lower() if not host.isascii() else host.lower()
    except UnicodeError:
        raise ToolFailed("the host of the URL is no name") from None
    if ":" in wire:
        wire = f"[{wire}]"
    if not wire or len(wire) > 253 or not _HOST.fullmatch(wire):
        raise ToolFailed("the URL names no host, or one that could be read in several ways")
    return wire


class CheckedResolver(AbstractResolver):
    """Looks a name up, once for each connection, and gives out only what may be fetched."""

    def __init__(self, *, allow_private: bool) -> None:
        self._allow_private = allow_private

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Raises `Forbidden` if any of the addresses may not be fetched, `OSError` when there is none."""
        found = await asyncio.get_running_loop().getaddrinfo(
            host, port, type=socket.SOCK_STREAM, family=family
        )
        results: list[ResolveResult] = []
        for kind, _, protocol, _, place in found:
            address = str(place[0])
            check_address(address, allow_private=self._allow_private)
            results.append(
                ResolveResult(
                    hostname=host,
                    host=address,
                    port=port,
                    family=kind,
                    proto=protocol,
                    flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
                )
            )
        if not results:
            raise OSError(f"{host} has no address")
        return results

    async def close(self) -> None:
        return


def check_address(text: str, *, allow_private: bool) -> None:
    """Raises `Forbidden` for an address that may not be fetched."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        raise Forbidden(f"{text[:60]} is no address") from None
    if not allow_private and not is_public(text):
        raise Forbidden(
            f"{text} is an address of this machine or of a private network; web.allow_private lets them be fetched"
        )


def check_literal(target: Target, *, allow_private: bool) -> None:
    """A host that is an address is connected to without being looked up, so it is checked here. Raises
    `Forbidden`."""
    host = target.host.strip("[]").rstrip(".")
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return
    check_address(host, allow_private=allow_private)
