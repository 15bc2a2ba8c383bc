"""The messages of one client: which were accepted, which run answers them, what became of each."""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field

from xclaw.contracts.results import Result
from xclaw.gateway.wire import Say

REMEMBERED_ENDS = 256


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of a message."""

    result: Result | None = None
    """Of the run that answered it; None when another run read it, or none ever will."""
    run_id: str = ""
    code: str = ""
    """Why there is no answer, for programs; empty when there is one or none is needed."""
    reason: str = ""


@dataclass(slots=True, eq=False)
class Asked:
    """A message of this client, from when it was said until nothing more is to come of it."""

    say: Say
    request: str = ""
    """Its id, once it was accepted."""
    run_id: str = ""
    """The root run that answers it."""
    ended: "asyncio.Future[Ended]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Messages:
    """Messages of which something is still to come, in the order they were said."""

    def __init__(self) -> None:
        self._asked: dict[str, Asked] = {}
        """By client id."""
        self._ends: OrderedDict[str, Ended] = OrderedDict()
        """Of requests that ended before their acceptance was heard of."""

    def add(self, asked: Asked) -> None:
        self._asked[asked.say.client_id] = asked

    def get(self, client_id: str) -> Asked | None:
        return self._asked.get(client_id)

    @property
    def unheard(self) -> list[Asked]:
        """Not accepted yet, as far as is known."""
        return [asked for asked in self._asked.values() if not asked.request]

    @property
    def accepted(self) -> list[Asked]:
        return [asked for asked in self._asked.values() if asked.request]

    def accept(self, asked: Asked, request: str) -> bool:
        """It was accepted under this id; false when that is already all."""
        asked.request = request
        ended = self._ends.pop(request, None)
        if ended is not None:
            self.end(asked, ended)
        return ended is None

    def taken(self, request: str, run_id: str) -> None:
        """A run answers it."""
        for asked in self.accepted:
            if asked.request == request:
                asked.run_id = run_id

    def ended(self, request: str, ended: Ended) -> None:
        """What became of a request, of this client or perhaps of another."""
        for asked in self.accepted:
            if asked.request == request:
                self.end(asked, ended)
                return
        self._ends[request] = ended
        while len(self._ends) > REMEMBERED_ENDS:
            self._ends.popitem(last=False)

    def end(self, asked: Asked, ended: Ended) -> None:
        self._asked.pop(asked.say.client_id, None)
        if not asked.ended.done():
            asked.ended.set_result(ended)

    def fail(self, error: Exception) -> None:
        """Nothing will come any more."""
        for asked in self._asked.values():
            if not asked.ended.done():
                asked.ended.set_exception(error)
        self._asked.clear()
