"""Output of any length in bounded memory: its beginning and its end."""


class HeadAndTail:
    """Keeps the first and the last half of `limit` bytes of what it is given."""

    def __init__(self, limit: int) -> None:
        self._half = max(limit // 2, 1)
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0

    def add(self, chunk: bytes) -> None:
        self._total += len(chunk)
        room = self._half - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        if len(self._tail) > 2 * self._half:
            del self._tail[: -self._half]

    def text(self) -> str:
        """As UTF-8, with marks in place of what is none and of NUL, which no provider takes."""
        tail = self._tail[-self._half :]
        left_out = self._total - len(self._head) - len(tail)
        if not left_out:
            return _decoded(self._head + tail)
        return f"{_decoded(self._head)}\n[{left_out} bytes left out]\n{_decoded(tail)}"


def _decoded(raw: bytearray) -> str:
    return raw.decode("utf-8", "replace").replace("\0", "␀")
