"""Follows a run to its end: what it does goes to a watcher, Ctrl-C and SIGTERM stop it."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from xclaw.cli.failures import INTERRUPTED, complain
from xclaw.cli.output import Lines, Watcher
from xclaw.cli.render_json import EventStream
from xclaw.cli.render_plain import PlainRenderer
from xclaw.contracts.events import Entry
from xclaw.contracts.results import Result

if TYPE_CHECKING:
    from xclaw.cli.options import OutputFormat
    from xclaw.runtime.runs import RunHandle

STOPPING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """The first interrupt ends the run and keeps what it did; the second leaves without waiting for
    it; the third ends the process on the spot. Made inside the task that it may cancel."""

    def __init__(self) -> None:
        self._task = asyncio.current_task()
        self._asked = asyncio.Event()
        self._reason = ""
        self._count = 0
        self._following = False

    @property
    def happened(self) -> bool:
        """The user or a reader that went away has stopped the run that was followed last."""
        return bool(self._reason)

    def install(self) -> None:
        """Listen to signals; only in a process's main thread."""
        loop = asyncio.get_running_loop()
        for number in STOPPING_SIGNALS:
            if number is signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                continue  # nohup: the run shall outlive its terminal
            loop.add_signal_handler(number, self.interrupt)

    def interrupt(self) -> None:
        self._count += 1
        if self._count == 1 and self._following:
            complain("stopping the run; interrupt again to leave at once")
            self.stop("interrupted by the user")
        elif self._count <= 2 and self._task is not None:
            self._task.cancel()
        else:
            os._exit(INTERRUPTED)

    def stop(self, reason: str) -> None:
        """End the run that is being followed."""
        self._reason = self._reason or reason
        self._asked.set()

    async def result_of(self, handle: "RunHandle") -> Result:
        """The end of a run, which an interrupt brings about."""
        self._following, self._count, self._reason = True, 0, ""
        self._asked.clear()
        try:
            async with asyncio.TaskGroup() as group:
                stopper = group.create_task(self._stopped(handle))
                try:
                    return await handle.result()
                finally:
                    stopper.cancel()
        finally:
            self._following = False

    async def _stopped(self, handle: "RunHandle") -> None:
        await self._asked.wait()
        await handle.cancel(self._reason)


async def followed(handle: "RunHandle", watcher: Watcher, interrupts: Interrupts) -> Result:
    """Show a run until it ends. When nobody reads the output any more, the run is stopped."""
    unsubscribe = handle.subscribe(_guarded(watcher, interrupts))
    try:
        return await interrupts.result_of(handle)
    finally:
        unsubscribe()
        watcher.close()


def _guarded(watcher: Watcher, interrupts: Interrupts) -> Callable[[Entry], None]:
    """The watcher's `receive`, which may not disturb the run that it shows."""

    def receive(entry: Entry) -> None:
        try:
            watcher.receive(entry)
        except Exception as error:
            complain(f"cannot show what happens: {type(error).__name__}: {error}")
            interrupts.stop("the output could not be written")
        if watcher.closed:
            interrupts.stop("nobody reads the output")

    return receive


def watcher_for(output_format: "OutputFormat", *, quiet: bool = False) -> Watcher:
    """The watcher that suits the output: live on a terminal, lines elsewhere, events for programs."""
    if output_format == "stream-json":
        return EventStream(PlainRenderer(Lines(sys.stderr), None))
    if output_format == "json" or quiet:
        return PlainRenderer(Lines(sys.stderr), None)
    if is_terminal():
        from xclaw.cli.render_live import LiveRenderer

        return LiveRenderer(sys.stdout)
    lines = Lines(sys.stdout)
    return PlainRenderer(lines, lines)


def is_terminal() -> bool:
    """Whether standard output can be drawn on, and the user does not mind."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
