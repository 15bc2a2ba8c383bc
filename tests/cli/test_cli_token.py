"""`xclaw token`: give out, list, end."""

import stat
from pathlib import Path
from typing import cast

import pytest
from xclaw_command import Json, Xclaw

from xclaw.gateway.tokens import TokenBook


@pytest.fixture
def xclaw(tmp_path: Path) -> Xclaw:
    return Xclaw(tmp_path)


def book_of(xclaw: Xclaw) -> TokenBook:
    return TokenBook(xclaw.home / "gateway-token", xclaw.home / "tokens.json")


def test_a_token_that_is_given_out_lets_its_user_in_until_it_is_ended(xclaw: Xclaw) -> None:
    made = xclaw("token", "add", "alice", "--scope", "chat, approve", "--expires", "1", "--note", "laptop")
    token = made.out.strip()
    assert made.code == 0
    assert "not shown again" in made.err
    assert token not in made.err
    identity = book_of(xclaw).authenticate(token)
    assert identity is not None
    assert (identity.user, identity.scopes) == ("alice", {"chat", "approve"})

    listed = xclaw("token")
    assert listed.code == 0
    assert token not in listed.out
    for shown in (identity.token_id, "alice", "approve,chat", "laptop"):
        assert shown in listed.out

    ended = xclaw("token", "revoke", "alice")
    assert (ended.code, ended.out) == (0, f"revoked {identity.token_id} of alice\n")
    assert book_of(xclaw).authenticate(token) is None
    assert "no tokens but the owner's own" in xclaw("token", "list").err
    assert stat.S_IMODE((xclaw.home / "tokens.json").stat().st_mode) == 0o600


def test_as_json_a_token_is_in_the_answer_of_add_alone_and_its_hash_in_none(xclaw: Xclaw) -> None:
    made = xclaw("token", "add", "alice", "--json").document
    token = cast("str", made.pop("token"))
    assert made["scopes"] == ["chat"]
    assert made["expires_at"] is None
    listed = xclaw("token", "list", "--json")
    assert cast("list[Json]", listed.document) == [made]
    assert "sha256" not in listed.out
    ended = xclaw("token", "revoke", cast("str", made["id"]), "--json")
    assert cast("list[Json]", ended.document) == [made]
    assert token not in listed.out + ended.out


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("add",), "xclaw token add NAME"),
        (("revoke",), "xclaw token revoke ID"),
        (("revoke", "nobody"), "xclaw token list"),
        (("list", "alice"), "takes no name"),
        (("list", "--note", "x"), "leave them out of `list`"),
        (("add", "owner"), "taken"),
        (("add", "../alice"), "cannot be a user's name"),
        (("add", "alice", "--scope", "root"), "no scope"),
        (("add", "alice", "--scope", ""), "no scope"),
        (("add", "alice", "--expires", "0"), "later time"),
        (("add", "alice", "--expires", "nan"), "--expires"),
        (("give", "alice"), "'give'"),
    ],
)
def test_wrong_use_makes_nothing_and_says_what_to_write(
    arguments: tuple[str, ...], why: str, xclaw: Xclaw
) -> None:
    ended = xclaw("token", *arguments)
    assert ended.code == 2
    assert why in ended.err
    assert ended.out == ""
    assert not (xclaw.home / "tokens.json").exists()


def test_a_damaged_file_stays_as_it_is(xclaw: Xclaw) -> None:
    xclaw.home.mkdir()
    file = xclaw.home / "tokens.json"
    file.write_text("{")
    file.chmod(0o600)
    ended = xclaw("token", "add", "alice")
    assert (ended.code, ended.out) == (2, "")
    assert str(file) in ended.err
    assert file.read_text() == "{"
