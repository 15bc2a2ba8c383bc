"""What Typer says of wrong use, in words that help."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

_INSIDE = "Value error, "
"""How the library that Typer checks values with begins its messages."""
_UNKNOWN = "No such command "


@runtime_checkable
class Misuse(Protocol):
    """Typer's error for wrong use, whose class it does not export."""

    message: str

    def show(self) -> None: ...

    def format_message(self) -> str: ...


def made_plain(error: Misuse, arguments: Sequence[str]) -> None:
    """Rewrite its message: no class names of a library, and how a text is sent that was taken for a command."""
    error.message = error.message.removeprefix(_INSIDE)
    if error.message.startswith(_UNKNOWN) and arguments and any(map(str.isspace, arguments[0])):
        error.message = 'A text is no command. Send it with: xclaw run "..."'
