"""What a connection delivers, cut off, repeated and started again, as one unbroken sequence.

Stored events are told apart by their id, streamed text by its place: the run, its last stored event,
the characters since then. So nothing is shown twice and nothing is lost, whatever happens between.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from time import time

from xclaw.contracts.events import (
    Address,
    AttemptFailed,
    Entry,
    Event,
    ModelAnswered,
    RunEnded,
    RunResumed,
    TextDelta,
    TurnStarted,
)


@dataclass(frozen=True, slots=True)
class StartedAgain:
    """What was shown of the run's turn does not count: its model was asked again and says otherwise."""

    address: Address


Piece = Entry | StartedAgain
"""What is to be shown next."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a streamed text stands: so many characters after a run's stored entry."""

    run_id: str
    after: int
    offset: int


@dataclass(slots=True)
class _Turn:
    """The turn that a run is in, as far as it was shown."""

    address: Address
    after: int
    """The id of the run's last stored entry."""
    offset: int = 0
    """Characters that came since then."""
    shown: list[str] = field(default_factory=list[str])
    """The text of this turn that was shown, in pieces."""
    repeated: int | None = None
    """After a restart of the gateway: how much of `shown` the model has said again. None: all of it."""
    doubtful: bool = False
    """The connection was lost since the last text; there may have been more."""
    broken: bool = False
    """Some of the text was missed: nothing is shown until the whole is known."""
    parted: bool = False
    """An event came in the middle of the text; what a slow client did not read before it may be gone."""

    def clear(self) -> None:
        self.shown, self.repeated, self.broken, self.parted = [], None, False, False

    def say(self, text: str) -> list[Piece]:
        """Show `text`, except where it repeats what was shown before a restart."""
        if self.repeated is None:
            return self._append(text)
        shown, place = "".join(self.shown), self.repeated
        if shown.startswith(text, place):
            place += len(text)
            self.repeated = None if place == len(shown) else place
            return []
        self.repeated = None
        if text.startswith(shown[place:]):
            return self._append(text[len(shown) - place :])
        return self._again(shown[:place] + text)

    def complete(self, text: str) -> list[Piece]:
        """Its whole text is `text`: show what is missing. Without anything shown there is nothing to
        complete: whoever shows a finished turn shows its text."""
        shown = "".join(self.shown)
        in_doubt = self.broken or self.parted or self.repeated is not None
        if not shown or not in_doubt or text.split() == shown.split():
            return []
        return self._append(text[len(shown) :]) if text.startswith(shown) else self._again(text)

    def store(self, event: Event) -> list[Piece]:
        """The pieces that come before a stored event of the run."""
        self.broken, self.doubtful = self.broken or self.doubtful, False
        match event:
            case ModelAnswered():
                pieces = self.complete(event.message.text)
                self.clear()
                return pieces
            case RunResumed():
                self.repeated, self.broken, self.parted = 0 if self.shown else None, False, False
            case TurnStarted() if self.repeated is not None:
                self.repeated, self.broken, self.parted = 0, False, False
            case TurnStarted() | AttemptFailed() | RunEnded():
                self.clear()
            case _:
                self.parted = True
        return []

    def _append(self, text: str) -> list[Piece]:
        self.shown.append(text)
        return [Entry(self.address, 0, time(), TextDelta(text))] if text else []

    def _again(self, text: str) -> list[Piece]:
        self.shown = []
        return [StartedAgain(self.address), *self._append(text)]


class Unbroken:
    """The events and the streamed text of one session, each once and in order.

    Text of a run of which no event is known is left out; the event that ends its turn has it.
    """

    def __init__(self, last_id: int | None = None) -> None:
        self.last_id = last_id
        """The newest entry that came: what to resume from. None: nothing is known yet."""
        self._turns: dict[str, _Turn] = {}

    def begin_at(self, last_id: int) -> None:
        """A watch began there, from now on or from where the last one ended."""
        self.last_id = max(last_id, self.last_id or 0)

    def learn(self, entries: Iterable[Entry]) -> None:
        """Know what happened before the watch began, so that text of those runs has its place."""
        for entry in entries:
            self._store(entry)

    def cut(self) -> None:
        """The connection was lost."""
        for turn in self._turns.values():
            turn.doubtful = True

    def event(self, entry: Entry) -> list[Piece]:
        """A stored event came, perhaps not for the first time."""
        if self.last_id is not None and entry.id <= self.last_id:
            return []
        self.last_id = entry.id
        pieces = self._store(entry)
        if isinstance(entry.event, RunEnded) and not entry.address.parent_id:
            root = entry.address.root_id
            self._turns = {run: turn for run, turn in self._turns.items() if turn.address.root_id != root}
        return [*pieces, entry]

    def text(self, place: Place, text: str) -> list[Piece]:
        """Streamed text came; what was shown of it already is left out."""
        turn = self._turns.get(place.run_id)
        if turn is None or place.after < turn.after:
            return []
        if place.after > turn.after:
            turn.broken = turn.broken or turn.doubtful
            turn.after, turn.offset = place.after, 0
        turn.doubtful = False
        if place.offset > turn.offset:
            turn.broken = True
        fresh = text[max(0, turn.offset - place.offset) :]
        turn.offset = max(turn.offset, place.offset + len(text))
        return turn.say(fresh) if fresh and not turn.broken else []

    def _store(self, entry: Entry) -> list[Piece]:
        turn = self._turns.setdefault(entry.address.run_id, _Turn(entry.address, entry.id))
        pieces = turn.store(entry.event)
        turn.after, turn.offset = entry.id, 0
        return pieces
