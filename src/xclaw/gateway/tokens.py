"""The tokens that let users in: the owner's own, and those that were given to others.

A token is `xc_<id>_<secret>`; it is found by its id and told by its hash.
"""

import fcntl
import hashlib
import hmac
import os
import re
import secrets
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, TypeVar

import msgspec

from xclaw.contracts.errors import UsageError
from xclaw.contracts.users import OWNER
from xclaw.gateway.identity import SCOPES, Identity, Scope, owner_identity
from xclaw.gateway.private_files import (
    Signature,
    create_private,
    make_home,
    read_private,
    replace_private,
    signature_of,
    unusable,
)

Value = TypeVar("Value")

SECRET_BYTES = 32
MAX_TOKENS = 1_000
MAX_NOTE = 200
_USER = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
_HASH = re.compile(r"[0-9a-f]{64}")
_OWN = re.compile(r"[A-Za-z0-9._~+-]{16,256}")
"""What can be sent both as a bearer token and as the name of a WebSocket subprotocol."""


@dataclass(frozen=True, slots=True)
class TokenRow:
    """One token of a user, as it is stored: what it is cannot be told from it."""

    id: str
    user: str
    scopes: tuple[Scope, ...]
    sha256: str
    """Of the whole token. A plain hash is right: 256 random bits cannot be guessed, however fast
    guesses are checked; slow hashes are for passwords that people think up."""
    created_at: float
    """Unix time, seconds; so is `expires_at`."""
    expires_at: float | None = None
    note: str = ""

    def expired(self, now: float) -> bool:
        return self.expires_at is not None and now >= self.expires_at

    @property
    def identity(self) -> Identity:
        return Identity(self.user, frozenset(self.scopes), self.id)


@dataclass(frozen=True, slots=True)
class _File:
    tokens: tuple[TokenRow, ...] = ()
    version: Literal[1] = 1


