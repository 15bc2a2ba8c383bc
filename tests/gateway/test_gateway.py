"""The door: every message is kept, answered once, in order, in its own session, for its own user."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.behaviour.harness import messages_of, settings_for

from xclaw.app import GatewayApp, open_gateway
from xclaw.contracts.channels import Accepted, Delta, Failed, Happened, Outgoing, Reply, Wishes
from xclaw.contracts.errors import JournalError, UsageError
from xclaw.contracts.events import MessageAdded, RunStarted
from xclaw.contracts.messages import Message
from xclaw.contracts.sessions import Inbound, SessionStore
from xclaw.contracts.users import OWNER
from xclaw.gateway import conversations
from xclaw.testing import FakeProvider
from xclaw.testing.fake_replies import Hang, Raw, Text, Until, stream_of


@asynccontextmanager
async def at_the_door(home: Path, provider: FakeProvider) -> AsyncGenerator[GatewayApp]:
    env = {"OPENAI_BASE_URL": provider.url, "OPENAI_API_KEY": "k"}
    async with open_gateway(settings_for(home, "openai:m", env=env)) as opened:
        yield opened


def at_work(home: Path, body: Callable[[GatewayApp, FakeProvider], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(20), FakeProvider() as provider, at_the_door(home, provider) as opened:
            await body(opened, provider)

    asyncio.run(main())


async def say(
    opened: GatewayApp, text: str, session: str = "s", user: str = OWNER, **wishes: object
) -> Accepted:
    message = Message("", session, "web", text, 0.0)
    return await opened.gateway.dispatch(message, Wishes(**wishes), user=user)  # pyright: ignore[reportArgumentType]


async def until_reply(
    opened: GatewayApp, accepted: Accepted, user: str = OWNER, after: int | None = None
) -> list[Outgoing]:
    seen: list[Outgoing] = []
    start = accepted.after if after is None else after
    async with opened.gateway.watch(accepted.session_id, start, user=user) as watch:
        async for item in watch:
            seen.append(item)
            if isinstance(item, Reply | Failed) and item.request == accepted.message_id:
                break
    return seen


def user_texts(provider: FakeProvider, index: int) -> list[str]:
    return [str(m["content"]) for m in messages_of(provider.requests[index].body) if m["role"] == "user"]


def test_a_message_is_answered_by_the_orchestrator_with_deltas_a_reply_and_events(tmp_path: Path) -> None:
    """A1, A4."""

    async def body(opened: GatewayApp, provider: FakeProvider) -> None:
        provider.queue(Text("Hello there"))
        accepted = await say(opened, "hi")
        seen = await until_reply(opened, accepted)
        reply = seen[-1]
        assert isinstance(reply, Reply)
        assert (reply.ended.result.text, reply.session_id) == ("Hello there", "s")
        assert {item.request for item in seen} == {accepted.message_id}
        ids = [item.entry.id for item in seen if isinstance(item, Happened | Reply)]
        assert ids == sorted(set(ids))
        started = next(e.entry.event for e in seen if isinstance(e, Happened))
        assert isinstance(started, RunStarted)
        assert started.route is not None
        assert (started.agent, started.route.by) == ("orchestrator", "default")

    at_work(tmp_path, body)


def test_an_expert_request_goes_to_its_resident_who_remembers(tmp_path: Path) -> None:
    """B1, B5, D5."""

    async def body(opened: GatewayApp, provider: FakeProvider) -> None:
        provider.queue(Text("Yes: line 4."), Text("I said line 4."))
        first = await say(opened, "Is there a SQL injection in this code?")
        seen = await until_reply(opened, first)
        second = await say(opened, "@skeptic which line was it?")
        seen += await until_reply(opened, second)
        started = [e.entry for e in seen if isinstance(e, Happened) and isinstance(e.entry.event, RunStarted)]
        assert [entry.address.session_id for entry in started] == ["team:skeptic:s"] * 2
        assert any("SQL injection" in text for text in user_texts(provider, 1))
        assert not any("@skeptic" in text for text in user_texts(provider, 1))
        assert "politely" in str(messages_of(provider.requests[0].body)[0]["content"])

    at_work(tmp_path, body)


def test_messages_of_one_session_are_answered_one_at_a_time_in_order(tmp_path: Path) -> None:
    """A5, I07."""

    async def body(opened: GatewayApp, provider: FakeProvider) -> None:
        gate = asyncio.Event()
        provider.queue(Raw(Until(gate), stream_of(Text("a1"), True)))
        provider.queue(Text("a2"))
        async with asyncio.TaskGroup() as tasks:
            one = tasks.create_task(say(opened, "m1"))
            two = tasks.create_task(say(opened, "m2"))
        gate.set()
        await until_reply(opened, one.result())
        await until_reply(opened, two.result())
        assert one.result().waiting + two.result().waiting == 1
        said = [(m["role"], m["content"]) for m in messages_of(provider.requests[1].body)[1:]]
        assert said[:3] == [("user", "m1"), ("assistant", "a1"), ("user", "m2")]

    at_work(tmp_path, body)


def test_other_sessions_do_not_wait(tmp_path: Path) -> None:
    async def body(opened: GatewayApp, provider: FakeProvider) -> None:
        provider.queue(Hang())
        await say(opened, "slow", "slow")
        await provider.wait_requests(1)
        provider.queue(Text("quick"))
        seen = await until_reply(opened, await say(opened, "hi", "quick"))
        assert isinstance(seen[-1], Reply)

    at_work(tmp_path, body)


def test_the_same_message_sent_again_is_answered_once(tmp_path: Path) -> None:
    """G01."""

    async def body(opened: GatewayApp, provider: FakeProvider) -> None:
        provider.queue(Text("once"))
        first = await say(opened, "hi", client_id="c1")
        await until_reply(opened, first)
        again = await say(opened, "hi", client_id="c1")
        assert again.duplicate
        assert again.message_id == first.message_id
        seen = await until_reply(opened, again)
        assert isinstance(seen[-1], Reply)
        assert len(provider.requests) == 1

    at_work(tmp_path, body)


def test_a_name_belongs_to_its_user(tmp_path: Path) -> None:
    """I06."""

    async def body(opened: GatewayApp, provider: FakeProvider) -> None:
        provider.queue(Text("noted"), Text("no idea"))
        mine = await say(opened, "my code is zebra-crossing", "demo", user="alice")
        seen = await until_reply(opened, mine, user="alice")
        run_id = seen[-1].entry.address.run_id if isinstance(seen[-1], Reply) else ""
        theirs = await say(opened, "what is my code?", "demo", user="bob")
        seen = await until_reply(opened, theirs, user="bob", after=0)
        assert "zebra-crossing" not in str(provider.requests[1].body)
        assert "zebra-crossing" not in str(seen)
        with pytest.raises(UsageError, match="there is no run"):
            await opened.gateway.cancel_run(run_id, "mine now", user="bob")
        with pytest.raises(UsageError, match="cannot name a session"):
            await say(opened, "hi", "user:alice:demo", user="bob")

    at_work(tmp_path, body)


def test_a_steering_message_reaches_the_run_and_one_that_comes_too_late_is_answered_next(
    tmp_path: Path,
) -> None:
    async def body(opened: GatewayApp, provider: FakeProvider) -> None:
        gate = asyncio.Event()
        provider.queue(Raw(Until(gate), stream_of(Text("first"), True)), Text("second"))
        first = await say(opened, "go")
        await provider.wait_requests(1)
        late = await say(opened, "and quickly", manner="steer")
        gate.set()
        await until_reply(opened, first)
        seen = await until_reply(opened, late)
        assert isinstance(seen[-1], Reply)
        assert any("and quickly" in text for text in user_texts(provider, 1))
        assert not [e for e in seen if isinstance(e, Happened) and isinstance(e.entry.event, MessageAdded)]

    at_work(tmp_path, body)


def test_an_interrupting_message_ends_the_run_and_is_answered_before_those_that_wait(tmp_path: Path) -> None:
    async def body(opened: GatewayApp, provider: FakeProvider) -> None:
        provider.queue(Hang())
        first = await say(opened, "go")
        await provider.wait_requests(1)
        waiting = await say(opened, "later")
        provider.queue(Text("now"), Text("then"))
        urgent = await say(opened, "stop, do this", manner="interrupt")
        ended = (await until_reply(opened, first))[-1]
        assert isinstance(ended, Reply)
        assert ended.ended.outcome == "cancelled"
        await until_reply(opened, waiting)
        assert user_texts(provider, 1)[-1] == "stop, do this"
        assert user_texts(provider, 2)[-1] == "later"
        assert urgent.waiting

    at_work(tmp_path, body)


def test_cancelling_a_session_ends_its_run_and_drops_what_waits(tmp_path: Path) -> None:
    async def body(opened: GatewayApp, provider: FakeProvider) -> None:
        provider.queue(Hang())
        first = await say(opened, "go")
        await provider.wait_requests(1)
        waiting = await say(opened, "later")
        async with opened.gateway.watch("s", first.after) as watch:
            assert await opened.gateway.cancel("s", "enough") == 1
            seen = [item async for item in limited(watch, 2)]
        assert {item.request for item in seen} == {first.message_id, waiting.message_id}
        assert len(provider.requests) == 1
        assert await opened.gateway.sessions.pending() == []

    at_work(tmp_path, body)


async def limited(watch: AsyncIterator[Outgoing], ends: int) -> AsyncGenerator[Outgoing]:
    """Until so many requests have ended."""
    async for item in watch:
        if isinstance(item, Reply | Failed):
            ends -= 1
            yield item
        if not ends:
            return


@pytest.mark.parametrize(
    ("text", "wishes", "what"),
    [
        ("  \n", {}, "empty"),
        ("hi", {"agent": "ghost"}, "unknown agent"),
        ("hi", {"models": ("nobody:x",)}, "nobody"),
        ("x" * 1_000_001, {}, "bytes"),
        ("hi", {"client_id": "c" * 201}, "client_id"),
    ],
)
def test_what_can_never_be_answered_is_refused_at_once(
    tmp_path: Path, text: str, wishes: dict[str, object], what: str
) -> None:
    async def body(opened: GatewayApp, provider: FakeProvider) -> None:
        with pytest.raises(UsageError, match=what):
            await say(opened, text, **wishes)  # pyright: ignore[reportArgumentType] - test shorthand
        assert await opened.gateway.sessions.pending() == []

    at_work(tmp_path, body)


def test_what_a_gateway_left_undone_the_next_one_does(tmp_path: Path) -> None:
    """K6: the run that went on and the message that waited."""

    async def main() -> None:
        async with asyncio.timeout(20), FakeProvider() as provider:
            provider.queue(Hang())
            async with at_the_door(tmp_path, provider) as opened:
                first = await say(opened, "m1")
                await provider.wait_requests(1)
                second = await say(opened, "m2")
            provider.queue(Text("a1"), Text("a2"))
            async with at_the_door(tmp_path, provider) as opened:
                seen = await until_reply(opened, second, after=first.after)
                replies = [item for item in seen if isinstance(item, Reply)]
                assert [r.request for r in replies] == [first.message_id, second.message_id]
                assert [r.ended.result.text for r in replies] == ["a1", "a2"]
            assert len(provider.requests) == 3

    asyncio.run(main())


def test_two_that_watch_see_the_same(tmp_path: Path) -> None:
    async def body(opened: GatewayApp, provider: FakeProvider) -> None:
        provider.queue(Text("Hello there, both of you"))
        accepted = await say(opened, "hi")
        async with asyncio.TaskGroup() as tasks:
            watches = [tasks.create_task(until_reply(opened, accepted)) for _ in range(2)]
        one, two = (watch.result() for watch in watches)
        assert [i for i in one if not isinstance(i, Delta)] == [i for i in two if not isinstance(i, Delta)]
        assert text_of(one) in ("", "Hello there, both of you")
        assert text_of(two) in ("", "Hello there, both of you")

    at_work(tmp_path, body)


def text_of(seen: list[Outgoing]) -> str:
    return "".join(item.text for item in seen if isinstance(item, Delta))


class FullDisk:
    """A session store on a disk without room: every look-up of a message fails, as often as it is told."""

    def __init__(self, store: SessionStore, failures: int) -> None:
        self._store = store
        self.failures = failures

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    async def inbound(self, message_id: str) -> Inbound | None:
        if self.failures:
            self.failures -= 1
            raise JournalError("database or disk is full")
        return await self._store.inbound(message_id)


def test_a_message_that_was_accepted_waits_for_room_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Accepted is accepted, and so is what comes behind it."""
    monkeypatch.setattr(conversations, "JOURNAL_RETRY_S", 0.0)

    async def body(opened: GatewayApp, provider: FakeProvider) -> None:
        provider.queue(Text("one"), Text("two"))
        disk = FullDisk(opened.gateway.sessions, failures=3)
        opened.gateway.sessions = disk  # pyright: ignore[reportAttributeAccessIssue] - one method fails
        first, second = await say(opened, "m1"), await say(opened, "m2")
        seen = [*await until_reply(opened, first), *await until_reply(opened, second)]
        assert [item.ended.result.text for item in seen if isinstance(item, Reply)][-2:] == ["one", "two"]
        assert disk.failures == 0

    at_work(tmp_path, body)
