"""Who may come in, and with how much: a real server, and clients that send bytes."""

import asyncio
import json
import logging
from pathlib import Path

import pytest

from gateway.guarded_server import Answer, Served, asked, connected, head, posted, run_served, upgrade
from xclaw.contracts.errors import UsageError
from xclaw.gateway.guards import Guards
from xclaw.gateway.origins import Origins
from xclaw.gateway.settings import GatewaySettings
from xclaw.gateway.tokens import TokenBook

EVIL = "Origin: https://evil.example"
FOREIGN_ORIGINS = [
    "https://evil.example",
    "null",
    "http://localhost:3000",
    "http://localhost",
    "http://localhost.evil.example:{port}",
    "http://127.0.0.1:{port}",
    "http://localhost:{port}@evil.example",
    "http://evil.example#localhost:{port}",
    "http://evil.example/http://localhost:{port}",
    "http://localhost:{port}, https://evil.example",
    "localhost:{port}",
    "ftp://localhost:{port}",
    "*",
    "",
    "file://",
    "chrome-extension://abcdefghijklmnop",
]
FOREIGN_HOSTS = [
    "evil.example",
    "evil.example:8763",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "127.0.0.2",
    "[::2]",
    "localhost:99999999",
    "localhost:x",
    "evil@localhost",
    "0.0.0.0",
    "2130706433",
    "localhost.",
    "localhost, evil.example",
    "",
]


