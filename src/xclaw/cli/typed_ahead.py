"""What a person types while a run is shown: read key by key, drawn by whoever draws the run."""

import codecs
import os
import re
import sys
import termios
from types import TracebackType
from typing import Self

_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|.)?")
ERASE = ("\x7f", "\b")
ERASE_LINE = "\x15"
END = "\x04"
MAX_CHARACTERS = 100_000


class TypedAhead:
    """Lines from the terminal, without waiting for any.

    With `drawn`, the terminal shows no keys itself and gives each at once (Ctrl-C still interrupts), and
    leaving the block gives it back as it was. Without, the terminal edits and shows the line as always.
    """

    def __init__(self, *, drawn: bool) -> None:
        self._drawn = drawn
        self._descriptor = sys.stdin.fileno()
        self._before: list[int | list[bytes | int]] | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._line = ""
        self.ended = False
        """The input has ended."""

    def __enter__(self) -> Self:
        if self._drawn:
            self._before = termios.tcgetattr(self._descriptor)
            changed = termios.tcgetattr(self._descriptor)
            flags = changed[3]
            assert isinstance(flags, int)
            changed[3] = flags & ~(termios.ICANON | termios.ECHO)
            termios.tcsetattr(self._descriptor, termios.TCSADRAIN, changed)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            termios.tcsetattr(self._descriptor, termios.TCSADRAIN, self._before)

    def fileno(self) -> int:
        return self._descriptor

    @property
    def unfinished(self) -> str:
        """The line that is being typed."""
        return self._line

    def take(self) -> str:
        """The unfinished line, which begins anew."""
        line, self._line = self._line, ""
        return line

    def read(self) -> list[str]:
        """The lines that were finished; call it when there is something to read."""
        data = os.read(self._descriptor, 4096)
        if not data:
            self.ended = True
        lines: list[str] = []
        for key in _SEQUENCE.sub("", self._decoder.decode(data)):
            if key in "\r\n":
                lines.append(self.take())
            elif key in ERASE:
                self._line = self._line[:-1]
            elif key == ERASE_LINE:
                self._line = ""
            elif key == END and not self._line:
                self.ended = True
            elif (key.isprintable() or key == "\t") and len(self._line) < MAX_CHARACTERS:
                self._line += key
        return [line for line in lines if line.strip()]


class Typing:
    """The line that is being typed while a run is shown, for whoever draws it."""

    def __init__(self) -> None:
        self.ahead: TypedAhead | None = None

    def text(self) -> str:
        return self.ahead.unfinished if self.ahead else ""
