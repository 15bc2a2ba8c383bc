"""Lines from a person or a pipe: history, continuation, and Ctrl-C at the prompt."""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

HISTORY_FILE = "history"
HISTORY_LINES = 1000
PROMPT = "you> "


class Keyboard:
    """Reads messages from standard input. On a terminal with a prompt and a history kept in `home`."""

    def __init__(self, home: Path) -> None:
        self._history = home / HISTORY_FILE
        self.interactive = sys.stdin is not None and sys.stdin.isatty()

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
                yield input(PROMPT)
                dropped = False
            except EOFError:
                print()
                return
            except KeyboardInterrupt:
                if dropped:
                    print()
                    return
                dropped = True
                print("\n(Ctrl-C again, or /quit, to leave)")

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
