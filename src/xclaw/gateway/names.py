"""Whose conversation a name means: every user has a name space of their own (SPEC A3, fault I06)."""

from xclaw.contracts.errors import UsageError
from xclaw.contracts.users import OWNER

MAX_CHARACTERS = 200


def conversation_key(name: str, user: str) -> str:
    """The journal's session id of a client's session. Raises `UsageError` for a name that is none.

    Names hold no ":", which keeps them apart from derived sessions and from one another.
    """
    checked = checked_name(name)
    return checked if user == OWNER else f"user:{user}:{checked}"


def checked_name(name: str) -> str:
    """Raises `UsageError`."""
    if not name.strip() or not name.isprintable() or len(name) > MAX_CHARACTERS or ":" in name:
        raise UsageError(
            f"{name[:60]!r} cannot name a session: 1 to {MAX_CHARACTERS} printable characters, no ':'."
        )
    return name
