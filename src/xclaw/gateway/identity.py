"""Who a request comes from, and what they may do."""

from dataclasses import dataclass
from typing import Literal, get_args

from xclaw.contracts.users import OWNER

Scope = Literal["chat", "approve", "admin"]
"""Talk and see one's own sessions; answer approvals; see and end what others do."""
SCOPES: frozenset[Scope] = frozenset(get_args(Scope))


@dataclass(frozen=True, slots=True)
class Identity:
    """The holder of one token."""

    user: str
    scopes: frozenset[Scope]
    token_id: str
    """Names the token without giving it away; safe to log."""


def owner_identity(token_id: str = OWNER) -> Identity:
    """The user whose home it is: may do everything."""
    return Identity(OWNER, SCOPES, token_id)
