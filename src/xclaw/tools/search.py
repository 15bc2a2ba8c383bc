"""The tool that looks for text in files."""

import threading
import time
from dataclasses import dataclass

from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.tokens import ascii_length
from xclaw.contracts.tools import ToolContext
from xclaw.contracts.unicode_forms import is_unicode
from xclaw.contracts.workspaces import OpenedPath
from xclaw.tools.functions import FunctionTool, tool
from xclaw.tools.globs import parse_globs
from xclaw.tools.search_engines import Engine, Match, OutOfTime, Query, Stop
from xclaw.tools.search_files import (
    MAX_FILE_BYTES,
    OpenFile,
    Walked,
    Wanted,
    batches,
    is_text,
)
from xclaw.tools.threads import in_own_thread

SEARCH_S = 20.0
MAX_MATCHES = 1_000
"""Lines that are counted; how many are shown depends on how much an output may hold."""
LINE_CHARS = 200
_MAX_PATTERN = 1_000
_AT_ONCE = 4
"""Searches that run at the same time; the others wait. Each has files open."""
_NOTE_CHARS = 300
"""Kept free for what is said below the lines."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One search as the model wants it."""

    path: str
    query: Query
    wanted: Wanted


@dataclass(slots=True)
class Found:
    """What a search came to."""

    matches: list[Match]
    walked: Walked
    late: bool = False

    @property
    def is_cut(self) -> bool:
        return self.late or self.walked.is_cut or len(self.matches) > MAX_MATCHES


def search_tool(ripgrep: str = "", seconds: float = SEARCH_S) -> FunctionTool:
    """The search tool. `ripgrep`: where that program is; without it, Python searches. A search ends after
    `seconds` with what it has found by then."""
    places = threading.BoundedSemaphore(_AT_ONCE)

    @tool(replayable=True, timeout_s=seconds + 10, effect="reads")
    async def search(
        context: ToolContext,
        pattern: str,
        path: str = ".",
        glob: str = "",
        literal: bool = False,
        ignore_case: bool = False,
        ignored: bool = False,
    ) -> str:
        """Find lines in the files of a directory by regular expression.

        Args:
            pattern: Matches within one line.
            path: The directory, or one file.
            glob: Only files of these names, such as *.py; !*.md leaves some out.
            literal: The pattern is plain text.
            ignore_case: Upper and lower case are the same.
            ignored: Also files that .gitignore leaves out.
        """
        asked = _asked(pattern, path, glob, Query(pattern, literal, ignore_case, MAX_MATCHES + 1), ignored)
        stop = Stop(time.monotonic() + seconds)
        try:
            found = await in_own_thread(
                lambda: _search(context, asked, Engine(asked.query, ripgrep, stop), stop, places)
            )
        finally:
            stop.now()
        return _shown(found, asked, context.inline_chars)

    return search


def _asked(pattern: str, path: str, glob: str, query: Query, ignored: bool) -> Asked:
    """Raises `ToolFailed` for what cannot be looked for."""
    if not pattern:
        raise ToolFailed("the pattern is empty: say what to look for")
    if "\n" in pattern or "\0" in pattern or len(pattern) > _MAX_PATTERN:
        raise ToolFailed(f"the pattern must be one line of at most {_MAX_PATTERN} characters")
    if not is_unicode(pattern):
        raise ToolFailed("the pattern is not valid text; use plain Unicode")
    globs = parse_globs(glob.strip().removeprefix("!").removeprefix("./")) if glob.strip() else ()
    return Asked(path, query, Wanted(globs, glob.strip().startswith("!"), ignored))


def _search(
    context: ToolContext, asked: Asked, engine: Engine, stop: Stop, places: threading.BoundedSemaphore
) -> Found:
    found = Found([], Walked(stop.check))
    while not places.acquire(timeout=0.05):
        stop.check()
    try:
        with context.workspace.opened(asked.path) as opened:
            _search_opened(opened, asked, engine, found)
    except OutOfTime:
        found.late = True
    finally:
        places.release()
    return found


def _search_opened(opened: OpenedPath, asked: Asked, engine: Engine, found: Found) -> None:
    if not opened.is_directory:
        if not is_text(opened.descriptor):
            raise ToolFailed(f"{asked.path[:200]!r} is a binary file")
        found.walked.files = 1
        found.matches = engine.matches([OpenFile("", opened.descriptor)])
        return
    walk = batches(opened.descriptor, asked.wanted, found.walked)
    try:
        for files in walk:
            found.matches += engine.matches(files)
            if len(found.matches) > MAX_MATCHES:
                return
    finally:
        walk.close()


def _shown(found: Found, asked: Asked, inline_chars: int) -> str:
    """As many lines as fit, and what there is to know of the others."""
    room = inline_chars - _NOTE_CHARS
    lines: list[str] = []
    for match in found.matches[:MAX_MATCHES]:
        line = f"{_named(asked.path, match.path)}:{match.line}: {_window(match)}"
        room -= ascii_length(line) + 1
        if room < 0 and lines:
            break
        lines.append(line)
    notes = _notes(found, asked, len(lines))
    return "\n".join([*lines, *notes])


def _notes(found: Found, asked: Asked, shown: int) -> list[str]:
    notes: list[str] = []
    count, walked = len(found.matches), found.walked
    if not walked.files and not found.late:
        notes.append("[no such text files here: look at path, glob and ignored]")
    elif not count:
        notes.append(f"[no matches in {walked.files} files]")
    elif count > MAX_MATCHES:
        notes.append(f"[{shown} of more than {MAX_MATCHES} lines: narrow the pattern, path or glob]")
    elif shown < count:
        notes.append(f"[{shown} of {count} lines: narrow the pattern, path or glob]")
    if found.late:
        notes.append(
            "[stopped before the end, since it took too long: there may be more; narrow the pattern, path or glob]"
        )
    elif walked.is_cut:
        notes.append("[not all files were looked at: there are too many; narrow the path]")
    if walked.too_large:
        notes.append(f"[{walked.too_large} files of more than {MAX_FILE_BYTES} bytes were not looked at]")
    return notes


def _named(path: str, below: str) -> str:
    """The file as the model can name it again, on one line."""
    start = path.rstrip("/") if path != "/" else ""
    name = below if start in ("", ".") else f"{start}/{below}" if below else start
    name = name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return name if name.isprintable() else repr(name)


def _window(match: Match) -> str:
    """The line, or the part of it that begins somewhat before the match."""
    text = match.text[: LINE_CHARS * 19].decode("utf-8", "replace").rstrip("\r").replace("\0", "␀")
    if len(text) <= LINE_CHARS:
        return text
    at = len(match.text[: match.column - 1].decode("utf-8", "replace"))
    start = max(min(at - LINE_CHARS // 4, len(text) - LINE_CHARS), 0)
    part = text[start : start + LINE_CHARS]
    return f"{'…' if start else ''}{part}{'…' if start + LINE_CHARS < len(text) else ''}"
