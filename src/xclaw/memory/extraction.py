"""The text of a file. HTML and PDF are read in a process of their own: what a hostile one can do is
waste that process's seconds and memory, which are bounded, and end it.
"""

import subprocess
import sys

import msgspec

from xclaw.contracts.errors import UsageError
from xclaw.memory.documents import Content, decoded

TIMEOUT_S = 90.0
CHILD = "xclaw.memory.extraction_child"


class Extracted(msgspec.Struct, frozen=True):
    """What the child process says: the pages (one for what has none), or why there are none."""

    pages: list[str] = []
    fault: str = ""


def extract(content: Content) -> list[str]:
    """The text page by page; HTML as Markdown. Raises `UsageError` for what cannot be read."""
    plain = content.kind in ("text", "markdown")
    pages = [decoded(content.raw)] if plain else _from_child(content)
    if not any(page.strip() for page in pages):
        raise UsageError("has no text in it" + (" (a scan?)" if content.kind == "pdf" else ""))
    return pages


def _from_child(content: Content) -> list[str]:
    raw = content.raw if content.kind == "pdf" else decoded(content.raw).encode("utf-8", "replace")
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-m", CHILD, content.kind],
            input=raw,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UsageError(f"took longer than {TIMEOUT_S:g} s to read") from None
    try:
        answer = msgspec.json.decode(done.stdout, type=Extracted)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise UsageError(f"could not be read: its reader ended with {done.returncode}") from None
    if answer.fault:
        raise UsageError(answer.fault)
    return answer.pages
