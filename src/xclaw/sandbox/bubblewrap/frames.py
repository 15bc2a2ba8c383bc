"""Frames between xclaw and a keeper: a kind, a length, a body (standard library only).

Down go the order to be a sandbox, commands and cancellations; up come output and what became of them.
"""

import json
import struct
from collections.abc import Iterator, Mapping
from typing import cast

HEAD = struct.Struct("!BI")
MAX_BODY = 1 << 30

SETUP, RUN, CANCEL = 1, 2, 3
READY, REFUSED, OUTPUT, ENDED = 11, 12, 13, 14

Fields = dict[str, object]
_LENGTH = struct.Struct("!I")


def frame(kind: int, body: bytes = b"") -> bytes:
    return HEAD.pack(kind, len(body)) + body


def fields_frame(kind: int, fields: Mapping[str, object], rest: bytes = b"") -> bytes:
    """A frame of named values, with bytes behind them."""
    head = json.dumps(fields).encode()
    return frame(kind, _LENGTH.pack(len(head)) + head + rest)


def fields_of(body: bytes) -> tuple[Fields, bytes]:
    """Raises `ValueError` for what is no such body."""
    if len(body) < _LENGTH.size:
        raise ValueError("a frame is too short")
    end = _LENGTH.size + _LENGTH.unpack_from(body)[0]
    fields: object = json.loads(body[_LENGTH.size : end])
    if not isinstance(fields, dict):
        raise ValueError("a frame holds no fields")
    return cast("Fields", fields), body[end:]


class Unframed:
    """Takes bytes as they come and gives whole frames."""

    def __init__(self) -> None:
        self._waiting = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Raises `ValueError` for a frame that is too long."""
        self._waiting += data
        while len(self._waiting) >= HEAD.size:
            kind, length = HEAD.unpack_from(self._waiting)
            if length > MAX_BODY:
                raise ValueError(f"a frame of {length} bytes")
            if len(self._waiting) < HEAD.size + length:
                return
            body = bytes(self._waiting[HEAD.size : HEAD.size + length])
            del self._waiting[: HEAD.size + length]
            yield kind, body
