"""The three standard streams: there from the first line on, whatever this process was started with."""

import io
import os
import sys
from contextlib import suppress

_STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


def prepare_streams() -> None:
    """Open the null device in place of a stream that was closed; let nothing fail for its encoding.

    Otherwise the next file that is opened takes the stream's number, and what is written to the one
    ends up in the other.
    """
    for number, (name, mode) in enumerate(_STREAMS):
        if getattr(sys, name) is None and not _is_open(number):
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 - for good
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def let_go_of_stdout() -> None:
    """Give the interpreter's last flush somewhere to write, after the reader has gone away."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True
