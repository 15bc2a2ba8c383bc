"""The way out of a sandbox leads to allowed hosts of the open internet only (SPEC F3)."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import cast

import pytest

from sandbox.opening import opener
from xclaw.contracts.addresses import is_public
from xclaw.contracts.errors import SandboxUnavailable
from xclaw.sandbox.bubblewrap.backend import BubblewrapBackend
from xclaw.sandbox.network.allowed import AllowedHosts, is_own
from xclaw.sandbox.network.proxy import serve_proxy, wanted_by
from xclaw.sandbox.settings import SandboxSettings
from xclaw.testing.sandbox_harness import POLICY, Said, run_inside

FETCH = """exec /usr/bin/python3 -I - <<'END'
import urllib.request, urllib.error
try:
    print(urllib.request.urlopen('URL', timeout=10).read().decode())
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
except OSError as error:
    print('failed', error)
END"""


@asynccontextmanager
async def website(redirect: str = "") -> AsyncGenerator[int]:
    """An HTTP server of this machine; answers its port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        status = f"302 Found\r\nLocation: {redirect}" if redirect and b"/moved" in head else "200 OK"
        writer.write(f"HTTP/1.1 {status}\r\nConnection: close\r\n\r\nhello from outside".encode())
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


async def fetched(entries: tuple[str, ...], url: str, *, allow_private: bool) -> Said:
    backend = BubblewrapBackend(SandboxSettings(), allow_private=allow_private)
    async with asyncio.timeout(60), opener(backend)(replace(POLICY, network=entries)) as opened:
        return await run_inside(opened.sandbox, FETCH.replace("URL", url))


def test_an_allowed_host_is_reached() -> None:
    """SPEC F3."""

    async def main() -> None:
        async with website() as port:
            said = await fetched(
                (f"localhost:{port}",), f"http://localhost:{port}/page?x=1", allow_private=True
            )
            assert said.output == b"hello from outside\n"

    asyncio.run(main())


def test_what_is_not_in_the_list_is_not_reached() -> None:
    """SPEC F3: another name, another port; a redirect is a connection like any other."""

    async def main() -> None:
        async with website() as other, website(f"http://localhost:{other}/") as port:
            for url in (
                f"http://localhost:{other}/",
                f"http://127.0.0.1:{port}/",
                f"http://localhost:{port}/moved",
            ):
                said = await fetched((f"localhost:{port}",), url, allow_private=True)
                assert b"hello" not in said.output
                assert b"403" in said.output, said

    asyncio.run(main())


def test_a_name_that_leads_to_this_machine_is_not_reached() -> None:
    """SPEC F3: also when it is in the list."""

    async def main() -> None:
        async with website() as port:
            said = await fetched((f"localhost:{port}",), f"http://localhost:{port}/", allow_private=False)
            assert said.output.startswith(b"403 ")
            assert b"private network" in said.output

    asyncio.run(main())


def test_nothing_goes_around_the_proxy() -> None:
    """SPEC F3: there is still no interface but the sandbox's own."""

    async def main() -> None:
        async with (
            website() as port,
            opener(BubblewrapBackend(SandboxSettings(), allow_private=True))(
                replace(POLICY, network=(f"localhost:{port}",))
            ) as opened,
        ):
            script = FETCH.replace("URL", f"http://localhost:{port}/")
            said = await run_inside(opened.sandbox, f"unset http_proxy HTTP_PROXY ALL_PROXY; {script}")
            assert said.output.startswith(b"failed"), said
            said = await run_inside(opened.sandbox, "cat /proc/net/dev; cat /proc/net/route")
            assert [line.split(":")[0].strip() for line in said.text.splitlines() if ":" in line] == ["lo"]

    asyncio.run(main())


