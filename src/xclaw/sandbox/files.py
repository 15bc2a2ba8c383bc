"""Files put into and got from a sandbox: by programs inside it, as its user, in its view of the file system."""

import posixpath

from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.sandbox import WORKSPACE, SandboxExit

FILE_S = 60.0
"""How long putting or getting a file may take."""
MAX_PATH = 4_000
_SHOWN = 500

PUT = """
[ ! -e "$1" ] || [ -f "$1" ] || { echo "there is something else of that name"; exit 1; }
mkdir -p -- "${1%/*}/" && cat >"$1"
"""
GET = """
[ -e "$1" ] || { echo "there is no such file"; exit 1; }
[ -f "$1" ] || { echo "it is no regular file"; exit 1; }
exec head -c "$2" -- "$1"
"""


def absolute_inside(path: str) -> str:
    """A path as the sandbox sees it; what is relative starts in /workspace. Raises `ToolFailed`."""
    if not path.strip():
        raise ToolFailed("the path is empty")
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise ToolFailed("the path holds characters that are no text") from error
    if "\0" in path or len(path) > MAX_PATH:
        raise ToolFailed(f"the path holds NUL, or more than {MAX_PATH} characters")
    return posixpath.join(WORKSPACE, path)


def file_failure(path: str, done: str, ended: SandboxExit, said: bytes) -> ToolFailed:
    """Why a file was not written or read, for a model."""
    if ended.ended == "disk":
        reason = "the disk space of the sandbox is used up"
    elif ended.ended != "exited":
        reason = f"killed: {ended.ended}"
    else:
        reason = said[:_SHOWN].decode("utf-8", "replace").strip() or f"exit code {ended.code}"
    return ToolFailed(f"{path} could not be {done}: {reason}")
