"""`xclaw token`: who else may use the gateway. A running one sees every change at once."""

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from xclaw.cli.failures import DONE, complain
from xclaw.cli.gateway_finder import token_book
from xclaw.cli.opening import settings_of_workspace
from xclaw.cli.options import TokenOptions
from xclaw.cli.text import printable
from xclaw.contracts.errors import UsageError

if TYPE_CHECKING:
    from xclaw.gateway.identity import Scope
    from xclaw.gateway.tokens import TokenBook, TokenRow

DAY_S = 86_400.0


def manage_tokens(options: TokenOptions) -> int:
    """Make a token and show it this once, list tokens, or end some."""
    if options.action != "add" and (options.scope, options.expires, options.note) != (None, None, None):
        raise UsageError(
            f"--scope, --expires and --note say what a new token is; leave them out of `{options.action}`."
        )
    settings = settings_of_workspace(None)
    for warning in settings.warnings:
        complain(f"warning: {warning}")
    book = token_book(settings)
    if options.action == "list":
        _list(book, options)
    elif options.action == "add":
        _add(book, options)
    else:
        _revoke(book, options)
    return DONE


def _add(book: "TokenBook", options: TokenOptions) -> None:
    if options.name is None:
        raise UsageError("for whom? Write: xclaw token add NAME")
    scopes = [part.strip() for part in ("chat" if options.scope is None else options.scope).split(",")]
    expires_at = None if options.expires is None else time.time() + options.expires * DAY_S
    token, row = book.add(
        options.name, cast("list[Scope]", scopes), expires_at=expires_at, note=options.note or ""
    )
    if options.as_json:
        _print_json({**_json(row), "token": token})
        return
    complain(f"the token {row.id} for {row.user} ({', '.join(row.scopes)}); it is not shown again:")
    print(token)


def _revoke(book: "TokenBook", options: TokenOptions) -> None:
    if options.name is None:
        raise UsageError(
            "which? Write: xclaw token revoke ID; or a user's name, for all tokens of that user."
        )
    rows = book.revoke(options.name)
    if options.as_json:
        _print_json([_json(row) for row in rows])
        return
    for row in rows:
        print(f"revoked {row.id} of {row.user}")


def _list(book: "TokenBook", options: TokenOptions) -> None:
    if options.name is not None:
        raise UsageError("`list` takes no name: it shows all tokens.")
    rows = book.rows()
    if options.as_json:
        _print_json([_json(row) for row in rows])
        return
    if not rows:
        complain("no tokens but the owner's own. Give one out: xclaw token add NAME")
        return
    lines = [("ID", "USER", "SCOPES", "MADE", "EXPIRES", "NOTE"), *map(_cells, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(5)]
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line, [*widths, 0], strict=True)]
        print("  ".join(cells).rstrip())


def _cells(row: "TokenRow") -> tuple[str, ...]:
    expires = "never" if row.expires_at is None else _day(row.expires_at)
    if row.expired(time.time()):
        expires = f"expired {expires}"
    shown = (row.id, row.user, ",".join(row.scopes), _day(row.created_at), expires, row.note)
    return tuple(printable(cell) for cell in shown)


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).date().isoformat()


def _json(row: "TokenRow") -> dict[str, object]:
    """What may be shown of a token; not its hash, which is nobody's business."""
    return {
        "id": row.id,
        "user": row.user,
        "scopes": list(row.scopes),
        "created_at": row.created_at,
        "expires_at": row.expires_at,
        "expired": row.expired(time.time()),
        "note": row.note,
    }


def _print_json(value: object) -> None:
    from xclaw.cli.output import print_indented

    print_indented(value)
