"""`session-transcript.log`: what was said to an agent and what it answered, for people to read.

The journal has everything; this is the readable copy. A transcript that has grown too long is renamed
to `session-transcript.1.log`, in place of the one before it.
"""

import time
from pathlib import Path

from xclaw.memory.files import append_to_file, stamp_of
from xclaw.memory.layout import LOCK
from xclaw.memory.locking import locked
from xclaw.memory.notes import cleaned

_SIDE_CHARACTERS = 20_000
"""Of what one side said in one turn."""


def log_turn(path: Path, session_id: str, said: str, answer: str, *, max_bytes: int) -> None:
    """Add one exchange. Raises `UsageError` when the file cannot be used.

    It is not forced to the disk, which would take longer than all the rest of a short turn.
    """
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    session = " ".join(cleaned(session_id).split())
    entry = f"== {stamp} {session}\n{_side('>', said)}{_side('<', answer)}\n".encode()
    _make_room(path, len(entry), max_bytes)
    append_to_file(path, entry)


def _side(mark: str, text: str) -> str:
    """Each line marked, so that no text passes for another turn."""
    text = cleaned(text)
    if len(text) > _SIDE_CHARACTERS:
        text = f"{text[:_SIDE_CHARACTERS]}\n[... {len(text) - _SIDE_CHARACTERS} more characters]"
    return "".join(f"{mark} {line}".rstrip() + "\n" for line in text.split("\n"))


def _make_room(path: Path, needed: int, max_bytes: int) -> None:
    if _fits(path, needed, max_bytes):
        return
    with locked(path.parent / LOCK):
        if not _fits(path, needed, max_bytes):
            path.replace(path.with_name(f"{path.stem}.1{path.suffix}"))


def _fits(path: Path, needed: int, max_bytes: int) -> bool:
    stamp = stamp_of(path)
    return stamp is None or stamp.size + needed <= max_bytes
