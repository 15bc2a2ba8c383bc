"""What goes to standard output, form by form: events and results as JSON, lines as text."""

import json
import sys
from collections.abc import Iterable
from typing import Protocol, cast

import msgspec

from xclaw.cli.failures import complain, reason_of
from xclaw.contracts.artifacts import Pointer
from xclaw.contracts.events import Address, Entry, RunStarted
from xclaw.contracts.results import Result
from xclaw.traces.forms import Json, usage_json


class Watcher(Protocol):
    """Shows a tree of runs while it goes on. Called on the event loop; never blocks long."""

    @property
    def closed(self) -> bool:
        """Nobody reads the output any more."""
        ...

    def learn(self, entries: Iterable[Entry]) -> None:
        """Know what happened before, without showing it."""
        ...

    def receive(self, entry: Entry) -> None: ...

    def start_again(self, address: Address) -> None:
        """What was shown of the run's turn does not count: its model was asked again, and its text comes
        from the beginning."""
        ...

    def finish(self, result: Result) -> None:
        """The run has ended; show the end."""
        ...

    def close(self) -> None:
        """Give the terminal back. Safe to repeat."""
        ...

    def reopen(self) -> None:
        """Take the terminal again, after it was needed for something else."""
        ...


def encoded(value: object) -> bytes:
    """One line of JSON, UTF-8."""
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, TypeError, ValueError):
        # Unpaired surrogates, or what a script put into summary_data: escaped, so that the line is valid.
        return json.dumps(msgspec.to_builtins(value), default=str).encode("ascii")


def print_json(value: object) -> None:
    """One JSON document on standard output."""
    sys.stdout.flush()
    sys.stdout.buffer.write(encoded(value) + b"\n")
    sys.stdout.buffer.flush()


def print_indented(value: object) -> None:
    """One JSON document on standard output, laid out for people too."""
    sys.stdout.flush()
    sys.stdout.buffer.write(msgspec.json.format(encoded(value), indent=2) + b"\n")
    sys.stdout.buffer.flush()


def print_error(_outcome: str, reason: str) -> None:
    """What a command that prints JSON prints when it failed."""
    print_json({"error": reason})


def event_json(entry: Entry) -> Json:
    """One event as `stream-json` prints it. `seq` and `id` are 0 for a `text_delta`."""
    fields = cast("Json", msgspec.to_builtins(entry.event))
    kind = fields.pop("kind")
    return {
        "type": kind,
        "run_id": entry.address.run_id,
        "root_id": entry.address.root_id,
        "parent_id": entry.address.parent_id,
        "session_id": entry.address.session_id,
        "seq": entry.seq,
        "id": entry.id,
        "at": entry.at,
        **fields,
    }


def result_json(
    result: Result,
    *,
    session_id: str | None,
    run_id: str | None,
    artifacts: Iterable[Pointer],
    scripted: bool = False,
) -> Json:
    """How a run ended, as `json` prints it and `stream-json` ends with."""
    form: Json = {
        "type": "result",
        "status": result.outcome,
        "text": result.text,
        "session_id": session_id,
        "run_id": run_id,
        "usage": {**usage_json(result.spend.usage), "calls": result.spend.calls},
        "cost_usd": result.spend.cost_usd,
        "artifacts": [
            {"path": pointer.path, "sha256": pointer.sha256, "size": pointer.size, "agent": pointer.agent}
            for pointer in artifacts
        ],
        "duration_s": round(result.duration_s, 3),
    }
    if result.summary_data is not None:
        form["summary_data"] = result.summary_data
    if result.reason or not result.succeeded:
        form["reason"] = result.reason or result.outcome
    if result.branch:
        form["branch"] = result.branch
    if scripted:
        form["scripted"] = True
    return form


def route_json(entries: Iterable[Entry]) -> Json:
    """Which agent answered, and why; nothing for a tree that never began."""
    for entry in entries:
        if isinstance(entry.event, RunStarted) and not entry.address.parent_id:
            route = entry.event.route
            why = {"by": route.by, "rule": route.rule, "reason": route.reason} if route else None
            return {"agent": entry.event.agent, "route": why}
    return {}


class Writable(Protocol):
    """What lines need of a text stream."""

    def write(self, text: str, /) -> int: ...

    def flush(self) -> None: ...


class Lines:
    """A text stream that is written line by line or, while nothing else speaks, piece by piece.

    When the reader has gone away, `closed` is set and further writes do nothing.
    """

    def __init__(self, stream: Writable) -> None:
        self._stream = stream
        self._middle = False
        """The last write did not end its line."""
        self.closed = False

    def line(self, text: str) -> None:
        start = "\n" if self._middle else ""
        self._middle = False
        self._write(f"{start}{text}\n")

    def piece(self, text: str) -> None:
        if text:
            self._middle = not text.endswith("\n")
            self._write(text)

    def end_line(self) -> None:
        if self._middle:
            self._middle = False
            self._write("\n")

    def _write(self, text: str) -> None:
        if self.closed:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError) as error:
            self.closed = True
            if not isinstance(error, BrokenPipeError):
                complain(f"the output cannot be written: {reason_of(error)}")
