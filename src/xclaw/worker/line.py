"""The worker's end of the line to the runtime: what is asked there, and what comes from there."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from xclaw.contracts.errors import JournalError
from xclaw.contracts.models import ReplySink
from xclaw.contracts.scope import current_scope
from xclaw.runtime.wire import (
    Answered,
    Ask,
    AttemptOver,
    Begin,
    Committed,
    Down,
    Drop,
    GivePlace,
    Line,
    Past,
    Steer,
    Stop,
    Streamed,
    Want,
    decode_down,
    encode,
)
from xclaw.spawn.forked_process import MAX_LINE

Question = TypeVar("Question", Ask, Want)


class LineTooLong(Exception):
    """It would not be read at the other end."""


class RuntimeLine:
    """Sends in order; hands what comes to whoever waits for it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._number = 0
        self._open: dict[int, asyncio.Future[Answered]] = {}
        self._sinks: dict[int, ReplySink] = {}
        self._places: set[int] = set()
        """Questions for a place that were dropped: an answer that had left by then is given back."""
        self.flush: Callable[[], None] = lambda: None
        """Sends what was recorded: everything else that is said comes after it."""
        self.on_committed: Callable[[Committed], None] = lambda _: None
        self.on_steer: Callable[[Steer], None] = lambda _: None
        self.on_stop: Callable[[Stop], None] = lambda _: None

    async def receive(self) -> Down | None:
        """The next line; None once the runtime has hung up."""
        line = await self._reader.readline()
        return decode_down(line) if line else None

    def send(self, line: Line) -> None:
        """Raises `LineTooLong`."""
        text = encode(line)
        if len(text) > MAX_LINE - 1:
            raise LineTooLong(f"a line of {len(text)} bytes is longer than {MAX_LINE}")
        self._writer.write(text + b"\n")

    async def drain(self) -> None:
        await self._writer.drain()

    async def listen(self) -> None:
        """Until the runtime has hung up."""
        while (said := await self.receive()) is not None:
            self._hear(said)

    def _hear(self, said: Down) -> None:
        match said:
            case Committed():
                self.on_committed(said)
            case Streamed():
                if said.id in self._sinks:
                    self._sinks[said.id].on_text(said.text)
            case AttemptOver():
                if said.id in self._sinks:
                    self._sinks[said.id].on_attempt_failed(said.attempt)
            case Answered():
                self._answered(said)
            case Steer():
                self.on_steer(said)
            case Stop():
                self.on_stop(said)
            case Past() | Begin():
                raise JournalError("the runtime began a second time")

    def _answered(self, said: Answered) -> None:
        waiting = self._open.get(said.id)
        if waiting is not None and not waiting.done():
            waiting.set_result(said)
        elif said.id in self._places:
            self._places.discard(said.id)
            if said.error is None:
                self.send(GivePlace())

    async def question(self, make: Callable[[int, str], Question], sink: ReplySink | None = None) -> Answered:
        """Ask for the run that calls. `make` gets the question's number and the run's id.

        Raises the error that the runtime answers with, and `LineTooLong`. Cancelling it drops the question.
        """
        scope = current_scope.get()
        assert scope is not None
        self._number += 1
        number = self._number
        self.flush()
        question = make(number, scope.run_id)
        self.send(question)
        waiting = self._open[number] = asyncio.get_running_loop().create_future()
        if sink is not None:
            self._sinks[number] = sink
        try:
            answered = await waiting
        except asyncio.CancelledError:
            if isinstance(question, Want) and question.what == "place":
                if waiting.done() and not waiting.cancelled():
                    self.send(GivePlace())
                else:
                    self._places.add(number)
            self.send(Drop(id=number))
            raise
        finally:
            del self._open[number]
            self._sinks.pop(number, None)
        if answered.error is not None:
            raise answered.error.error()
        return answered
