"""Pictures in files: what kind, how large. Only headers are read, never a picture decoded."""

import hashlib
import os
import struct
from dataclasses import dataclass

from xclaw.contracts.messages import ImageRef
from xclaw.contracts.tools import ToolOutput

MAX_IMAGE_BYTES = 3_700_000
"""A larger one is refused by some provider."""
MAX_SIDE = 8_000
"""Pixels, for the same reason."""
_HEADER_BYTES = 1_000_000
"""A JPEG's size stands behind whatever else it carries."""
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""Markers of a JPEG that begin a picture."""


@dataclass(frozen=True, slots=True)
class ImageHeader:
    kind: str
    width: int
    height: int

    @property
    def media_type(self) -> str:
        return f"image/{self.kind}"


def image_in(descriptor: int, size: int, path: str) -> ToolOutput | None:
    """What is answered for an open file that is a picture; None when it is none."""
    header = read_header(os.pread(descriptor, _HEADER_BYTES, 0))
    if header is None:
        return None
    text = f"[image: {header.kind}, {header.width} x {header.height} pixels, {size} bytes: {path}]"
    if size > MAX_IMAGE_BYTES or max(header.width, header.height) > MAX_SIDE:
        most = f"{MAX_IMAGE_BYTES} bytes and {MAX_SIDE} pixels a side"
        return ToolOutput(f"{text}\n[too large to be shown: at most {most}]")
    content = os.pread(descriptor, MAX_IMAGE_BYTES + 1, 0)
    digest = hashlib.sha256(content).hexdigest()
    ref = ImageRef(path, digest, header.media_type, header.width, header.height, len(content))
    return ToolOutput(text, images=(ref,))


def read_header(start: bytes) -> ImageHeader | None:
    """From the beginning of a file. None for anything but a PNG, JPEG, GIF or WebP with a size."""
    try:
        header = _header(start)
    except (struct.error, IndexError):
        return None
    return header if header is not None and header.width > 0 and header.height > 0 else None


def _header(start: bytes) -> ImageHeader | None:
    if start.startswith(b"\x89PNG\r\n\x1a\n") and start[12:16] == b"IHDR":
        return ImageHeader("png", *struct.unpack_from(">II", start, 16))
    if start.startswith((b"GIF87a", b"GIF89a")):
        return ImageHeader("gif", *struct.unpack_from("<HH", start, 6))
    if start.startswith(b"RIFF") and start[8:12] == b"WEBP":
        return _webp(start)
    if start.startswith(b"\xff\xd8\xff"):
        return _jpeg(start)
    return None


def _webp(start: bytes) -> ImageHeader | None:
    match start[12:16]:
        case b"VP8 " if start[23:26] == b"\x9d\x01\x2a":
            width, height = struct.unpack_from("<HH", start, 26)
            return ImageHeader("webp", width & 0x3FFF, height & 0x3FFF)
        case b"VP8L" if start[20] == 0x2F:
            bits: int = struct.unpack_from("<I", start, 21)[0]
            return ImageHeader("webp", (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
        case b"VP8X":
            width, height = int.from_bytes(start[24:27], "little"), int.from_bytes(start[27:30], "little")
            return ImageHeader("webp", width + 1, height + 1) if len(start) >= 30 else None
        case _:
            return None


def _jpeg(start: bytes) -> ImageHeader | None:
    at = 2
    while start[at] == 0xFF:
        marker = start[at + 1]
        if marker == 0xFF:  # a filler
            at += 1
            continue
        if marker in _FRAMES:
            height, width = struct.unpack_from(">HH", start, at + 5)
            return ImageHeader("jpeg", width, height)
        length: int = struct.unpack_from(">H", start, at + 2)[0]
        if length < 2 or marker in (0xD9, 0xDA):
            return None
        at += 2 + length
    return None