def test_a_tunnel_passes_bytes_both_ways() -> None:
    """SPEC F3: CONNECT, as for https."""

    async def main() -> None:
        async with asyncio.timeout(20), website() as port:
            listening = socket.create_server(("127.0.0.1", 0))
            place = listening.getsockname()
            async with await serve_proxy(listening, AllowedHosts((f"localhost:{port}",), allow_private=True)):
                reader, writer = await asyncio.open_connection(*place)
                writer.write(f"CONNECT localhost:{port} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
                writer.write(b"GET / HTTP/1.1\r\n\r\n")
                assert b"hello from outside" in await reader.read()
                writer.close()

    asyncio.run(main())


def test_no_connection_outlives_its_sandbox() -> None:
    """SPEC F3: not one that nobody says anything in either; it would keep the network of the sandbox."""

    async def main() -> None:
        accepted, gone = asyncio.Event(), asyncio.Event()

        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            accepted.set()
            with contextlib.suppress(ConnectionError):
                await reader.read()
            gone.set()
            writer.close()

        async with asyncio.timeout(20), await asyncio.start_server(silent, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            listening = socket.create_server(("127.0.0.1", 0))
            allowed = AllowedHosts((f"localhost:{port}",), allow_private=True)
            async with await serve_proxy(listening, allowed) as proxy:
                reader, writer = await asyncio.open_connection(*listening.getsockname())
                writer.write(f"CONNECT localhost:{port} HTTP/1.1\r\n\r\n".encode())
                await accepted.wait()
                await reader.readuntil(b"\r\n\r\n")
                proxy.close()
                with contextlib.suppress(ConnectionError):
                    assert await reader.read() == b""
                await gone.wait()
                writer.close()

    asyncio.run(main())


class SlowNames(asyncio.SelectorEventLoop):
    """A loop in which no name is ever found, or not found."""

    looking = 0

    async def getaddrinfo(self, *_: object, **__: object) -> list[object]:  # pyright: ignore[reportIncompatibleMethodOverride] - answers nothing
        self.looking += 1
        await asyncio.Event().wait()
        return []


def test_names_that_are_slow_to_be_found_take_up_nobody_elses_threads() -> None:
    """SPEC F3: also when whoever asked has given up, and asks again."""

    async def main() -> None:
        loop = cast("SlowNames", asyncio.get_running_loop())
        allowed = AllowedHosts(("*.slow.example",))
        asking = [asyncio.create_task(allowed.addresses(f"{n}.slow.example", 443)) for n in range(40)]
        for turn in range(3):
            for _ in range(5):
                await asyncio.sleep(0)
            assert loop.looking == 2
            asking[turn].cancel()
        for task in asking:
            task.cancel()
        await asyncio.wait(asking)

    with asyncio.Runner(loop_factory=SlowNames) as runner:
        runner.run(main())


def test_an_address_of_this_machine_is_told_however_public_it_is() -> None:
    """SPEC F3."""
    assert is_own("127.0.0.1")
    assert not is_own("192.0.2.1")
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.connect(("192.0.2.1", 53))
        assert is_own(asking.getsockname()[0])


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"400"),
        (b"GET ftp://localhost/ HTTP/1.1\r\n\r\n", b"400"),
        (b"CONNECT user@localhost:443 HTTP/1.1\r\n\r\n", b"400"),
        (b"CONNECT localhost:99999 HTTP/1.1\r\n\r\n", b"400"),
        (b"CONNECT [::1]:443 HTTP/1.1\r\n\r\n", b"400"),
        (b"CONNECT localhost\t:443 HTTP/1.1\r\n\r\n", b"400"),
        (b"GET http://localhost\\@evil.example/ HTTP/1.1\r\n\r\n", b"400"),
        (b"GET http://localhost/\r\nHost: x HTTP/1.1\r\n\r\n", b"400"),
        (b"\xff\xfe\r\n\r\n", b"400"),
        (b"CONNECT evil.example:443 HTTP/1.1\r\n\r\n", b"403"),
        (b"CONNECT localhost.evil.example:443 HTTP/1.1\r\n\r\n", b"403"),
        (b"CONNECT 127.0.0.1:443 HTTP/1.1\r\n\r\n", b"403"),
        (b"CONNECT 2130706433:443 HTTP/1.1\r\n\r\n", b"403"),
        (b"GET http://localhost:22/ HTTP/1.1\r\n\r\n", b"403"),
        (b"X" * 70_000 + b"\r\n\r\n", b"400"),
    ],
)
def test_odd_requests_are_refused(head: bytes, status: bytes) -> None:
    """SPEC F3."""

    async def main() -> None:
        async with asyncio.timeout(20):
            listening = socket.create_server(("127.0.0.1", 0))
            place = listening.getsockname()
            async with await serve_proxy(listening, AllowedHosts(("localhost",), allow_private=True)):
                reader, writer = await asyncio.open_connection(*place)
                writer.write(head)
                assert (await reader.readline()).startswith(b"HTTP/1.1 " + status)
                writer.close()

    asyncio.run(main())


def test_headers_for_the_proxy_go_no_further() -> None:
    """SPEC F3: and what goes out has one meaning."""
    head = (
        b"POST http://a.example:8080?q HTTP/1.1\r\nHost: other\r\nProxy-Authorization: secret\r\n"
        b"Connection: keep-alive\r\nX-Mine: 1\r\nContent-Length: 2\r\n\r\n"
    )
    wanted = wanted_by(head)
    assert (wanted.host, wanted.port) == ("a.example", 8080)
    assert wanted.head == (
        b"POST /?q HTTP/1.1\r\nHost: a.example:8080\r\nConnection: close\r\nX-Mine: 1\r\nContent-Length: 2\r\n\r\n"
    )


def test_entries_allow_what_they_say() -> None:
    """SPEC F3."""
    allowed = AllowedHosts(
        ("packages.example.net", "*.example.com", "git.example.org:22", "Mixed.Example:8443")
    )
    assert allowed.allows("packages.example.net", 443)
    assert allowed.allows("Packages.Example.NET.", 80)
    assert allowed.allows("a.b.example.com", 443)
    assert allowed.allows("git.example.org", 22)
    assert allowed.allows("mixed.example", 8443)
    for host, port in (("packages.example.net", 22), ("example.com", 443), ("evilexample.com", 443), ("git.example.org", 443),
                       ("packages.example.net.evil.example", 443), ("", 443), ("mixed.example", 443)):  # fmt: skip
        assert not allowed.allows(host, port), host


@pytest.mark.parametrize(
    "entry", ["", "http://a.example", "a b", "a:0", "a:x", "*", "a/b", "*.*.a", "a:70000", "user@a"]
)
def test_an_entry_that_is_no_host_is_refused(entry: str) -> None:
    """SPEC F3: when the sandbox starts, not when it is used."""

    async def main() -> None:
        with pytest.raises(SandboxUnavailable, match="no host"):
            async with opener(BubblewrapBackend(SandboxSettings()))(replace(POLICY, network=(entry,))):
                pass

    asyncio.run(main())


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
     "255.255.255.255", "::1", "::", "fe80::1", "fc00::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::",
     "::7f00:1", "ff02::1", "fe80::1%eth0", "nonsense"],
)  # fmt: skip
def test_private_addresses_are_told_in_any_spelling(address: str) -> None:
    """SPEC F3."""
    assert not is_public(address)


def test_public_addresses_are_public() -> None:
    """SPEC F3."""
    assert is_public("1.1.1.1")
    assert is_public("2606:4700:4700::1111")
