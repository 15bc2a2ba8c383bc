"""What a client says over connections that break: each message accepted once, each end heard of."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from xclaw.cli.messages import Ended
from xclaw.cli.talk import Standing, Talk
from xclaw.cli.unbroken import Piece
from xclaw.contracts.events import Entry
from xclaw.gateway.wire import (
    Cancel,
    ClientFrame,
    ErrorFrame,
    Hello,
    Say,
    SayAccepted,
    Watch,
    Watching,
)

HELLO = Hello(v=1, server="0", user="owner", scopes=("chat",), max_message_bytes=200)


@dataclass
class Gateway:
    """What was sent to it, and what it answers when asked beside the connection."""

    sent: list[ClientFrame] = field(default_factory=list[ClientFrame])
    standings: dict[str, Standing] = field(default_factory=dict[str, Standing])
    notes: list[str] = field(default_factory=list[str])
    dropped: list[str] = field(default_factory=list[str])

    async def standing(self, request: str) -> Standing:
        return self.standings[request]

    async def history(self, root_id: str) -> list[Entry]:
        return []

    async def drop(self, request: str) -> None:
        self.dropped.append(request)

    def show(self, piece: Piece, *, own: bool) -> None:
        raise AssertionError("nothing is to be shown")

    def learn(self, entries: Iterable[Entry]) -> None:
        return

    def note(self, text: str, /) -> None:
        self.notes.append(text)

    @property
    def said(self) -> list[str]:
        return [frame.client_id for frame in self.sent if isinstance(frame, Say)]


def with_talk(scene: Callable[[Talk, Gateway], Awaitable[None]]) -> None:
    async def main() -> None:
        gateway = Gateway()
        talk = Talk("cli", gateway.sent.append, gateway, gateway)
        async with asyncio.timeout(5):
            await scene(talk, gateway)

    asyncio.run(main())


def say(client_id: str, text: str = "hi") -> Say:
    return Say(session="cli", text=text, client_id=client_id)


def accepted(client_id: str, request: str, *, waiting: int = 0) -> SayAccepted:
    return SayAccepted(session="cli", request=request, after=0, client_id=client_id, waiting=waiting)


def up(talk: Talk, *, first: bool = True) -> None:
    talk.connected(HELLO)
    if first:
        talk.heard(Watching(session="cli", after=7))


def test_nothing_is_said_before_the_session_is_watched() -> None:
    async def scene(talk: Talk, gateway: Gateway) -> None:
        talk.ask(say("a"))
        talk.connected(HELLO)
        assert [type(frame) for frame in gateway.sent] == [Watch]
        talk.heard(Watching(session="cli", after=7))
        assert gateway.said == ["a"]

    with_talk(scene)


def test_what_was_not_accepted_is_said_again_and_nothing_else() -> None:
    """SPEC A4: under its own id, in order, after watching from the last entry that came."""

    async def scene(talk: Talk, gateway: Gateway) -> None:
        up(talk)
        for client_id in "abc":
            talk.ask(say(client_id))
        talk.heard(accepted("b", "m1"))
        gateway.standings["m1"] = Standing("running", "r1", "")
        talk.cut()
        gateway.sent.clear()
        up(talk, first=False)
        assert gateway.sent[0] == Watch(session="cli", after=7, ref="watch")
        assert gateway.said == ["a", "c"]

    with_talk(scene)


def test_an_end_that_comes_before_the_acceptance_is_not_lost() -> None:
    """A request that cannot be answered may end before the acceptance is written."""

    async def scene(talk: Talk, gateway: Gateway) -> None:
        up(talk)
        asked = talk.ask(say("a"))
        talk.heard(ErrorFrame(code="refused", content="no model", request="m1", session="cli"))
        talk.heard(accepted("a", "m1"))
        assert await asked.ended == Ended(code="refused", reason="no model")

    with_talk(scene)


def test_a_message_that_was_dropped_while_nobody_listened_is_asked_about() -> None:
    async def scene(talk: Talk, gateway: Gateway) -> None:
        up(talk)
        asked = talk.ask(say("a"))
        talk.heard(accepted("a", "m1"))
        gateway.standings["m1"] = Standing("dropped", "", "cancelled by the user")
        talk.cut()
        up(talk, first=False)
        assert await asked.ended == Ended(code="refused", reason="cancelled by the user")

    with_talk(scene)


def test_a_gateway_that_is_closing_gets_the_message_again_from_the_next_connection() -> None:
    async def scene(talk: Talk, gateway: Gateway) -> None:
        up(talk)
        asked = talk.ask(say("a"))
        talk.heard(ErrorFrame(code="closing", content="", client_id="a", session="cli"))
        assert not asked.ended.done()
        talk.cut()
        up(talk, first=False)
        assert gateway.said == ["a", "a"]

    with_talk(scene)


def test_a_message_that_is_too_long_is_not_sent() -> None:
    async def scene(talk: Talk, gateway: Gateway) -> None:
        up(talk)
        asked = talk.ask(say("a", "长" * 100))
        assert (await asked.ended).code == "too_large"
        assert gateway.said == []

    with_talk(scene)


def test_an_interrupt_ends_what_runs_in_the_session() -> None:
    async def scene(talk: Talk, gateway: Gateway) -> None:
        up(talk)
        talk.ask(say("a"))
        talk.heard(accepted("a", "m1"))
        talk.interrupt("enough")
        assert gateway.sent[-1] == Cancel(session="cli", reason="enough")

    with_talk(scene)


def test_who_waits_behind_others_is_told_so() -> None:
    async def scene(talk: Talk, gateway: Gateway) -> None:
        up(talk)
        talk.ask(say("a"))
        talk.heard(accepted("a", "m1", waiting=2))
        assert gateway.notes == ["2 messages come before this one"]

    with_talk(scene)
