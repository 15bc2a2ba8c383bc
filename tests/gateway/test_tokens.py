"""The owner's token, and those of others: made, kept, told, ended."""

import json
import os
import stat
import string
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xclaw.contracts.errors import UsageError
from xclaw.gateway.identity import SCOPES, Scope
from xclaw.gateway.tokens import MAX_TOKENS, TokenBook

ADDING = """
import sys
from pathlib import Path
from xclaw.gateway.tokens import TokenBook
book = TokenBook(Path(sys.argv[1]) / "gateway-token", Path(sys.argv[1]) / "tokens.json")
print(book.ensure()[0])
for number in range(20):
    book.add(f"user{number}")
"""


def book_in(home: Path, now: Callable[[], float] = lambda: 1000.0, override: str | None = None) -> TokenBook:
    return TokenBook(home / "gateway-token", home / "tokens.json", override=override, clock=now)


def is_owner(book: TokenBook, token: str) -> bool:
    identity = book.authenticate(token)
    return identity is not None and (identity.user, identity.scopes) == ("owner", SCOPES)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_owners_token_is_made_once_and_can_be_read_by_its_user_alone(tmp_path: Path) -> None:
    home = tmp_path / "new" / "home"
    token, created = book_in(home).ensure()
    assert created
    assert book_in(home).ensure() == (token, False)
    assert mode_of(home / "gateway-token") == 0o600
    assert mode_of(home) == 0o700
    assert len(token.removeprefix("xc_owner_")) == 43
    assert is_owner(book_in(home), token)
    assert [path.name for path in home.iterdir()] == ["gateway-token"]


