"""Framing of server-sent events: bytes in, whole events out, however the bytes are cut."""

from xclaw.contracts.errors import ModelInterrupted

MAX_EVENT_BYTES = 16 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"

Event = tuple[bytes, bytes]
"""Its name, empty for the default one, and its data. Both undecoded: a character may span two reads."""


class EventDecoder:
    """The `text/event-stream` grammar: CRLF, CR and LF ends, comments, several data lines, a BOM.

    `id` and `retry` are read over: a completion cannot be resumed. Raises `ModelInterrupted` for an
    event longer than `max_event_bytes`.
    """

    __slots__ = ("_after_cr", "_begun", "_data", "_data_bytes", "_limit", "_name", "_tail", "_tail_bytes")

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._limit = max_event_bytes
        self._begun = False
        self._after_cr = False
        self._tail: list[bytes] = []
        self._tail_bytes = 0
        self._name = b""
        self._data: list[bytes] = []
        self._data_bytes = 0

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that `chunk` completes."""
        if self._after_cr and chunk:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        if b"\r" in chunk:
            self._after_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = chunk.split(b"\n")
        tail = lines.pop()
        if not lines:
            self._keep(tail)
            return []
        if self._tail:
            lines[0] = b"".join((*self._tail, lines[0]))
            self._tail.clear()
            self._tail_bytes = 0
        self._keep(tail)
        if not self._begun:
            self._begun = True
            lines[0] = lines[0].removeprefix(_BOM)
        return self._read_lines(lines)

    def close(self) -> list[Event]:
        """The last event when the stream ended without the blank line that should follow it.

        Only useful to a reader that can tell a whole event from half of one, as JSON can.
        """
        return self.feed(b"\n\n") if self._tail or self._data else []

    def _keep(self, tail: bytes) -> None:
        if tail:
            self._tail.append(tail)
            self._tail_bytes += len(tail)
            self._check(self._tail_bytes + self._data_bytes)

    def _check(self, size: int) -> None:
        if size > self._limit:
            raise ModelInterrupted(f"the stream holds an event of more than {self._limit} bytes")

    def _read_lines(self, lines: list[bytes]) -> list[Event]:
        events: list[Event] = []
        data = self._data
        for line in lines:
            if not line:
                if data:
                    events.append((self._name, data[0] if len(data) == 1 else b"\n".join(data)))
                    data.clear()
                    self._data_bytes = 0
                self._name = b""
            elif line.startswith(b"data:"):
                value = line[6:] if line.startswith(b" ", 5) else line[5:]
                data.append(value)
                self._data_bytes += len(value) + 1
                if self._data_bytes > self._limit:
                    self._check(self._data_bytes)
            elif line == b"data":
                data.append(b"")
            elif line.startswith(b"event:"):
                self._name = line[7:] if line.startswith(b" ", 6) else line[6:]
        return events
