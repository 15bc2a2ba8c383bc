"""Which hosts may be reached from a sandbox, and at which addresses: those of the open internet only."""

import asyncio
import contextlib
import re
import socket
from collections.abc import Sequence

from xclaw.contracts.addresses import is_public

PORTS = (80, 443)
"""What an entry without a port allows."""
LOOKUPS = 2
"""Names of one sandbox that are looked up at once."""
_Found = tuple[
    socket.AddressFamily,
    socket.SocketKind,
    int,
    str,
    tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes],
]
_NAME = re.compile(r"(?:\*\.)?[a-z0-9_](?:[a-z0-9._-]*[a-z0-9])?", re.ASCII)


class AllowedHosts:
    """The allow-list of one policy: "name", "name:port", "*.name" for what is below a name."""

    def __init__(self, entries: Sequence[str], *, allow_private: bool = False) -> None:
        """Raises `ValueError` for an entry that names no host."""
        self._allow_private = allow_private
        self._entries = [_parsed(entry) for entry in entries]
        self._lookups = asyncio.Semaphore(LOOKUPS)

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
        found = await self._looked_up(_normal(host), port)
        places = [(str(place[0]), int(place[1])) for *_, place in found]
        for text, _ in places:
            if not self._allow_private and not (is_public(text) and not is_own(text)):
                raise PermissionError(
                    f"{host} leads to {text}, an address of this machine or a private network"
                )
        return places

    async def _looked_up(self, name: str, port: int) -> list[_Found]:
        """A lookup takes a thread of those that the whole process has, also when nobody waits for it any more."""
        await self._lookups.acquire()
        looking = asyncio.ensure_future(
            asyncio.get_running_loop().getaddrinfo(name, port, type=socket.SOCK_STREAM)
        )
        looking.add_done_callback(self._looked)
        return await asyncio.shield(looking)

    def _looked(self, looking: asyncio.Future[list[_Found]]) -> None:
        self._lookups.release()
        if not looking.cancelled():
            looking.exception()  # whoever still waits has it, too


def is_own(address: str) -> bool:
    """Whether it is this machine's, however public: what is sent to oneself comes from the same address."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as asking:
        asking.connect((address, 53))  # sends nothing
        return asking.getsockname()[0] == address
    return False


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
