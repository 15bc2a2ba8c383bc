"""Which names the gateway answers to, and which web pages may talk to it.

A web page that somebody visits can send requests to loopback, and by DNS rebinding under a name of its
own. The first shows in Origin, the second in Host.
"""

import ipaddress
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from xclaw.contracts.errors import UsageError
from xclaw.gateway.refusals import Refusal

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_DEFAULT_PORTS = {"http": "80", "https": "443"}
_AUTHORITY = re.compile(r"(?P<name>[a-z0-9_.-]+|\[[0-9a-f:.]+\])(?::(?P<port>[0-9]{1,5}))?", re.ASCII)
_ORIGIN = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<authority>[^/?#@\s]+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Place:
    """A host and a port; an empty port is the default one of its scheme, or any."""

    name: str
    port: str


class Origins:
    """Decides by Host and Origin alone. Names are compared as they are written: nothing is looked up."""

    def __init__(self, host: str, allowed_hosts: Iterable[str], allowed_origins: Iterable[str]) -> None:
        """`host` is where the gateway listens. Raises `UsageError` for an entry that names nothing."""
        hosts = [*LOOPBACK, *_own(host)]
        self._hosts = [_required(name, "gateway.allowed_hosts") for name in (*hosts, *allowed_hosts)]
        self._origins = {_required_origin(origin) for origin in allowed_origins}

    def refusal(self, headers: Sequence[tuple[bytes, bytes]]) -> Refusal | None:
        """Why a request with these headers comes from where it should not; None when it may come in."""
        hosts = _values(headers, b"host")
        place = _place(hosts[0]) if len(hosts) == 1 else None
        if place is None or not any(_covers(allowed, place) for allowed in self._hosts):
            shown = ", ".join(hosts)[:200]
            return Refusal(
                403,
                "host_not_allowed",
                f"this gateway is not {shown!r}. If that is a name of it, add it to gateway.allowed_hosts.",
            )
        for origin in _values(headers, b"origin"):
            if not self._may_call(origin, place):
                return Refusal(
                    403,
                    "origin_not_allowed",
                    f"pages of {origin[:200]!r} may not use this gateway. If that one should, add it to "
                    "gateway.allowed_origins.",
                )
        return None

    def _may_call(self, origin: str, host: _Place) -> bool:
        """Whether a page of that origin may: one of the gateway itself, as Host names it, or an allowed one.

        The scheme is not compared with the connection's: behind a proxy with TLS that is always http.
        """
        parsed = _parsed(origin)
        if parsed is None:
            return False
        scheme, place = parsed
        if (scheme, place) in self._origins:
            return True
        default = _DEFAULT_PORTS.get(scheme)
        return default is not None and place == _Place(host.name, "" if host.port == default else host.port)


def _own(host: str) -> list[str]:
    """The name of an address to listen on; none for all addresses."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return [host]
    if address.is_unspecified:
        return []
    return [f"[{address}]" if address.version == 6 else str(address)]


def _values(headers: Sequence[tuple[bytes, bytes]], wanted: bytes) -> list[str]:
    return [value.decode("latin-1").strip() for name, value in headers if name.lower() == wanted]


def _place(authority: str) -> _Place | None:
    found = _AUTHORITY.fullmatch(authority.lower())
    return _Place(found["name"], cast("str | None", found["port"]) or "") if found else None


def _parsed(origin: str) -> tuple[str, _Place] | None:
    """Scheme and place of an origin, without a port that is its scheme's default."""
    found = _ORIGIN.fullmatch(origin.lower())
    place = _place(found["authority"]) if found else None
    if found is None or place is None:
        return None
    scheme = found["scheme"]
    return scheme, _Place(place.name, "" if place.port == _DEFAULT_PORTS.get(scheme) else place.port)


def _covers(allowed: _Place, place: _Place) -> bool:
    return allowed.name == place.name and allowed.port in ("", place.port)


def _required(host: str, setting: str) -> _Place:
    place = _place(host)
    if place is None:
        raise UsageError(
            f"`{setting}`: {host!r} names no host. Write for example xclaw.example or [::1]:8443"
        )
    return place


def _required_origin(origin: str) -> tuple[str, _Place]:
    parsed = _parsed(origin)
    if parsed is None:
        raise UsageError(
            f"`gateway.allowed_origins`: {origin!r} is no origin. Write for example https://xclaw.example"
        )
    return parsed
