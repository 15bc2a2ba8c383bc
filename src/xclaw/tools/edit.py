"""The tool that changes a part of a file."""

import asyncio

from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.tools import ToolContext
from xclaw.tools.edit_texts import Replaced, not_found, not_unique, shown_edit
from xclaw.tools.functions import tool

MAX_EDIT_BYTES = 8_000_000
"""A larger file is no text that anybody edits by hand."""
_TIMEOUT_S = 30.0


@tool(timeout_s=_TIMEOUT_S)
async def edit_file(context: ToolContext, path: str, old: str, new: str, all: bool = False) -> str:
    """Replace exact text in a file of your task workspace.

    Args:
        path: Relative to your task workspace.
        old: The text to replace, with its indentation. It must occur once.
        new: What to put in its place.
        all: Replace every occurrence.
    """
    if not old:
        raise ToolFailed("old is empty: name the text to replace; write_file writes a whole file")
    if old == new:
        raise ToolFailed("old and new are the same: nothing would change")
    edit = _Edit(path, _bytes_from(old), _bytes_from(new), everywhere=all)
    await asyncio.to_thread(context.workspace.edit, path, edit.applied, MAX_EDIT_BYTES)
    return shown_edit(path, edit.done)


class _Edit:
    """One replacement, done on bytes: whatever the file's encoding is, the rest of it stays as it was."""

    def __init__(self, path: str, old: bytes, new: bytes, *, everywhere: bool) -> None:
        self._path = path
        self._old = old
        self._new = new
        self._everywhere = everywhere
        self.done = Replaced(b"", b"", b"", ())

    def applied(self, content: bytes) -> bytes:
        """Raises `ToolFailed`."""
        if b"\0" in content:
            raise ToolFailed(f"{self._path[:200]!r} is a binary file, which cannot be edited as text")
        old, new = self._as_in(content)
        places = _places(content, old)
        if not places:
            raise ToolFailed(not_found(content, self._old, self._new))
        if len(places) > 1 and not self._everywhere:
            raise ToolFailed(not_unique(content, old, places))
        size = len(content) + len(places) * (len(new) - len(old))
        if size > max(len(content), MAX_EDIT_BYTES):
            raise ToolFailed(
                f"nothing was changed: with {len(places)} replacements the file would have {size} bytes; at most "
                f"{MAX_EDIT_BYTES} can be edited"
            )
        self.done = Replaced(content, old, new, tuple(places))
        return content.replace(old, new)

    def _as_in(self, content: bytes) -> tuple[bytes, bytes]:
        """Both texts with the line ends of the place, or of most of the file if `old` is within one line: models
        write `\\n` whatever a file has. What is there exactly as asked is taken first."""
        if b"\r" in self._old and self._old in content:
            return self._old, self._new
        mostly_crlf = 2 * content.count(b"\r\n") > content.count(b"\n")
        lf, crlf = (_with_lf(self._old), _with_lf(self._new)), (_with_crlf(self._old), _with_crlf(self._new))
        likely, other = (crlf, lf) if mostly_crlf else (lf, crlf)
        fitting = likely if likely[0] in content or other[0] not in content else other
        return fitting if fitting[0] != fitting[1] else (self._old, self._new)


def _with_lf(text: bytes) -> bytes:
    return text.replace(b"\r\n", b"\n")


def _with_crlf(text: bytes) -> bytes:
    return _with_lf(text).replace(b"\n", b"\r\n")


def _places(content: bytes, wanted: bytes) -> list[int]:
    """Where it is, without overlaps."""
    found: list[int] = []
    at = content.find(wanted)
    while at >= 0:
        found.append(at)
        at = content.find(wanted, at + len(wanted))
    return found


def _bytes_from(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")
