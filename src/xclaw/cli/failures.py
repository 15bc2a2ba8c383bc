"""How a command ends: exit codes, and errors that say what happened, where, and what to do."""

import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Literal, cast

from xclaw.cli.streams import let_go_of_stdout
from xclaw.cli.text import printable
from xclaw.contracts.errors import UsageError, XclawError
from xclaw.contracts.results import STOPPED_BY_LIMIT, SUCCESSFUL, Outcome

DONE = 0
FAILED = 1
MISUSED = 2
LIMITED = 3
INTERRUPTED = 130
READER_GONE = 141
"""Standard output was closed by whoever read it: what SIGPIPE would have answered."""


def exit_code_of(outcome: Outcome) -> int:
    if outcome in SUCCESSFUL:
        return DONE
    if outcome in STOPPED_BY_LIMIT:
        return LIMITED
    return INTERRUPTED if outcome == "cancelled" else FAILED


INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
Report = Callable[[Literal["error", "interrupted"], str], None]
"""Told on standard output how a command failed, and why."""


class LogLines(logging.Handler):
    """Shows what is logged as warnings or worse like any error: one line, and with `XCLAW_DEBUG=1`
    where it happened. Python would print tracebacks, and control characters as they are."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = record.getMessage()
        except (TypeError, ValueError):  # arguments that do not fit their message
            text = str(record.msg)
        error = record.exc_info[1] if record.exc_info else None
        if error is None:
            complain(text)
        else:
            complain(f"{text}: {type(error).__name__}: {error}")
            _show_where(error)


def _show_where(error: BaseException) -> None:
    if os.environ.get("XCLAW_DEBUG", "") not in ("", "0"):
        traceback.print_exception(error, file=sys.stderr)


def _unreported(_outcome: str, _reason: str) -> None:
    """Text output has the error on stderr alone."""


def guarded(body: Callable[[], int], report: Report = _unreported) -> int:
    """The exit code of `body`, errors included. With `XCLAW_DEBUG=1` tracebacks are shown."""
    try:
        code = _reported(body, report)
        sys.stdout.flush()
    except BrokenPipeError:
        let_go_of_stdout()
        return READER_GONE
    except KeyboardInterrupt:
        complain("interrupted")
        return INTERRUPTED
    except Exception as error:
        show_error(error)
        return MISUSED if isinstance(_innermost(error), UsageError) else FAILED
    return code


def hold_interrupts() -> None:
    """SIGTERM and SIGHUP interrupt like Ctrl-C, unless they are ignored; none does before a command
    has begun and can say that it was interrupted."""
    signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTS)
    for number in INTERRUPTS:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)


def _reported(body: Callable[[], int], report: Report) -> int:
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPTS)
        return body()
    except BrokenPipeError:
        raise
    except KeyboardInterrupt:
        report("interrupted", "interrupted by the user")
        raise
    except Exception as error:
        report("error", reason_of(error))
        raise


def show_error(error: BaseException) -> None:
    """Say on stderr what went wrong, for people."""
    _show_where(error)
    complain(reason_of(error))


def reason_of(error: BaseException) -> str:
    """What went wrong, in words."""
    error = _innermost(error)
    text = str(error).strip()
    if isinstance(error, XclawError):
        return text or type(error).__name__
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror or text}"
    return f"unexpected {type(error).__name__}: {text}\nSet XCLAW_DEBUG=1 to see where it happened."


def _innermost(error: BaseException) -> BaseException:
    """The first error in a group of errors."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


def complain(text: str) -> None:
    """A line on stderr; never fails."""
    try:
        print(f"xclaw: {printable(text)}", file=sys.stderr, flush=True)
    except (OSError, ValueError):
        return