def test_of_many_that_start_at_once_all_have_one_token_and_lose_none(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", ADDING, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    printed = {process.communicate(timeout=60)[0].strip() for process in processes}
    assert len(printed) == 1
    assert len(book_in(tmp_path).rows()) == 80


def test_threads_that_start_at_once_have_one_token(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        started = [pool.submit(book_in(tmp_path).ensure) for _ in range(64)]
        answers = [start.result() for start in started]
    assert len({token for token, _ in answers}) == 1
    assert sum(created for _, created in answers) == 1


def test_a_token_that_was_given_replaces_the_files(tmp_path: Path) -> None:
    in_file, _ = book_in(tmp_path).ensure()
    mine = "0123456789abcdef-mine"
    book = book_in(tmp_path, override=mine)
    assert book.ensure() == (mine, False)
    assert is_owner(book, mine)
    assert book.authenticate(in_file) is None
    assert is_owner(book_in(tmp_path, override=""), in_file)


@pytest.mark.parametrize(
    "override", ["short", "has a space in it, see", "x" * 257, "tokenwith\nnewline!", "ключключключключ"]
)
def test_a_given_token_that_cannot_be_sent_or_is_too_short_is_an_error(override: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="XCLAW_GATEWAY_TOKEN") as caught:
        book_in(tmp_path, override=override)
    assert override not in str(caught.value)


def test_a_token_of_a_user_is_shown_once_and_kept_as_its_hash(tmp_path: Path) -> None:
    book = book_in(tmp_path)
    token, row = book.add("alice", ("chat", "approve"), note="laptop")
    written = (tmp_path / "tokens.json").read_text()
    assert token.startswith(f"xc_{row.id}_")
    assert token.rpartition("_")[2] not in written
    assert token not in repr(row)
    assert mode_of(tmp_path / "tokens.json") == 0o600
    identity = book_in(tmp_path).authenticate(token)
    assert identity is not None
    assert (identity.user, identity.scopes, identity.token_id) == ("alice", {"chat", "approve"}, row.id)


def test_only_the_whole_token_is_good(tmp_path: Path) -> None:
    book = book_in(tmp_path)
    own, _ = book.ensure()
    token, row = book.add("alice")
    other, _ = book.add("bob")
    secret = token.removeprefix(f"xc_{row.id}_")
    for wrong in (
        token[:-1],
        token + "A",
        token.upper(),
        f"xc_{row.id}_",
        f"xc_{row.id}",
        f"xc__{secret}",
        f"xc_{row.id}_{other[12:]}",
        f"xc_owner_{secret}",
        secret,
        row.sha256,
        f"xc_{row.id}_{row.sha256}",
        own[:-1],
        "",
        "xc_",
        "\0",
        "é" * 20,
        "\ud800",
        "x" * 1_000_000,
    ):
        assert book.authenticate(wrong) is None, wrong[:80]


@given(st.text(max_size=100))
def test_no_text_that_is_no_token_is_good_or_breaks_anything(text: str) -> None:
    assert TokenBook(Path("/nowhere/a"), Path("/nowhere/b")).authenticate(text) is None


def test_a_running_gateway_sees_at_once_what_another_process_changes(tmp_path: Path) -> None:
    running, command = book_in(tmp_path), book_in(tmp_path)
    assert running.authenticate("xc_12345678_nothing") is None
    alice, row = command.add("alice")
    bob, _ = command.add("bob")
    identity = running.authenticate(alice)
    assert identity is not None
    assert running.holds(identity)
    assert command.revoke(row.id) == [row]
    assert running.authenticate(alice) is None
    assert not running.holds(identity)
    assert running.authenticate(bob) is not None
    own, _ = running.ensure()
    mine = running.authenticate(own)
    assert mine is not None
    assert running.holds(mine)
    (tmp_path / "gateway-token").unlink()
    assert running.authenticate(own) is None
    assert not running.holds(mine)
    renewed, created = command.ensure()
    assert created
    assert not running.holds(mine)
    assert running.authenticate(own) is None
    assert is_owner(running, renewed)
    (tmp_path / "tokens.json").unlink()
    assert running.authenticate(bob) is None


def test_a_token_ends_at_its_time(tmp_path: Path) -> None:
    now = [1000.0]
    book = book_in(tmp_path, lambda: now[0])
    token, row = book.add("alice", expires_at=1060.0)
    identity = row.identity
    now[0] = 1059.9
    assert book.authenticate(token) == identity
    assert book.holds(identity)
    now[0] = 1060.0
    assert book.authenticate(token) is None
    assert not book.holds(identity)
    assert book.rows() == [row]
    with pytest.raises(UsageError, match="later time"):
        book.add("alice", expires_at=1060.0)
    for never in (float("nan"), float("inf")):
        with pytest.raises(UsageError, match="later time"):
            book.add("alice", expires_at=never)


def test_revoking_by_name_ends_all_tokens_of_that_user_alone(tmp_path: Path) -> None:
    book = book_in(tmp_path)
    mine = [book.add("alice")[1], book.add("alice")[1]]
    kept = book.add("alice2")[1]
    assert sorted(row.id for row in book.revoke("alice")) == sorted(row.id for row in mine)
    assert book.rows() == [kept]
    for name in ("alice", "owner", "", "nobody"):
        with pytest.raises(UsageError, match="xclaw token list"):
            book.revoke(name)


@pytest.mark.parametrize(
    "user",
    [
        "",
        "Alice",
        "al ice",
        "-alice",
        ".alice",
        "_alice",
        "../alice",
        "a" * 65,
        "alice\n",
        "алиса",
        "a:b",
        "a/b",
        "\0",
    ],
)
def test_a_name_that_could_be_taken_for_something_else_is_refused(user: str, tmp_path: Path) -> None:
    """I06: sessions are told apart by these names."""
    with pytest.raises(UsageError, match="cannot be a user's name"):
        book_in(tmp_path).add(user)


def test_nobody_else_can_be_the_owner(tmp_path: Path) -> None:
    """I06"""
    book = book_in(tmp_path)
    with pytest.raises(UsageError, match="taken"):
        book.add("owner")
    token, _ = book.add("alice")
    file = tmp_path / "tokens.json"
    file.write_text(file.read_text().replace('"alice"', '"owner"'))
    with pytest.raises(UsageError, match="damaged"):
        book.authenticate(token)


def test_names_scopes_and_notes_are_bounded(tmp_path: Path) -> None:
    book = book_in(tmp_path)
    for good in ("a", "0", "a.b-c_d", "a" * 64):
        book.add(good, get_args(Scope), note="x" * 200)
    with pytest.raises(UsageError, match="scope"):
        book.add("alice", ())
    with pytest.raises(UsageError, match="'root' is no scope"):
        book.add("alice", ("chat", "root"))  # pyright: ignore[reportArgumentType]  # as a command may pass it
    for note in ("x" * 201, "two\nlines", "\x1b[2J"):
        with pytest.raises(UsageError, match="note"):
            book.add("alice", note=note)


def test_there_is_an_end_to_the_number_of_tokens(tmp_path: Path) -> None:
    book = book_in(tmp_path)
    book.add("alice")
    file = tmp_path / "tokens.json"
    content = json.loads(file.read_text())
    row = content["tokens"][0]
    content["tokens"] = [{**row, "id": f"{number:08x}"} for number in range(MAX_TOKENS)]
    file.write_text(json.dumps(content))
    with pytest.raises(UsageError, match="Revoke some"):
        book.add("bob")


@pytest.mark.parametrize("open_to", [0o604, 0o640, 0o644, 0o620, 0o602])
def test_a_file_that_others_can_open_is_refused(open_to: int, tmp_path: Path) -> None:
    book = book_in(tmp_path)
    own, _ = book.ensure()
    token, _ = book.add("alice")
    (tmp_path / "tokens.json").chmod(open_to)
    with pytest.raises(UsageError, match=r"tokens\.json.*chmod 600"):
        book.authenticate(token)
    with pytest.raises(UsageError, match=r"tokens\.json"):
        book.add("bob")
    assert is_owner(book, own)
    (tmp_path / "gateway-token").chmod(open_to)
    with pytest.raises(UsageError, match=r"gateway-token.*chmod 600"):
        book.authenticate(own)
    with pytest.raises(UsageError, match="gateway-token"):
        book_in(tmp_path).ensure()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"tokens": null}',
        b'{"version": 2, "tokens": []}',
        b'{"tokens": [{"id": "1"}]}',
        b'{"tokens": [{"id":"1","user":"a","scopes":["root"],"sha256":"","created_at":1}]}',
        '{"tokens": [{"id":"1","user":"a","scopes":["chat"],"sha256":"é","created_at":1}]}'.encode(),
        b'{"tokens": [{"id":"1","user":"a","scopes":["chat"],"sha256":"","created_at":1}]}',
        b"\xff\xfe",
        b"[" * 100_000,
        b" " * 1_000_001,
    ],
)
def test_a_damaged_file_is_an_error_that_names_it_and_stays_as_it_is(content: bytes, tmp_path: Path) -> None:
    book = book_in(tmp_path)
    own, _ = book.ensure()
    file = tmp_path / "tokens.json"
    file.write_bytes(content)
    file.chmod(0o600)
    for use in (
        lambda: book.add("alice"),
        lambda: book.revoke("alice"),
        book.rows,
        lambda: book.authenticate("xc_12345678_secret"),
        lambda: book.authenticate("xc_12345678_secret"),
    ):
        with pytest.raises(UsageError, match=r"tokens\.json"):
            use()
    assert file.read_bytes() == content
    assert is_owner(book, own)


