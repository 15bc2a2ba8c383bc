"""Waiting at a terminal: for what the gateway answers, and for what is typed meanwhile."""

import os
import select
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xclaw.cli.keyboard import Keyboard
    from xclaw.cli.typed_ahead import Typing


class Attendant:
    """Waits in the main thread, so that Ctrl-C reaches it as a `KeyboardInterrupt`."""

    def __init__(self, keyboard: "Keyboard", typing: "Typing", on_line: Callable[[str], None]) -> None:
        """`on_line` takes each line that is typed."""
        self._keyboard = keyboard
        self._typing = typing
        self._on_line = on_line
        self._wake_end: int | None = None

    def wake(self) -> None:
        """Have the one who waits look again. From any thread."""
        if self._wake_end is not None:
            try:
                os.write(self._wake_end, b".")
            except OSError:
                return  # nobody waits any more

    def wait(self, is_over: Callable[[], bool]) -> None:
        """Until `is_over`, which is asked after each line and whenever somebody wakes. What is half
        typed then stands in the next prompt."""
        from xclaw.cli.typed_ahead import TypedAhead
        from xclaw.cli.watching import is_terminal

        woken, self._wake_end = os.pipe()
        try:
            with TypedAhead(drawn=is_terminal()) as ahead:
                self._typing.ahead = ahead
                while not is_over():
                    sources = [woken] if ahead.ended else [woken, ahead.fileno()]
                    ready, _, _ = select.select(sources, [], [])
                    if woken in ready:
                        os.read(woken, 100)
                    if ahead.fileno() in ready:
                        for line in ahead.read():
                            self._on_line(line)
                self._keyboard.begin_with(ahead.take())
        finally:
            self._typing.ahead = None
            descriptor, self._wake_end = self._wake_end, None
            os.close(woken)
            os.close(descriptor)
