"""The tool that hands in a finished artifact (SPEC D6)."""

import ast
import asyncio
import base64
import binascii
import json
import warnings
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Literal

from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.events import ArtifactDelivered
from xclaw.contracts.tools import ToolContext
from xclaw.tools.functions import tool

_TIMEOUT_S = 60.0
_PARSED_BYTES = 200_000
_PARSERS: dict[str, Callable[[bytes], object]] = {".py": ast.parse, ".json": json.loads}


@tool(replayable=True, timeout_s=_TIMEOUT_S)
async def deliver(
    context: ToolContext,
    path: str,
    content: str = "",
    encoding: Literal["text", "base64"] = "text",
    from_file: str = "",
) -> str:
    """Deliver a finished file as a result of your task. A name that exists becomes a new version.

    Args:
        path: A file name, or a path inside your shared delivery directory if you have one.
        content: The whole content of the file.
        encoding: "base64" when the content is base64 of a binary file.
        from_file: In place of content: a file of your task workspace, delivered as it is.
    """
    if content and from_file:
        raise ToolFailed("content and from_file say two things: give one of them")
    if not content and not from_file:
        raise ToolFailed(
            "there is nothing to deliver: the content is empty. Give the finished file's content, or from_file "
            "for a file of your task workspace"
        )
    if from_file:
        raw = await asyncio.to_thread(context.workspace.content, from_file)
    else:
        raw = _bytes_from(content, encoding)
    pointer = await asyncio.to_thread(context.workspace.deliver, path, raw)
    context.record(ArtifactDelivered(pointer, PurePosixPath(path).name))
    fault = _fault_in(path, raw)
    if fault:
        return f"delivered: {pointer.path}\nnote: it does not parse: {fault}. Deliver it again, corrected."
    return f"delivered: {pointer.path}"


def _fault_in(path: str, content: bytes) -> str:
    """Why a Python or JSON file is none; empty for a good one, one of another kind, or a very long one.

    It is read, never run.
    """
    suffix = PurePosixPath(path).suffix.lower()
    if suffix not in _PARSERS or len(content) > _PARSED_BYTES:
        return ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a doubtful escape in somebody's file is no matter of ours
            _PARSERS[suffix](content)
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return str(error)[:200] or type(error).__name__
    return ""


def _bytes_from(content: str, encoding: Literal["text", "base64"]) -> bytes:
    if encoding == "text":
        return content.encode("utf-8", "backslashreplace")
    try:
        return base64.b64decode("".join(content.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ToolFailed(f"the content is not valid base64 ({error}); send it again whole") from error
