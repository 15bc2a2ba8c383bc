"""The pictures of a conversation: which of them a request carries, and what stands in place of the others."""

import asyncio
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.messages import AssistantMessage, ChatMessage, ImageRef
from xclaw.contracts.models import ModelRequest
from xclaw.contracts.workspaces import Workspace

MAX_IMAGES = 8
"""Of one request; the latest count."""
MAX_BYTES = 12_000_000
"""Of all pictures of one request."""
_KINDS = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_OLDER = "not shown again, since there are newer ones: view the file to see it"
_CHANGED = "no longer shown: the file has changed, or is not there; view it to see it as it is"


async def with_pictures(request: ModelRequest, workspace: Workspace) -> ModelRequest:
    """The request with the bytes of its pictures. They are read off the event loop, from the files as they
    are now: one that is not what it was is not shown."""
    if not any(_images(message) for message in request.messages):
        return request
    return await asyncio.to_thread(_filled, request, workspace)


def cannot_see(content: str) -> str:
    """What a model is told that cannot be shown the pictures of a tool's answer."""
    return f"{content}\n[you cannot be shown pictures]"


def _filled(request: ModelRequest, workspace: Workspace) -> ModelRequest:
    picking = _Picking(workspace, {})
    messages = [picking.picked(message) for message in reversed(request.messages)]
    return replace(request, messages=messages[::-1], images=picking.found)


@dataclass(slots=True)
class _Picking:
    """Goes through a conversation from its end."""

    workspace: Workspace
    found: dict[str, bytes]
    count: int = 0
    size: int = 0

    def picked(self, message: ChatMessage) -> ChatMessage:
        if isinstance(message, AssistantMessage) or not message.images:
            return message
        kept: list[ImageRef] = []
        notes: list[str] = []
        for image in reversed(message.images):
            reason = self._take(image)
            if reason:
                notes.append(f"[{image.path[:200]}: {reason}]")
            else:
                kept.append(image)
        said = "\n".join(["", *reversed(notes)])
        images = tuple(reversed(kept))
        if message.kind == "tool":
            return replace(message, content=message.content + said, images=images)
        return replace(message, text=message.text + said, images=images)

    def _take(self, image: ImageRef) -> str:
        """Why it is not shown; empty when it is."""
        if image.media_type not in _KINDS:
            return _CHANGED
        if self.count >= MAX_IMAGES or self.size + image.size > MAX_BYTES:
            return _OLDER
        if image.sha256 not in self.found:
            content = _content(image, self.workspace)
            if content is None:
                return _CHANGED
            self.found[image.sha256] = content
        self.count += 1
        self.size += image.size
        return ""


def _content(image: ImageRef, workspace: Workspace) -> bytes | None:
    try:
        with workspace.opened(image.path) as opened:
            if opened.is_directory or opened.size != image.size:
                return None
            content = os.pread(opened.descriptor, image.size, 0)
    except (ToolFailed, OSError):
        return None
    return content if hashlib.sha256(content).hexdigest() == image.sha256 else None


def _images(message: ChatMessage) -> Sequence[ImageRef]:
    return () if isinstance(message, AssistantMessage) else message.images
