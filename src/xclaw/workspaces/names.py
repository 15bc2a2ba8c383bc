"""From names and paths that others wrote to path components that are safe to use."""

import hashlib
import re
import unicodedata

from xclaw.contracts.errors import ToolFailed, UsageError
from xclaw.contracts.unicode_forms import is_unicode, normal_form
from xclaw.workspaces.settings import PathRules

MAX_PATH_CHARACTERS = 4096
MAX_PATH_PARTS = 64
TEMPORARY_PREFIX = ".xclaw-tmp-"
"""Of files that are being written; listings leave them out and nobody may use such a name."""

MARK = "+"
"""Parts what a person recognises of a name from what makes it unique."""

_PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_DRIVE = re.compile(r"[A-Za-z]:(.*)", re.DOTALL)
_RESERVED = frozenset(
    {"con", "prn", "aux", "nul", "conin$", "conout$"}
    | {f"{device}{digit}" for device in ("com", "lpt") for digit in "123456789¹²³"}
)
_SLUG_LENGTH = 24
_HASH_LENGTH = 16


def safe_component(name: str) -> str:
    """A directory name for an agent, a task or a session: one name, one directory, on every system.

    Plain lower-case names stay as they are. Every other name gets a "+" and a part of its hash, which
    no plain name holds, so that neither case folding nor look-alike letters can make two names meet.

    Raises `UsageError` for a name with control characters.
    """
    if _PLAIN.fullmatch(name) and name not in _RESERVED:
        return name
    if any(unicodedata.category(character) == "Cc" for character in name):
        raise UsageError(f"the name {name[:100]!r} holds a control character; use letters, digits, - and _")
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_LENGTH]
    return f"{_slug(name)}{MARK}{digest}"


def _slug(name: str) -> str:
    """The part of a name that a person recognises; letters that file systems rewrite are left out."""
    folded = unicodedata.normalize("NFKC", name[:200]).casefold()
    kept = "".join(
        character if character.isalnum() and unicodedata.normalize("NFD", character) == character else "-"
        for character in folded
    )
    return re.sub("-+", "-", kept)[:_SLUG_LENGTH].strip("-") or "x"


def folded(name: str) -> str:
    """Equal for names that some file system takes for the same one."""
    return normal_form("NFC", normal_form("NFC", name).casefold())


def composed(name: str) -> str:
    return normal_form("NFC", name)


def split_path(path: str, rules: PathRules) -> tuple[bool, tuple[str, ...]]:
    """Whether `path` is absolute, and its parts, "." left out and ".." kept.

    Raises `ToolFailed` for what is no path here: control bytes, drives, UNC, a home directory.
    """
    if "\0" in path:
        raise ToolFailed("a path cannot hold a NUL character")
    if len(path) > MAX_PATH_CHARACTERS:
        raise ToolFailed(f"the path is too long: {len(path)} characters, at most {MAX_PATH_CHARACTERS}")
    if not is_unicode(path):
        raise ToolFailed(f"the path {path[:200]!r} is not valid text; use plain Unicode")
    _refuse_foreign_forms(path)
    if rules == "windows":
        path = path.replace("\\", "/")
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if len(parts) > MAX_PATH_PARTS:
        raise ToolFailed(f"the path has {len(parts)} parts, at most {MAX_PATH_PARTS}")
    if rules == "windows":
        _refuse_windows_names(parts)
    return path.startswith("/"), parts


def _refuse_foreign_forms(path: str) -> None:
    """Refused on every system: whoever writes these never means a file of that literal name."""
    drive = _DRIVE.fullmatch(path)
    if drive or path.startswith(("\\", "//?/", "//./")):
        raise ToolFailed(f"{path[:200]!r} is a Windows path; use a path relative to the task workspace")
    if path.startswith("..\\") or "\\..\\" in path or path.endswith("\\.."):
        raise ToolFailed(f"{path[:200]!r} leaves the task workspace; use / and stay inside")
    if path == "~" or path.startswith("~/"):
        raise ToolFailed(f"{path[:200]!r}: there is no home directory here; use a relative path")


def _refuse_windows_names(parts: tuple[str, ...]) -> None:
    for part in parts:
        if part == "..":
            continue
        stem = part.split(".")[0].rstrip(" ").casefold()
        if stem in _RESERVED or any(character in '<>:"|?*' for character in part):
            raise ToolFailed(f"{part[:200]!r} is no file name on this system; use another one")
        if part.endswith((".", " ")):
            raise ToolFailed(f"{part[:200]!r} ends in a dot or a space; leave that out")


def check_new_names(parts: tuple[str, ...]) -> None:
    """Raises `ToolFailed` for names no file should be given: they could pass for other text."""
    for part in parts:
        if any(unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp", "Cs", "Co") for character in part):
            raise ToolFailed(f"the name {part[:200]!r} holds invisible characters; use visible ones")
        if part.startswith(TEMPORARY_PREFIX):
            raise ToolFailed(f"names that begin with {TEMPORARY_PREFIX!r} are taken; use another one")


def versioned(name: str, version: int) -> str:
    """`report.md` as version 2 is `report.v2.md`; a leading dot begins no suffix."""
    if version == 1:
        return name
    stem, dot, suffix = name.rpartition(".")
    if not stem:
        return f"{name}.v{version}"
    return f"{stem}.v{version}{dot}{suffix}"
