"""Shows a tree of runs as one JSON event per line."""

from collections.abc import Iterable

from xclaw.cli.output import Watcher, event_json, print_json
from xclaw.contracts.events import Address, Entry
from xclaw.contracts.results import Result


class EventStream:
    """Writes every event to standard output, and lets another watcher show the progress elsewhere."""

    def __init__(self, progress: Watcher) -> None:
        self._progress = progress
        self._closed = False

    @property
    def closed(self) -> bool:
        return self._closed

    def learn(self, entries: Iterable[Entry]) -> None:
        self._progress.learn(entries)

    def receive(self, entry: Entry) -> None:
        self._progress.receive(entry)
        if self._closed:
            return
        try:
            print_json(event_json(entry))
        except (OSError, ValueError):
            self._closed = True

    def start_again(self, address: Address) -> None:
        self._progress.start_again(address)

    def finish(self, result: Result) -> None:
        self._progress.finish(result)

    def close(self) -> None:
        self._progress.close()

    def reopen(self) -> None:
        self._progress.reopen()
