"""Lines from a person or a pipe: history, continuation, and Ctrl-C at the prompt."""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TextIO

HISTORY_FILE = "history"
HISTORY_LINES = 1000
PROMPT = "you> "
CLEAR_LINE = "\r\x1b[K"


class AbovePrompt:
    """Writes whole lines above the prompt and the line that is being typed, if there is one."""

    def __init__(self, stream: TextIO, keyboard: "Keyboard") -> None:
        self._stream = stream
        self._keyboard = keyboard
        self._rest = ""

    def write(self, text: str, /) -> int:
        whole, newline, self._rest = (self._rest + text).rpartition("\n")
        if newline:
            asking = self._keyboard.asking
            self._stream.write(f"{CLEAR_LINE if asking else ''}{whole}\n{_prompt() if asking else ''}")
        return len(text)

    def flush(self) -> None:
        self._stream.flush()


def _prompt() -> str:
    try:
        import readline
    except ImportError:
        return PROMPT
    return PROMPT + readline.get_line_buffer()


class Keyboard:
    """Reads messages from standard input. On a terminal with a prompt and a history kept in `home`."""

    def __init__(self, home: Path) -> None:
        self._history = home / HISTORY_FILE
        self._begun = ""
        self.interactive = sys.stdin is not None and sys.stdin.isatty()
        self.asking = False
        """The prompt is there, and perhaps a line that is being typed."""

    def begin_with(self, text: str) -> None:
        """Put what was typed already into the next prompt."""
        self._begun = text

    def messages(self) -> Iterator[str]:
        """Non-empty messages until the input ends. A line that ends in a backslash goes on in the next.

        Ctrl-C at the prompt drops the line; a second one right after it ends the input.
        """
        if sys.stdin is None:
            return
        if self.interactive:
            self._load_history()
        parts: list[str] = []
        for line in self._typed() if self.interactive else self._piped():
            if line.endswith("\\") and not line.endswith("\\\\"):
                parts.append(line[:-1])
                continue
            message = "\n".join([*parts, line]).strip()
            parts = []
            if message:
                yield message
        if rest := "\n".join(parts).strip():
            yield rest

    def _piped(self) -> Iterator[str]:
        for raw in sys.stdin.buffer:
            yield raw.decode("utf-8", "replace").rstrip("\r\n")

    def _typed(self) -> Iterator[str]:
        dropped = False
        while True:
            try:
                line = self._input()
                dropped = False
                yield line
            except EOFError:
                print()
                return
            except KeyboardInterrupt:
                if dropped:
                    print()
                    return
                dropped = True
                print("\n(Ctrl-C again, or /quit, to leave)")

    def _input(self) -> str:
        begun, self._begun = self._begun, ""
        try:
            import readline
        except ImportError:
            readline = None
        if readline is not None:
            readline.set_startup_hook((lambda: readline.insert_text(begun)) if begun else None)
        self.asking = True
        try:
            return input(PROMPT)
        finally:
            self.asking = False

    def _load_history(self) -> None:
        """Line editing with a history; without the module, lines are read all the same."""
        try:
            import readline
        except ImportError:
            return
        import atexit

        with suppress(OSError):
            readline.read_history_file(self._history)
        readline.set_history_length(HISTORY_LINES)
        atexit.register(self._save_history)

    def _save_history(self) -> None:
        import readline

        with suppress(OSError):
            self._history.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(self._history, os.O_CREAT | os.O_WRONLY, 0o600))
            readline.write_history_file(self._history)
