"""The tool that hands in a finished artifact (SPEC D6)."""

import asyncio
import base64
import binascii
from pathlib import PurePosixPath
from typing import Literal

from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.events import ArtifactDelivered
from xclaw.contracts.tools import ToolContext
from xclaw.tools.functions import tool

_TIMEOUT_S = 60.0


@tool(replayable=True, timeout_s=_TIMEOUT_S)
async def deliver(
    context: ToolContext, path: str, content: str, encoding: Literal["text", "base64"] = "text"
) -> str:
    """Deliver a finished file as a result of your task. A name that exists becomes a new version.

    Args:
        path: A file name, or a path inside your shared delivery directory.
        content: The whole content of the file.
        encoding: "base64" when the content is base64 of a binary file.
    """
    raw = _bytes_from(content, encoding)
    pointer = await asyncio.to_thread(context.workspace.deliver, path, raw)
    context.record(ArtifactDelivered(pointer, PurePosixPath(path).name))
    return f"delivered: {pointer.path}"


def _bytes_from(content: str, encoding: Literal["text", "base64"]) -> bytes:
    if encoding == "text":
        return content.encode("utf-8", "backslashreplace")
    try:
        return base64.b64decode("".join(content.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ToolFailed(f"the content is not valid base64 ({error}); send it again whole") from error
