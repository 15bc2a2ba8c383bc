"""One team while it runs: who works, who waits, who has answered, and when that is the end."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from xclaw.contracts.errors import Deadlock
from xclaw.contracts.teams import Seat, Waited
from xclaw.loop.state import RunState

Standing = Literal["working", "waiting", "answered"]


@dataclass(slots=True, eq=False)
class Place:
    """One member as its team sees it."""

    seat: Seat
    has_mail: Callable[[], bool]
    """Whether there is something for it to read that would have it go on."""
    changed: asyncio.Event
    """Set when it is written to, and when the team has something to tell."""
    moved: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it may stand otherwise than before."""
    standing: Standing = "working"
    awaits: str = ""
    """Whose mail it waits for; empty: anybody's."""
    is_timed: bool = False
    """It waits for a while only."""
    is_told: bool = False
    """It was told that nobody is left who could write, and nobody has written since."""
    is_let_go: bool = False
    """It is to be told that now."""


@dataclass(slots=True, eq=False)
class Team:
    """The members that one call of a lead has started. Changes on the event loop only."""

    lead: RunState
    call_id: str
    stays_until_dismissed: bool
    """Nobody ends before the lead says so."""
    is_assembled: bool = False
    """All who can be are there; until then nobody can be the last to answer, or wait in vain."""
    reason: str = ""
    """Why it was ended: a deadlock."""
    is_over: bool = False
    places: dict[str, Place] = field(default_factory=dict[str, Place])

    def join(self, place: Place) -> None:
        self.places[place.seat.member] = place

    @property
    def members(self) -> dict[str, str]:
        """Run ids of the members that were started, by name."""
        return {
            spawned.task.seat.member: run_id
            for run_id, spawned in self.lead.children.items()
            if spawned.call_id == self.call_id and spawned.task.seat is not None
        }

    def outcome(self, member: str) -> str:
        """How a member has ended; empty while it has not."""
        result = self.lead.child_results.get(self.members.get(member, ""))
        return result.outcome if result else ""

    def written(self) -> None:
        """Somebody has written to somebody: who was told that nobody would may wait again."""
        for place in self.places.values():
            place.is_told = False

    async def answered(self, place: Place) -> bool:
        """Keep a member that has answered until it is written to, or its team is over: then false."""
        place.standing = "answered"
        self.check()
        while not place.has_mail() and not self.is_over:
            place.changed.clear()
            await place.changed.wait()
        place.standing = "working"
        return place.has_mail()

    async def wait_for_mail(self, place: Place, timeout_s: float | None, sender: str) -> Waited:
        """Raises `Deadlock` when nobody is left who could write."""
        place.standing, place.awaits, place.is_timed = "waiting", sender, timeout_s is not None
        place.is_let_go = False
        try:
            async with asyncio.timeout(timeout_s):
                return await self._waited(place)
        except TimeoutError:
            return "time"
        finally:
            place.standing, place.is_timed = "working", False

    async def _waited(self, place: Place) -> Waited:
        self.check()
        while not place.has_mail():
            if place.awaits and self.outcome(place.awaits):
                return "ended"
            if place.is_let_go:
                return "nobody"
            if self.reason:
                raise Deadlock(self.reason)
            place.changed.clear()
            await place.changed.wait()
        return "mail"

    def check(self) -> None:
        """See whether anybody can still do something; called when a member stops doing, or ends."""
        for place in self.places.values():
            place.moved.set()
        if self.is_over or not self.is_assembled:
            return
        present = [name for name in self.members if not self.outcome(name)]
        places = [self.places[name] for name in present if name in self.places]
        waiting = [place for place in places if place.standing == "waiting"]
        released = [place for place in waiting if place.awaits and self.outcome(place.awaits)]
        for place in released:
            place.changed.set()
        busy = any(place.standing == "working" or place.has_mail() for place in places)
        if released or busy or len(places) < len(present):
            return
        if waiting:
            self._stalled(waiting)
        elif not self.stays_until_dismissed:
            self.end()

    def end(self, reason: str = "") -> None:
        self.is_over, self.reason = True, reason
        for place in self.places.values():
            place.changed.set()

    def _stalled(self, waiting: list[Place]) -> None:
        """Everybody waits. Who would have gone on after a while goes on now, once; else it is the end."""
        patient = [place for place in waiting if place.is_timed and not place.is_told]
        for place in patient:
            place.is_told = place.is_let_go = True
            place.changed.set()
        if not patient:
            self.end(f"deadlock: {'; '.join(map(self._told_of, self.members))}")

    def _told_of(self, name: str) -> str:
        place = self.places.get(name)
        outcome = self.outcome(name)
        if outcome or place is None:
            return f"{name} has ended ({outcome or 'never began'})"
        if place.standing == "waiting":
            return f"{name} waits for mail from {place.awaits or 'anybody'}"
        return f"{name} has answered"
