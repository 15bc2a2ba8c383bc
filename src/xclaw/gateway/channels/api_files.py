"""Files for a browser or a script to save: never shown in place, never under a name that is a trick."""

import unicodedata
from urllib.parse import quote

from starlette.types import Receive, Scope, Send

from xclaw.gateway.artifacts import DeliveredFile

BINARY = "application/octet-stream"
MAX_NAME = 150
_POLICY = "sandbox; default-src 'none'; frame-ancestors 'none'"
_SEPARATORS = frozenset('"\\%/;')


def attachment(name: str) -> dict[str, str]:
    """Headers of a file to be saved under `name` (RFC 6266): plain letters for old clients, all for others."""
    name = _visible(name)
    plain = "".join(letter if _is_plain(letter) else "_" for letter in name)
    extended = quote(name, safe="!#$&+-.^_`|~")
    return {
        "Content-Disposition": f"attachment; filename=\"{plain}\"; filename*=UTF-8''{extended}",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": _POLICY,
        "Cache-Control": "private, no-store",
    }


def _visible(name: str) -> str:
    """The last part of a name, without letters that nobody sees: they could turn its end around."""
    last = name.replace("\\", "/").rpartition("/")[2]
    kept = "".join(letter for letter in last if unicodedata.category(letter)[0] not in "CZ" or letter == " ")
    kept = kept.strip(" .")
    if len(kept) > MAX_NAME:
        stem, dot, suffix = kept.rpartition(".")
        kept = f"{stem[: MAX_NAME - 20]}{dot}{suffix[:19]}" if stem else kept[:MAX_NAME]
    return kept or "file"


def _is_plain(letter: str) -> bool:
    return letter.isascii() and letter.isprintable() and letter not in _SEPARATORS


class Download:
    """An ASGI response that sends a delivered file, and closes it whatever happens."""

    def __init__(self, delivered: DeliveredFile, name: str, sha256: str) -> None:
        self._delivered = delivered
        self._headers = attachment(name) | {
            "Content-Type": BINARY,
            "Content-Length": str(delivered.size),
            "ETag": f'"{sha256}"',
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises `Altered` when the file became shorter meanwhile: the client gets no whole answer then."""
        headers = [(name.lower().encode(), value.encode()) for name, value in self._headers.items()]
        with self._delivered.file:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            async for chunk in self._delivered.chunks():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