def refused(answer: Answer, status: int, code: str) -> None:
    assert (answer.status, answer.error["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert not [name for name in answer.headers if name.startswith("access-control")]


def of_every_kind(*headers: str) -> list[bytes]:
    """A WebSocket, a form, a request without a body, one that reads, one that needs no token."""
    return [
        upgrade(*headers),
        posted("/runs", b"{}", *headers, media_type="text/plain"),
        head("/runs", *headers, method="POST"),
        head("/runs", *headers),
        head("/healthz", *headers),
        head("/runs", *headers, "Access-Control-Request-Method: POST", method="OPTIONS"),
    ]


def test_pages_of_other_origins_are_refused_even_with_a_token(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """G04: and whoever is refused does not fill the log."""

    async def body(gateway: Served) -> None:
        for origin in FOREIGN_ORIGINS:
            sent = f"Origin: {origin.replace('{port}', str(gateway.port))}"
            for request in of_every_kind(gateway.host, gateway.bearer, sent):
                refused(await asked(gateway, request), 403, "origin_not_allowed")
        twice = (gateway.host, gateway.bearer, f"Origin: http://localhost:{gateway.port}", EVIL)
        refused(await asked(gateway, head("/runs", *twice)), 403, "origin_not_allowed")
        refused(await asked(gateway, upgrade(*twice)), 400, "no_websocket")
        assert gateway.seen.requests == []

    run_served(tmp_path, body)
    assert caplog.text == ""


def test_a_name_that_is_not_ours_is_refused_even_with_a_token(tmp_path: Path) -> None:
    """G04: by DNS rebinding, a foreign page has the gateway's address under a name of its own."""

    async def body(gateway: Served) -> None:
        for host in FOREIGN_HOSTS:
            for request in of_every_kind(f"Host: {host}", gateway.bearer):
                refused(await asked(gateway, request), 403, "host_not_allowed")
        old = b"GET /runs HTTP/1.0\r\n" + gateway.bearer.encode() + b"\r\n\r\n"
        refused(await asked(gateway, old), 403, "host_not_allowed")
        assert gateway.seen.requests == []

    run_served(tmp_path, body)


def test_programs_and_pages_of_the_gateway_itself_come_in(tmp_path: Path) -> None:
    """G04"""

    async def body(gateway: Served) -> None:
        hosts = ("localhost", "127.0.0.1", "[::1]", "LOCALHOST", f"127.0.0.1:{gateway.port}", "[::1]:1")
        for host in hosts:
            for origin in ((), (f"Origin: http://{host}",), (f"Origin: https://{host.lower()}",)):
                sent = (f"Host: {host}", gateway.bearer, *origin)
                assert (await asked(gateway, head("/runs", *sent))).status == 200
                assert (await asked(gateway, posted("/runs", b"{}", *sent))).status == 200
                assert (await asked(gateway, upgrade(*sent))).status == 101

    run_served(tmp_path, body)


def test_names_and_origins_of_the_settings_come_in(tmp_path: Path) -> None:
    async def body(gateway: Served) -> None:
        for host, origin, status in (
            ("xclaw.example", "https://xclaw.example", 200),
            ("xclaw.example:443", "https://xclaw.example", 200),
            ("xclaw.example", "https://other.example:8443", 200),
            ("xclaw.example", "https://OTHER.example:8443", 200),
            ("xclaw.example", "https://other.example", 403),
            ("xclaw.example", "http://other.example:8443", 403),
            ("xclaw.example:81", "https://plain.example", 200),
            ("xclaw.example:81", "https://plain.example:443", 200),
            ("fixed.example:8443", "https://fixed.example:8443", 200),
            ("fixed.example", "https://fixed.example", 403),
            ("sub.xclaw.example", "https://xclaw.example", 403),
        ):
            request = head("/runs", f"Host: {host}", f"Origin: {origin}", gateway.bearer)
            answer = await asked(gateway, request)
            assert answer.status == status, (host, origin)
            assert not [name for name in answer.headers if name.startswith("access-control")]

    run_served(
        tmp_path,
        body,
        allowed_hosts=("xclaw.example", "fixed.example:8443"),
        allowed_origins=("https://other.example:8443", "https://plain.example"),
    )


@pytest.mark.parametrize(
    "settings",
    [
        GatewaySettings(allowed_hosts=("*",)),
        GatewaySettings(allowed_hosts=("https://xclaw.example",)),
        GatewaySettings(allowed_origins=("*",)),
        GatewaySettings(allowed_origins=("null",)),
        GatewaySettings(allowed_origins=("xclaw.example",)),
        GatewaySettings(allowed_origins=("https://xclaw.example/path",)),
    ],
)
def test_a_name_in_the_settings_that_opens_everything_or_nothing_is_an_error(
    settings: GatewaySettings, tmp_path: Path
) -> None:
    async def app(_scope: object, _receive: object, _send: object) -> None:
        raise AssertionError

    with pytest.raises(UsageError, match="allowed_"):
        Guards(app, settings, TokenBook(tmp_path / "a", tmp_path / "b"))


def test_the_address_that_the_gateway_listens_on_is_a_name_of_it() -> None:
    def status(host: str, sent: str) -> int:
        refusal = Origins(host, (), ()).refusal([(b"host", sent.encode())])
        return 200 if refusal is None else refusal.status

    assert status("192.168.1.5", "192.168.1.5:8763") == 200
    assert status("192.168.1.5", "192.168.1.6:8763") == 403
    assert status("fd00::1", "[fd00::1]:8763") == 200
    assert status("gateway.local", "gateway.local") == 200
    assert status("0.0.0.0", "0.0.0.0:8763") == 403
    assert status("::", "evil.example") == 403


def test_without_a_good_token_nothing_is_reached(tmp_path: Path) -> None:
    """G04"""

    async def body(gateway: Served) -> None:
        wrong = gateway.token[:-1] + ("A" if gateway.token[-1] != "A" else "B")
        sent = [
            ((), "missing_token"),
            ((f"Authorization: Basic {gateway.token}",), "missing_token"),
            ((f"Authorization: {gateway.token}",), "missing_token"),
            (("Authorization: Bearer",), "missing_token"),
            ((gateway.bearer, gateway.bearer), "missing_token"),
            ((f"Cookie: token={gateway.token}",), "missing_token"),
            ((f"Authorization: Bearer {wrong}",), "invalid_api_key"),
            ((f"Authorization: Bearer {gateway.token}x",), "invalid_api_key"),
            (("Authorization: Bearer xc_owner_",), "invalid_api_key"),
            (("Authorization: Bearer \xff\xfe",), "invalid_api_key"),
            ((f"Authorization: Bearer {'x' * 30_000}",), "invalid_api_key"),
        ]
        for headers, code in sent:
            for request in (
                head("/runs", *headers),
                posted("/runs", b"{}", *headers),
                head("/healthz/", *headers),
                head("/", *headers),
                head("/nothing", *headers),
            ):
                answer = await asked(gateway, request)
                refused(answer, 401, code)
                assert answer.headers["www-authenticate"].startswith("Bearer")
                assert gateway.token.encode() not in answer.body
        for offered in ("xclaw.v1", f"xclaw.v1, xclaw.token.{wrong}", f"xclaw.token.{wrong}", gateway.token):
            answer = await asked(gateway, upgrade(f"Sec-WebSocket-Protocol: {offered}"))
            assert answer.status == 401
        assert gateway.seen.requests == []
        assert (await asked(gateway, head("/healthz"))).status == 200

    run_served(tmp_path, body)


def test_a_browser_sends_the_token_among_the_subprotocols(tmp_path: Path) -> None:
    """G04: and is answered with the protocol, never with the token."""

    async def body(gateway: Served) -> None:
        origin = f"Origin: http://localhost:{gateway.port}"
        for offered in (f"xclaw.v1, xclaw.token.{gateway.token}", f"xclaw.token.{gateway.token},xclaw.v1"):
            async with connected(gateway) as client:
                await client.send(upgrade(gateway.host, origin, f"Sec-WebSocket-Protocol: {offered}"))
                answer = await client.answer()
                assert answer.status == 101
                assert answer.headers["sec-websocket-protocol"] == "xclaw.v1"
                assert await client.frame() == (1, b"owner")
        plain = await asked(gateway, upgrade(gateway.bearer))
        assert plain.status == 101
        assert "sec-websocket-protocol" not in plain.headers

    run_served(tmp_path, body)


def test_a_token_in_the_address_is_refused_and_in_no_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """G04"""
    caplog.set_level(logging.DEBUG)

    async def body(gateway: Served) -> None:
        for query in (
            f"token={gateway.token}",
            f"access_token={gateway.token}",
            "TOKEN=x",
            "api_key",
            f"a=1&q={gateway.token}",
            f"q=xc%5Fowner%5F{gateway.token.removeprefix('xc_owner_')}",
            gateway.token,
        ):
            for request in (
                head(f"/runs?{query}", gateway.bearer),
                head(f"/healthz?{query}"),
                upgrade(gateway.bearer, path=f"/ws?{query}"),
            ):
                refused(await asked(gateway, request), 400, "token_in_url")
        assert (await asked(gateway, head("/runs?after=5&secret=private", gateway.bearer))).status == 200
        assert (await asked(gateway, upgrade(gateway.bearer, path="/ws?secret=private"))).status == 101
        assert gateway.token not in caplog.text
        assert "private" not in caplog.text

    run_served(tmp_path, body)


def test_users_come_in_as_themselves_and_only_as_long_as_their_token_is_good(tmp_path: Path) -> None:
    """I06: whose request it is follows from the token alone."""

    async def body(gateway: Served) -> None:
        alice, row = gateway.book.add("alice")
        bob, _ = gateway.book.add("bob")
        for token, user in ((alice, "alice"), (bob, "bob"), (gateway.token, "owner")):
            claim = ("X-User: owner", "Cookie: user=owner")
            answer = await asked(gateway, head("/runs", f"Authorization: Bearer {token}", *claim))
            assert json.loads(answer.body)["user"] == user
        gateway.book.revoke(row.id)
        refused(await asked(gateway, head("/runs", f"Authorization: Bearer {alice}")), 401, "invalid_api_key")
        assert (await asked(gateway, head("/runs", f"Authorization: Bearer {bob}"))).status == 200

    run_served(tmp_path, body)


def test_damaged_tokens_of_users_are_said_once_and_do_not_lock_the_owner_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def body(gateway: Served) -> None:
        alice, _ = gateway.book.add("alice")
        (tmp_path / "tokens.json").write_text("{")
        for _ in range(3):
            answer = await asked(gateway, head("/runs", f"Authorization: Bearer {alice}"))
            refused(answer, 503, "tokens_unusable")
            assert b"tokens.json" not in answer.body
        assert (await asked(gateway, head("/runs", gateway.bearer))).status == 200

    run_served(tmp_path, body)
    assert caplog.text.count("tokens.json") == 1


def test_a_body_that_is_no_json_is_refused(tmp_path: Path) -> None:
    """G04: a form of a foreign page can send any other type without asking."""

    async def body(gateway: Served) -> None:
        for media_type in (
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "text/plain; application/json",
            "application/jsonx",
            "",
        ):
            answer = await asked(gateway, posted("/runs", b"{}", gateway.bearer, media_type=media_type))
            refused(answer, 415, "not_json")
        without = head("/runs", gateway.bearer, "Content-Length: 2", method="POST") + b"{}"
        refused(await asked(gateway, without), 415, "not_json")
        for media_type in ("application/json", "Application/JSON; charset=utf-8"):
            answer = await asked(gateway, posted("/runs", b"{}", gateway.bearer, media_type=media_type))
            assert json.loads(answer.body)["length"] == 2
        for sent in ((), ("Content-Length: 0",)):
            answer = await asked(gateway, head("/runs", gateway.bearer, *sent, method="POST"))
            assert json.loads(answer.body)["length"] == 0

    run_served(tmp_path, body)


def test_a_body_is_read_up_to_the_limit_and_no_byte_further(tmp_path: Path) -> None:
    async def body(gateway: Served) -> None:
        chunked = ("Content-Type: application/json", "Transfer-Encoding: chunked", gateway.bearer)
        for size, status in ((1_000, 200), (1_001, 413)):
            assert (await asked(gateway, posted("/runs", b"x" * size, gateway.bearer))).status == status
            pieces = b"".join(b"1\r\nx\r\n" for _ in range(size)) + b"0\r\n\r\n"
            answer = await asked(gateway, head("/runs", *chunked, method="POST") + pieces)
            assert answer.status == status
        refused(answer, 413, "too_long")
        assert gateway.seen.requests == ["/runs", "/runs"]

    run_served(tmp_path, body, max_message_bytes=1_000)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_message_of_a_hundred_megabytes_is_refused_and_the_connection_goes_on(
    chunked: bool, tmp_path: Path
) -> None:
    """The answer comes before the body has; what still comes is thrown away."""
    size, piece = 100_000_000, b"x" * 1_000_000

    async def body(gateway: Served) -> None:
        length = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {size}"
        sent = ("Content-Type: application/json", gateway.bearer, length)
        async with connected(gateway) as client, asyncio.timeout(30):
            await client.send(head("/runs", *sent, method="POST"))
            if not chunked:
                refused(await client.answer(), 413, "too_long")
            for _ in range(size // len(piece)):
                await client.send(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
            if chunked:
                await client.send(b"0\r\n\r\n")
                refused(await client.answer(), 413, "too_long")
            await client.send(head("/runs", gateway.bearer))
            assert (await client.answer()).status == 200
        assert gateway.seen.requests == ["/runs"]

    run_served(tmp_path, body)


def test_a_body_that_comes_byte_by_byte_is_given_up(tmp_path: Path) -> None:
    async def body(gateway: Served) -> None:
        sent = ("Content-Type: application/json", gateway.bearer, "Content-Length: 1000000")
        async with connected(gateway) as client, asyncio.timeout(10), asyncio.TaskGroup() as group:

            async def trickle() -> None:
                while True:
                    await client.send(b"x")
                    await asyncio.sleep(0)

            await client.send(head("/runs", *sent, method="POST"))
            task = group.create_task(trickle())
            refused(await client.answer(), 408, "body_timeout")
            task.cancel()
        assert gateway.seen.requests == []

    run_served(tmp_path, body, body_timeout_s=0.2)


def test_errors_below_v1_have_the_form_that_openai_clients_read(tmp_path: Path) -> None:
    async def body(gateway: Served) -> None:
        answer = await asked(gateway, posted("/v1/chat/completions", b"{}"))
        assert set(answer.error) == {"message", "type", "code", "param"}
        assert (answer.status, answer.error["type"]) == (401, "invalid_request_error")
        other = await asked(gateway, posted("/runs", b"{}"))
        assert set(other.error) == {"message", "code"}

    run_served(tmp_path, body)


def test_what_goes_wrong_inside_is_told_to_the_log_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def body(gateway: Served) -> None:
        answer = await asked(gateway, head("/breaks", gateway.bearer))
        assert answer.status == 500
        assert b"secret" not in answer.body
        async with connected(gateway) as client:
            await client.send(upgrade(gateway.bearer, path="/falls"))
            assert (await client.answer()).status == 101
            assert await client.close_code() == 1011
        assert (await asked(gateway, head("/runs", gateway.bearer))).status == 200

    run_served(tmp_path, body)
    assert caplog.text.count("RuntimeError: a secret of the inside") >= 2
