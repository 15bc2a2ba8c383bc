"""Which hosts may be reached from a sandbox, and at which addresses: those of the open internet only."""

import asyncio
import ipaddress
import re
import socket
from collections.abc import Sequence

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
PORTS = (80, 443)
"""What an entry without a port allows."""
_NAME = re.compile(r"(?:\*\.)?[a-z0-9_](?:[a-z0-9._-]*[a-z0-9])?", re.ASCII)
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_NAT64_LOCAL = ipaddress.ip_network("64:ff9b:1::/48")


class AllowedHosts:
    """The allow-list of one policy: "name", "name:port", "*.name" for what is below a name."""

    def __init__(self, entries: Sequence[str], *, allow_private: bool = False) -> None:
        """Raises `ValueError` for an entry that names no host."""
        self._allow_private = allow_private
        self._entries = [_parsed(entry) for entry in entries]

    def allows(self, host: str, port: int) -> bool:
        name = _normal(host)
        return any(
            port in ports and (name == known or (known.startswith("*.") and name.endswith(known[1:])))
            for known, ports in self._entries
        )

    async def addresses(self, host: str, port: int) -> list[tuple[str, int]]:
        """Where to connect to. A name is looked up for each connection, and only what was looked at is used.

        Raises:
            PermissionError: not in the list, or it leads to this machine or a private network.
            OSError: there is no such host.
        """
        if not self.allows(host, port):
            raise PermissionError(f"{host}:{port} is not among the hosts that this sandbox may reach")
        found = await asyncio.get_running_loop().getaddrinfo(_normal(host), port, type=socket.SOCK_STREAM)
        places = [(str(place[0]), int(place[1])) for *_, place in found]
        for text, _ in places:
            if not self._allow_private and not is_public(text):
                raise PermissionError(
                    f"{host} leads to {text}, an address of this machine or a private network"
                )
        return places


def is_public(text: str) -> bool:
    """Whether an address is on the open internet, also when it is one address written inside another."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        inner = _inner(address)
        if inner is not None:
            return is_public(str(inner))
        if address.scope_id is not None or address.is_site_local or address in _NAT64_LOCAL:
            return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


def _inner(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that an IPv6 one leads to: mapped, translated or tunnelled."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if address in _NAT64 or int(address) >> 32 == 0:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return None


def _parsed(entry: str) -> tuple[str, tuple[int, ...]]:
    name, colon, port = entry.strip().lower().rpartition(":")
    if not colon:
        name, ports = entry.strip().lower(), PORTS
    elif port.isascii() and port.isdigit() and 0 < int(port) < 65_536:
        ports = (int(port),)
    else:
        raise ValueError(f"{entry!r} is no host that can be allowed: write name, name:port or *.name")
    if not _NAME.fullmatch(name):
        raise ValueError(f"{entry!r} is no host that can be allowed: write name, name:port or *.name")
    return name, ports


def _normal(host: str) -> str:
    return host.lower().rstrip(".")
