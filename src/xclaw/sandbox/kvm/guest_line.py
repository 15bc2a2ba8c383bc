"""What a guest says, read by somebody who trusts none of it.

Lines are bounded in length and in number, and what is not understood is nothing: a guest can at most make
its own machine useless.
"""

import base64
import binascii
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, cast, get_args

LINE_BYTES = 40_000
"""A piece of output in base64, and room to spare."""
NOISE_BYTES = 1_048_576
"""What a guest may say beyond what it was asked for."""
NOISE_LINES, LINES_PER_S, BYTES_PER_LINE = 5_000, 500, 1_024
"""Reading a line takes time: an agent says few short ones, and long ones only as long as its output is."""
TEXT = 500
_MOST = 1 << 53
_CODES = range(256)
_End = Literal["exited", "memory", "disk"]
_ENDS = get_args(_End)


class Misbehaved(Exception):
    """The guest says more, or longer lines, than an agent would. The machine is not used further."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The agent listens."""


@dataclass(frozen=True, slots=True)
class Began:
    """The command was started."""

    job: int


@dataclass(frozen=True, slots=True)
class Output:
    job: int
    content: bytes


@dataclass(frozen=True, slots=True)
class Ended:
    job: int
    ended: _End
    code: int
    left: int
    dropped: int


@dataclass(frozen=True, slots=True)
class Failed:
    """The agent could not do it."""

    job: int
    text: str


Said = Ready | Began | Output | Ended | Failed


def understood(line: bytes) -> Said | None:
    """What a line means; None for one that means nothing. Never raises."""
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    fields = cast("Mapping[str, object]", value)
    if "ready" in fields:
        return Ready()
    job = _number(fields.get("id"))
    if job is None:
        return None
    if isinstance(text := fields.get("failed"), str):
        return Failed(job, _shown(text))
    if isinstance(data := fields.get("out"), str):
        return _output(job, data)
    return Began(job) if "began" in fields else _ended(job, fields)


def _output(job: int, data: str) -> Output | None:
    try:
        return Output(job, base64.b64decode(data, validate=True))
    except (binascii.Error, ValueError):
        return None


def _ended(job: int, fields: Mapping[str, object]) -> Ended | None:
    how, code = fields.get("end"), _number(fields.get("code"))
    if code is None or code not in _CODES:
        return None
    left, dropped = _number(fields.get("left", 0)), _number(fields.get("dropped", 0))
    if left is None or dropped is None:
        return None
    return Ended(job, cast("_End", how), code, left, dropped) if how in _ENDS else None


def _number(value: object) -> int | None:
    """A count; True and 1.0 are none."""
    return value if type(value) is int and 0 <= value < _MOST else None


def _shown(text: str) -> str:
    """A stranger's text in one line of a message."""
    return "".join(sign if sign.isprintable() else " " for sign in text[:TEXT])


class GuestLine:
    """Takes bytes as they come, and gives what they mean."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._waiting = bytearray()
        self.expect(0)

    def expect(self, output_bytes: int) -> None:
        """A job begins that may write so much; what earlier ones left unused is forfeited."""
        self._allowed = NOISE_BYTES + output_bytes * 2
        self._since = self._clock()
        self._bytes = self._lines = 0

    def feed(self, data: bytes) -> list[Said]:
        """Raises `Misbehaved`; then nothing further may be fed."""
        self._allowed -= len(data)
        self._bytes += len(data)
        self._lines += data.count(b"\n")
        most = NOISE_LINES + LINES_PER_S * (self._clock() - self._since) + self._bytes / BYTES_PER_LINE
        if self._allowed < 0 or self._lines > most:
            raise Misbehaved("it says more than it was asked for")
        self._waiting += data
        found: list[Said] = []
        begin = 0
        while (end := self._waiting.find(b"\n", begin)) >= 0:
            if end - begin > LINE_BYTES:
                raise Misbehaved("a line is too long")
            said = understood(bytes(self._waiting[begin:end]))
            if said is not None:
                found.append(said)
            begin = end + 1
        del self._waiting[:begin]
        if len(self._waiting) > LINE_BYTES:
            raise Misbehaved("a line is too long")
        return found
