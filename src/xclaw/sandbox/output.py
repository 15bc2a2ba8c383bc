"""The output of a command on its way out: bounded, whoever brings it (standard library only)."""

from collections.abc import Callable

Output = Callable[[bytes], None]


class BoundedOutput:
    """Passes the first `limit` bytes on, and counts the rest."""

    def __init__(self, output: Output, limit: int) -> None:
        self.dropped = 0
        self._output = output
        self._left = limit

    def add(self, piece: bytes) -> None:
        """Raises what the taker of the output does."""
        kept = piece[: self._left]
        self._left -= len(kept)
        self.dropped += len(piece) - len(kept)
        if kept:
            self._output(kept)