@pytest.mark.parametrize("content", [b"", b"short\n", b"two words are no token\n", b"\0" * 40, b"\xff" * 40])
def test_a_damaged_token_of_the_owner_is_an_error_and_stays_as_it_is(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "gateway-token"
    file.write_bytes(content)
    file.chmod(0o600)
    for use in (book_in(tmp_path).ensure, lambda: book_in(tmp_path).authenticate("x")):
        with pytest.raises(UsageError, match="gateway-token"):
            use()
    assert file.read_bytes() == content


def test_what_is_no_plain_file_in_the_place_of_one_is_an_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gateway-token", 0o600)
    with pytest.raises(UsageError, match="not a plain file"):
        book_in(tmp_path).ensure()
    (tmp_path / "tokens.json").mkdir(mode=0o700)
    with pytest.raises(UsageError, match=r"tokens\.json"):
        book_in(tmp_path, override="0123456789abcdef").add("alice")
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be used"):
        book_in(tmp_path / "file").ensure()


def test_what_is_made_can_be_sent_everywhere(tmp_path: Path) -> None:
    """As a bearer token, and as the name of a subprotocol."""
    book = book_in(tmp_path)
    for token in (book.ensure()[0], *(book.add("alice")[0] for _ in range(20))):
        assert set(token) <= set(string.ascii_letters + string.digits + "_-")
