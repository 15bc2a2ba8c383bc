"""What a serving gateway says on standard error: one line for each message and each answer."""

import logging
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager

from xclaw.cli.output import print_json
from xclaw.cli.text import money, one_line, printable, seconds, tokens
from xclaw.contracts.events import Entry, Event, RunEnded, RunResumed, RunStarted, ToolCallStarted


def told_in_json(stage: str, done: int, total: int) -> None:
    """The preparation of the embedded model, for whoever started this process; perhaps nobody listens."""
    try:
        print_json({"event": "preparing", "stage": stage, "done": done, "total": total})
    except (OSError, ValueError):
        return


class ServeLog(logging.Handler):
    """A watcher of all runs, and a handler of what the gateway itself logs below warnings, which have
    lines of their own. Never raises."""

    def __init__(self, *, verbose: bool) -> None:
        super().__init__(logging.INFO)
        self._verbose = verbose

    @contextmanager
    def collecting(self) -> Generator[None]:
        logger = logging.getLogger("xclaw")
        before = logger.level
        logger.addHandler(self)
        logger.setLevel(logging.INFO)
        try:
            yield
        finally:
            logger.removeHandler(self)
            logger.setLevel(before)

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno < logging.WARNING:
            try:
                self._line(record.getMessage())
            except (TypeError, ValueError):
                self._line(str(record.msg))

    def receive(self, entry: Entry) -> None:
        """A stored event of any run."""
        is_root = not entry.address.parent_id
        text = _said(entry.event, verbose=self._verbose) if is_root or self._verbose else ""
        if text:
            address = entry.address
            self._line(f"{address.run_id}  {one_line(address.session_id, 60)}  {text}", entry.at)

    def _line(self, text: str, at: float | None = None) -> None:
        clock = time.strftime("%H:%M:%S", time.localtime(at))
        try:
            print(f"{clock}  {printable(text)}", file=sys.stderr, flush=True)
        except (OSError, ValueError):
            return


def _said(event: Event, *, verbose: bool) -> str:
    match event:
        case ToolCallStarted() if verbose:
            return f"> {one_line(event.name, 40)} {one_line(event.arguments, 100)}"
        case RunStarted():
            route = f" ({one_line(event.route.reason, 100)})" if event.route else ""
            return f"{one_line(event.agent, 40)}{route}: {one_line(event.input, 100)}"
        case RunResumed():
            return "goes on"
        case RunEnded():
            spend = event.result.spend
            used = tokens(spend.usage.total_tokens, estimated=spend.usage.estimated)
            reason = f": {one_line(event.result.reason, 200)}" if event.result.reason else ""
            took = seconds(event.result.duration_s)
            return f"{event.outcome}{reason}  {took}, {used} tokens, {money(spend.cost_usd)}"
        case _:
            return ""
