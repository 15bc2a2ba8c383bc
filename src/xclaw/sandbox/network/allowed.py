"""Which hosts may be reached from a sandbox, and at which addresses: those of the open internet only."""

import asyncio
import re
import socket
from collections.abc import Sequence

from xclaw.contracts.addresses import is_public

PORTS = (80, 443)
"""What an entry without a port allows."""
_NAME = re.compile(r"(?:\*\.)?[a-z0-9_](?:[a-z0-9._-]*[a-z0-9])?", re.ASCII)


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
