"""Files put into and got from a sandbox: by programs inside it, as its user, in its view of the file system."""

import posixpath
from collections.abc import Awaitable, Callable

from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.sandbox import WORKSPACE, SandboxCommand, SandboxExit
from xclaw.contracts.unicode_forms import is_unicode
from xclaw.sandbox.output import Output

Run = Callable[[SandboxCommand, Output, int], Awaitable[SandboxExit]]
"""Runs a command, of whose output so many bytes are passed on."""
FILE_S = 60.0
"""How long putting or getting a file may take."""
_MARGIN_BYTES = 4_096
"""Of output beside a file's content."""
MAX_PATH = 4_000
_SHOWN = 500

_PUT = """
[ ! -e "$1" ] || [ -f "$1" ] || { echo "there is something else of that name"; exit 1; }
mkdir -p -- "${1%/*}/" && cat >"$1"
"""
_GET = """
[ -e "$1" ] || { echo "there is no such file"; exit 1; }
[ -f "$1" ] || { echo "it is no regular file"; exit 1; }
exec head -c "$2" -- "$1"
"""


def absolute_inside(path: str) -> str:
    """A path as the sandbox sees it; what is relative starts in /workspace. Raises `ToolFailed`."""
    if not path.strip():
        raise ToolFailed("the path is empty")
    if not is_unicode(path):
        raise ToolFailed("the path holds characters that are no text")
    if "\0" in path or len(path) > MAX_PATH:
        raise ToolFailed(f"the path holds NUL, or more than {MAX_PATH} characters")
    return posixpath.join(WORKSPACE, path)


async def put_file(run: Run, path: str, content: bytes, most: int) -> None:
    """Write a file of at most so many bytes. Raises `ToolFailed`."""
    if len(content) > most:
        raise ToolFailed(f"{path}: {len(content):,} bytes; at most {most:,} fit")
    target = absolute_inside(path)
    said = bytearray()
    command = SandboxCommand(("/bin/sh", "-c", _PUT, "put", target), FILE_S, stdin=content)
    ended = await run(command, said.extend, _MARGIN_BYTES)
    if ended.ended != "exited" or ended.code != 0:
        raise _failure(target, "written", ended, bytes(said))


async def get_file(run: Run, path: str, limit: int) -> bytes:
    """At most `limit` bytes of a file. Raises `ToolFailed`."""
    source = absolute_inside(path)
    content = bytearray()
    command = SandboxCommand(("/bin/sh", "-c", _GET, "get", source, str(limit)), FILE_S, "/")
    ended = await run(command, content.extend, limit + _MARGIN_BYTES)
    if ended.ended != "exited" or ended.code != 0:
        raise _failure(source, "read", ended, bytes(content))
    return bytes(content[:limit])


def _failure(path: str, done: str, ended: SandboxExit, said: bytes) -> ToolFailed:
    """Why a file was not written or read, for a model."""
    if ended.ended == "disk":
        reason = "the disk space of the sandbox is used up"
    elif ended.ended != "exited":
        reason = f"killed: {ended.ended}"
    else:
        reason = said[:_SHOWN].decode("utf-8", "replace").strip() or f"exit code {ended.code}"
    return ToolFailed(f"{path} could not be {done}: {reason}")
