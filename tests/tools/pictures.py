"""Small pictures of 300 by 200 pixels, or what looks like one from its beginning."""

import struct
import zlib


def png(width: int, height: int) -> bytes:
    """A real one, all black."""
    rows = zlib.compress((b"\0" + b"\0" * ((width + 7) // 8)) * height)
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", rows) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def _webp(kind: bytes, content: bytes) -> bytes:
    body = b"WEBP" + kind + struct.pack("<I", len(content)) + content
    return b"RIFF" + struct.pack("<I", len(body)) + body


PICTURES = {
    "png": png(300, 200),
    "gif": b"GIF89a" + struct.pack("<HH", 300, 200) + b"\0\0\0;",
    "jpeg": b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0\xff\xc0"
    + struct.pack(">HBHH", 11, 8, 200, 300)
    + b"\x01\x11\0\xff\xd9",
    "webp lossy": _webp(b"VP8 ", b"\x30\x01\0\x9d\x01\x2a" + struct.pack("<HH", 300, 200) + b"\0" * 8),
    "webp lossless": _webp(b"VP8L", b"\x2f" + struct.pack("<I", 299 | 199 << 14) + b"\0" * 8),
    "webp extended": _webp(b"VP8X", b"\0" * 4 + (299).to_bytes(3, "little") + (199).to_bytes(3, "little")),
}