class TokenBook:
    """The two files of tokens. What another process changes in them counts from the next request on.

    `override` is a token for the owner that is used instead of the file's, if it is not empty. Methods touch the disk and
    are quick; `add` and `revoke` wait for other writers.
    """

    def __init__(
        self,
        token_file: Path,
        users_file: Path,
        *,
        override: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Raises `UsageError` for an `override` that cannot be a token."""
        if override and not _OWN.fullmatch(override):
            raise UsageError(
                "`gateway.token` (XCLAW_GATEWAY_TOKEN) cannot be used: it must be 16 to 256 letters, digits, or characters of `._~+-`. "
                "Make one: openssl rand -hex 32"
            )
        self._token_file = token_file
        self._users_file = users_file
        self._override = override or None
        self._clock = clock
        self._key = secrets.token_bytes(16)
        self._owner: _Cached[str] = _Cached()
        self._users: _Cached[dict[str, TokenRow]] = _Cached()

    def ensure(self) -> tuple[str, bool]:
        """The owner's token, and whether it was made just now.

        Raises:
            UsageError: the file cannot be read or made, is open to others, or holds no token.
        """
        token = self.owner_token()
        if token is not None:
            return token, False
        made = _new_token(OWNER)
        if create_private(self._token_file, f"{made}\n".encode()):
            return made, True
        token = self.owner_token()
        if token is None:
            raise UsageError(f"{self._token_file}: appeared and vanished again. Try again.")
        return token, False

    def owner_token(self) -> str | None:
        """The owner's token; None when none was made yet. Raises like `ensure`."""
        return self._override or self._owner.read(self._token_file, self._read_owner)

    def authenticate(self, token: str) -> Identity | None:
        """Who holds the token; None for one that is unknown, revoked or has expired.

        Raises:
            UsageError: the file that would know cannot be used. The owner's token does not depend on
                the file of the others.
        """
        own = self.owner_token()
        if own is not None and _same(token, own):
            return owner_identity(self._id_of_own(own))
        parts = token.split("_", 2)
        if len(parts) != 3 or parts[0] != "xc" or len(token) > 256:
            return None
        row = self._rows().get(parts[1])
        if row is None or not hmac.compare_digest(_hash_of(token), row.sha256):
            return None
        return None if row.expired(self._clock()) else row.identity

    def holds(self, identity: Identity) -> bool:
        """Whether a token that was good is so still: neither revoked nor expired. Raises like
        `authenticate`."""
        if identity.user == OWNER:
            own = self.owner_token()
            return own is not None and identity.token_id == self._id_of_own(own)
        row = self._rows().get(identity.token_id)
        return row is not None and not row.expired(self._clock()) and row.identity == identity

    def rows(self) -> list[TokenRow]:
        """The tokens of others, also expired ones, the oldest first. Raises like `ensure`."""
        return sorted(self._rows().values(), key=lambda row: (row.created_at, row.id))

    def add(
        self,
        user: str,
        scopes: Iterable[Scope] = ("chat",),
        *,
        expires_at: float | None = None,
        note: str = "",
    ) -> tuple[str, TokenRow]:
        """A new token for `user`, who may have several. It can be seen here and never again.

        Raises:
            UsageError: a name, scope, time or note that cannot be, too many tokens, or an unusable file.
        """
        wanted = tuple(sorted(set(scopes)))
        self._check(user, wanted, expires_at, note)
        with self._locked():
            rows = self._rows()
            if len(rows) >= MAX_TOKENS:
                raise UsageError(f"{self._users_file}: holds {MAX_TOKENS:,} tokens already. Revoke some.")
            token_id = next(new for new in iter(lambda: secrets.token_hex(4), "") if new not in rows)
            token = _new_token(token_id)
            row = TokenRow(token_id, user, wanted, _hash_of(token), self._clock(), expires_at, note)
            self._write((*rows.values(), row))
        return token, row

    def revoke(self, name: str) -> list[TokenRow]:
        """End the token of that id, or all tokens of the user of that name; answers which they were.

        Raises:
            UsageError: there is none, or the file cannot be used.
        """
        with self._locked():
            rows = self._rows()
            gone = [rows[name]] if name in rows else [row for row in rows.values() if row.user == name]
            if not gone:
                raise UsageError(
                    f"there is no token and no user {name[:80]!r}. `xclaw token list` lists them."
                )
            self._write(tuple(row for row in rows.values() if row not in gone))
        return gone

    def _check(self, user: str, scopes: tuple[str, ...], expires_at: float | None, note: str) -> None:
        if not _USER.fullmatch(user):
            raise UsageError(
                f"{user[:80]!r} cannot be a user's name: 1 to 64 of a-z, 0-9 and `_.-`, and a letter or "
                "digit first."
            )
        if user == OWNER:
            raise UsageError(f"{OWNER!r} is you; the name is taken. Choose another.")
        unknown = [scope for scope in scopes if scope not in SCOPES]
        if unknown or not scopes:
            named = f"{unknown[0][:80]!r} is no scope" if unknown else "a token without a scope opens nothing"
            raise UsageError(f"{named}. Choose from chat, approve and admin.")
        if expires_at is not None and not self._clock() < expires_at < float("inf"):
            raise UsageError("a token cannot have expired before it is made. Choose a later time.")
        if len(note) > MAX_NOTE or not note.isprintable():
            raise UsageError(f"a note is one line of at most {MAX_NOTE} characters.")

    def _id_of_own(self, token: str) -> str:
        """Another one for another token, and nothing to check guesses at it with."""
        return f"{OWNER}-{hmac.new(self._key, token.encode(), 'sha256').hexdigest()[:8]}"

    def _rows(self) -> dict[str, TokenRow]:
        return self._users.read(self._users_file, self._read_users) or {}

    def _read_owner(self, content: bytes) -> str:
        token = content.decode("ascii", "replace").strip()
        if not _OWN.fullmatch(token):
            raise UsageError(
                f"{self._token_file}: holds no token. Remove it; a new one is made at the next start."
            )
        return token

    def _read_users(self, content: bytes) -> dict[str, TokenRow]:
        try:
            file = msgspec.json.decode(content, type=_File)
        except (msgspec.DecodeError, RecursionError) as error:
            raise UsageError(
                f"{self._users_file}: damaged, or of another version of xclaw: {error}. Nobody but the owner "
                "can come in. Put back a copy, or remove it and give out new tokens."
            ) from None
        for row in file.tokens:
            if not _USER.fullmatch(row.user) or row.user == OWNER or not _HASH.fullmatch(row.sha256):
                raise UsageError(
                    f"{self._users_file}: the entry {row.id[:80]!r} is damaged. Remove the entry, or put back "
                    "a copy of the file."
                )
        return {row.id: row for row in file.tokens}

    def _write(self, rows: tuple[TokenRow, ...]) -> None:
        content = msgspec.json.format(msgspec.json.encode(_File(rows)), indent=2)
        replace_private(self._users_file, content + b"\n")

    @contextmanager
    def _locked(self) -> Generator[None]:
        """One writer at a time, over all processes; the kernel frees the lock of one that dies."""
        path = self._users_file.with_name(f"{self._users_file.name}.lock")
        make_home(path.parent)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise unusable(path, error) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


class _Cached(Generic[Value]):
    """What a file says, read again when the file has changed."""

    def __init__(self) -> None:
        self._signature: Signature | None = None
        self._value: Value | None = None

    def read(self, path: Path, reader: Callable[[bytes], Value]) -> Value | None:
        """None when there is no such file. Raises what `reader` raises, and `UsageError`."""
        signature = signature_of(path)
        if signature is None or signature != self._signature:
            self._signature, self._value = None, None
            content = read_private(path)
            if content is None:
                return None
            # Of a file that changes meanwhile the older signature is kept: it is read again.
            self._value = reader(content)
            self._signature = signature
        return self._value


def _new_token(token_id: str) -> str:
    return f"xc_{token_id}_{secrets.token_urlsafe(SECRET_BYTES)}"


def _hash_of(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def _same(one: str, other: str) -> bool:
    """Compares in a time that tells neither where they differ nor how long they are."""
    return hmac.compare_digest(_hash_of(one), _hash_of(other))
