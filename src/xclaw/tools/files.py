"""Tools that read and write a run's own files."""

import asyncio

from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.tokens import share_inline
from xclaw.contracts.tools import Tool, ToolContext, ToolOutput
from xclaw.contracts.workspaces import DirectoryItem, FileSlice
from xclaw.tools.functions import tool
from xclaw.tools.images import image_in
from xclaw.tools.lines import numbered_lines

DIRECT_READ_BYTES = 64_000
"""Reads up to this size run on the event loop: measured at 60 µs, less than a thread costs."""
DIRECT_NAMES = 32
"""Directories with fewer names are listed on the event loop, for the same reason."""
VIEW_BYTES = 16_000
"""How much one call shows at most when nothing else is asked; less where less can be shown at once."""
_NOTE_CHARS = 100
"""Of an answer, for what is said below the text."""
MAX_LISTED = 500
_TIMEOUT_S = 30.0


@tool(replayable=True, timeout_s=_TIMEOUT_S, effect="reads")
async def view_file(
    context: ToolContext,
    path: str,
    offset: int = 0,
    limit: int = VIEW_BYTES,
    from_line: int = 0,
    lines: int = 0,
) -> ToolOutput:
    """Read a file of your task workspace, your delivery directory, or an artifact you were given.

    Args:
        path: Relative to your task workspace, or absolute.
        offset: Byte to start at.
        limit: How many bytes to show.
        from_line: Show lines with their numbers, from this one; 1 is the first.
        lines: How many lines.
    """
    if from_line or lines:
        if offset:
            raise ToolFailed("give either offset, for bytes, or from_line, for lines")
        return await asyncio.to_thread(_view_lines, context, path, from_line or 1, lines)
    part = await _read(context, path, offset, limit)
    if part.binary and not offset:
        image = await asyncio.to_thread(_image, context, path)
        if image is not None:
            return image
    room = context.inline_chars - _NOTE_CHARS
    while limit <= VIEW_BYTES and (share := share_inline(part.text, room)) < 1 and limit > 1:
        limit = max(int(min(limit, part.size) * share * 0.99), 1)
        part = context.workspace.read(path, offset, limit)
    return ToolOutput(_shown_file(path, part))


async def _read(context: ToolContext, path: str, offset: int, limit: int) -> FileSlice:
    if limit <= DIRECT_READ_BYTES:
        return context.workspace.read(path, offset, limit)
    return await asyncio.to_thread(context.workspace.read, path, offset, limit)


def _view_lines(context: ToolContext, path: str, from_line: int, lines: int) -> ToolOutput:
    if from_line < 1 or lines < 0:
        raise ToolFailed(f"from_line must be 1 or more and lines 0 or more, not {from_line} and {lines}")
    with context.workspace.opened(path) as opened:
        if opened.is_directory:
            raise ToolFailed(f"{path[:200]!r} is a directory; list_dir shows what is in it")
        room = context.inline_chars - _NOTE_CHARS
        text = numbered_lines(opened.descriptor, from_line, lines, room)
    return ToolOutput(text or f"[binary file, {opened.size} bytes: {path}]")


def _image(context: ToolContext, path: str) -> ToolOutput | None:
    """The picture that a file is; None if it is none that anybody can be shown."""
    with context.workspace.opened(path) as opened:
        return None if opened.is_directory else image_in(opened.descriptor, opened.size, path)


@tool(replayable=True, timeout_s=_TIMEOUT_S, effect="reads")
async def list_dir(context: ToolContext, path: str = ".") -> str:
    """List a directory of your task workspace or your delivery directory.

    Args:
        path: Relative to your task workspace, or absolute.
    """
    items = context.workspace.list_directory(path, DIRECT_NAMES)
    if len(items) == DIRECT_NAMES:
        items = await asyncio.to_thread(context.workspace.list_directory, path)
    lines = [_shown_item(item) for item in items[:MAX_LISTED]]
    if len(items) > MAX_LISTED:
        lines.append(f"[{len(items) - MAX_LISTED} more]")
    return "\n".join(lines) or "[empty directory]"


@tool(replayable=True, timeout_s=_TIMEOUT_S)
async def write_file(context: ToolContext, path: str, content: str) -> str:
    """Write a file in your task workspace, in place of what is there. Nobody else sees it: use
    deliver for results.

    Args:
        path: Relative to your task workspace.
        content: The whole text of the file.
    """
    raw = content.encode("utf-8", "backslashreplace")
    written = await asyncio.to_thread(context.workspace.write, path, raw)
    return f"wrote {len(raw)} bytes: {written}"


FILE_TOOLS: tuple[Tool, ...] = (view_file, list_dir, write_file)


def _shown_file(path: str, part: FileSlice) -> str:
    if part.binary:
        return f"[binary file, {part.size} bytes: {path}]"
    if part.size == 0:
        return "[empty file]"
    if part.offset >= part.size:
        return f"[the file has {part.size} bytes: nothing at offset {part.offset}]"
    if part.next_offset is not None:
        return (
            f"{part.text}\n[bytes {part.offset} to {part.next_offset} of {part.size}; "
            f"go on with offset {part.next_offset}]"
        )
    if part.offset:
        return f"{part.text}\n[bytes {part.offset} to {part.size}, the end]"
    return part.text


def _shown_item(item: DirectoryItem) -> str:
    """One line, whatever the name holds."""
    name = item.name if item.name.isprintable() else repr(item.name)
    if item.type == "directory":
        return f"{name}/"
    if item.type == "file":
        return f"{name} ({item.size} bytes)"
    return f"{name} ({item.type})"
