import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from msgspec import structs
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from behaviour.harness import Script, settings_for, write_script
from gateway.served import Client, Served, served, with_gateway
from xclaw.contracts.agents import Agent, Limits
from xclaw.gateway.channels.websocket import MAX_BAD_FRAMES, MAX_WATCHED
from xclaw.gateway.wire import (
    Answer,
    Answered,
    Cancel,
    Cancelled,
    DeltaFrame,
    Done,
    ErrorFrame,
    EventFrame,
    Frame,
    Hello,
    Ping,
    Pong,
    ReplyFrame,
    Say,
    Unwatch,
    Watch,
    Watching,
)

TURNS = 24
MANY_TURNS = Limits(max_turns=500)


def numbered(turns: int) -> Script:
    """A run of so many tool calls, none like another: four stored entries each."""
    calls = [
        {"calls": [{"name": "write_file", "arguments": {"path": f"{number}.md", "content": f"{number}"}}]}
        for number in range(turns)
    ]
    return [{"agent": "coder", "replies": [*calls, {"text": "all written"}]}]


HELLO: Script = [{"agent": "orchestrator", "replies": [{"text": "hello there"}]}]


def run(
    home: Path,
    script: Script,
    scenario: Callable[[Served], Awaitable[None]],
    **gateway: object,
) -> None:
    async def main() -> None:
        settings = with_gateway(settings_for(home, write_script(home, script)), **gateway)
        async with asyncio.timeout(30), served(settings) as gate:
            await scenario(gate)

    asyncio.run(main())


def test_a_connection_begins_with_who_one_is(tmp_path: Path) -> None:
    async def scenario(gate: Served) -> None:
        async with gate.client(gate.token_of("alice", ("chat", "approve"))) as client:
            assert (client.hello.v, client.hello.user) == (1, "alice")
            assert client.hello.scopes == ("approve", "chat")
            assert client.hello.max_message_bytes == 1_000_000

    run(tmp_path, HELLO, scenario)


def test_browsers_bring_the_token_as_a_subprotocol_and_never_get_it_back(tmp_path: Path) -> None:
    async def scenario(gate: Served) -> None:
        token = gate.tokens.ensure()[0]
        protocols = ["xclaw.v1", f"xclaw.token.{token}"]
        async with connect(f"ws://{gate.host}/ws", subprotocols=protocols, proxy=None) as socket:  # pyright: ignore[reportArgumentType]
            assert socket.subprotocol == "xclaw.v1"
            assert json.loads(await socket.recv())["user"] == "owner"

    run(tmp_path, HELLO, scenario)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong-token-wrong-token"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
    ],
)
def test_no_socket_opens_for_strangers_and_foreign_pages(tmp_path: Path, headers: dict[str, str]) -> None:
    """G04."""

    async def scenario(gate: Served) -> None:
        sent = headers if "Authorization" in headers or not headers else {**gate.headers(), **headers}
        with pytest.raises(InvalidStatus) as refused:
            async with connect(f"ws://{gate.host}/ws", additional_headers=sent, proxy=None):
                pass
        assert refused.value.response.status_code in (401, 403)

    run(tmp_path, HELLO, scenario)


def test_a_message_is_accepted_then_answered(tmp_path: Path) -> None:
    async def scenario(gate: Served) -> None:
        async with gate.client() as client:
            await client.watch("s")
            accepted = await client.say("s", "hi", client_id="c1", ref="r1")
            assert (accepted.session, accepted.client_id, accepted.ref) == ("s", "c1", "r1")
            reply = (await client.to_reply())[-1]
            assert isinstance(reply, ReplyFrame)
            assert (reply.request, reply.content) == (accepted.request, "hello there")
            assert reply.id > accepted.after

    run(tmp_path, HELLO, scenario)


def test_a_client_that_is_cut_off_again_and_again_gets_every_entry_once_and_in_order(tmp_path: Path) -> None:
    """G01: the socket is dropped after event 40, before the terminal one, and after every few others."""

    async def scenario(gate: Served) -> None:
        async with gate.client() as steady:
            await steady.watch("s", 0)
            await steady.say("s", "go", agent="coder", limits=MANY_TURNS)
            expected = [frame.id for frame in await steady.to_reply()]
        assert len(expected) > 90
        seen: list[int] = []
        for length in itertools.chain((40, len(expected) - 41), itertools.repeat(1)):
            async with gate.client() as client:
                await client.watch("s", seen[-1] if seen else 0)
                few = itertools.count(1)
                frames = await client.stored(lambda _, few=few, length=length: next(few) == length)
                seen += [frame.id for frame in frames]
                client.abort()
            if isinstance(frames[-1], ReplyFrame):
                break
        assert seen == expected
        assert sorted(set(seen)) == seen

    run(tmp_path, numbered(TURNS), scenario)


def test_a_client_that_drops_while_the_run_goes_on_misses_nothing(tmp_path: Path) -> None:
    """G01, live: another client watches all the time."""

    async def scenario(gate: Served) -> None:
        async with gate.client() as steady, asyncio.TaskGroup() as group:
            await steady.watch("s", 0)
            whole = group.create_task(steady.to_reply())
            async with gate.client() as asking:
                await asking.say("s", "go", agent="coder", limits=MANY_TURNS)
            seen: list[EventFrame | ReplyFrame] = []
            while not seen or not isinstance(seen[-1], ReplyFrame):
                async with gate.client() as client:
                    await client.watch("s", seen[-1].id if seen else 0)
                    few = itertools.count(1)
                    seen += await client.stored(
                        lambda f, few=few: next(few) == 7 or isinstance(f, ReplyFrame)
                    )
                    client.abort()
            assert seen == await whole

    run(tmp_path, numbered(TURNS), scenario)


def test_a_message_whose_sender_was_cut_off_is_processed_once(tmp_path: Path) -> None:
    """G01: sent again under its client_id, as often as one likes."""

    async def scenario(gate: Served) -> None:
        say = Say(session="s", text="hi", client_id="only-once")
        for _ in range(5):
            async with gate.client() as client:
                await client.send(say)
                client.abort()
        async with gate.client() as client:
            accepted = await client.say("s", "hi", client_id="only-once")
            await client.watch("s", 0)
            frames = await client.to_reply()
            again = await client.say("s", "hi", client_id="only-once")
            assert (again.request, again.duplicate) == (accepted.request, True)
            await client.watch("s", again.after)
            assert [frame.id for frame in await client.to_reply()] == [frame.id for frame in frames]
            other = await client.say("s", "hi", client_id="another")
            begun = await client.stored(lambda frame: frame.request == other.request)
            assert all(frame.request == accepted.request for frame in begun[:-1])

    run(tmp_path, HELLO, scenario)


def test_two_clients_of_one_session_see_the_same(tmp_path: Path) -> None:
    async def scenario(gate: Served) -> None:
        async with gate.client() as one, gate.client() as other, asyncio.TaskGroup() as group:
            await one.watch("s")
            await other.watch("s")
            first, second = group.create_task(one.to_reply()), group.create_task(other.to_reply())
            async with gate.client() as asking:
                await asking.say("s", "go", agent="coder", limits=MANY_TURNS)
            assert await first == await second
            assert isinstance(first.result()[-1], ReplyFrame)

    run(tmp_path, numbered(3), scenario)


def test_a_second_watch_of_a_session_takes_the_place_of_the_first(tmp_path: Path) -> None:
    async def scenario(gate: Served) -> None:
        async with gate.client() as client:
            await client.watch("s")
            await client.say("s", "hi")
            before = await client.to_reply()
            await client.watch("s", 0)
            assert await client.to_reply() == before
            await client.answer(Unwatch(session="s"), Done)
            seen = list(client.ids)
            async with gate.client() as other:
                await other.watch("s")
                await other.say("s", "hi again")
                await other.to_reply()
            await client.answer(Ping(), Pong)
            assert client.ids == seen

    run(tmp_path, HELLO, scenario)


def test_the_watch_of_a_session_that_is_deleted_ends_with_a_word(tmp_path: Path) -> None:
    async def scenario(gate: Served) -> None:
        async with gate.client() as client, aiohttp.ClientSession(headers=gate.headers()) as http:
            await client.watch("s")
            await client.watch("other")
            await client.say("s", "hi")
            await client.to_reply()
            async with http.delete(f"{gate.url}/api/v1/sessions/s") as deleted:
                assert deleted.status == 204
            ended = await client.until(ErrorFrame)
            assert (ended.code, ended.session) == ("not_found", "s")
            await client.say("other", "hi")
            assert (await client.to_reply())[-1].session == "other"

    run(tmp_path, HELLO, scenario)


@pytest.mark.parametrize(("origin", "channel"), [(True, "web"), (False, "cli")])
def test_browsers_and_programs_are_told_apart(tmp_path: Path, origin: bool, channel: str) -> None:
    """A3, A6: by the Origin that every browser sends."""

    async def scenario(gate: Served) -> None:
        headers = gate.headers() | ({"Origin": gate.url} if origin else {})
        async with connect(f"ws://{gate.host}/ws", additional_headers=headers, proxy=None) as socket:
            client = Client(socket, Hello(v=1, server="", user="", scopes=(), max_message_bytes=0))
            assert isinstance(await client.next(), Hello)
            said = await client.say("", "hi")
            assert said.session.startswith("web-" if origin else "cli")
            await client.watch(said.session, said.after)
            started = (await client.to_reply())[0]
            assert started.data["channel"] == channel

    run(tmp_path, HELLO, scenario)


def test_streamed_text_says_where_it_belongs(tmp_path: Path) -> None:
    async def scenario(gate: Served) -> None:
        async with gate.client() as client:
            await client.watch("s")
            accepted = await client.say("s", "hi")
            delta = await client.until(DeltaFrame)
            assert (delta.request, delta.session, delta.agent) == (accepted.request, "s", "orchestrator")
            assert "hello there".startswith(delta.content)
            assert delta.offset == 0

    run(tmp_path, HELLO, scenario)


BAD_FRAMES = [
    "",
    "not json",
    "[]",
    "null",
    "7",
    '"text"',
    "{}",
    '{"type": "unknown"}',
    '{"type": 7}',
    '{"type": "watch"}',
    '{"type": "watch", "session": null}',
    '{"type": "watch", "session": "s", "after": "1"}',
    '{"type": "watch", "session": "s", "after": 1e400}',
    '{"type": "message", "session": "s", "text": ["x"]}',
    '{"type": "message", "session": "s", "text": "x", "manner": "shout"}',
    '{"type": "message", "session": "s", "text": "\\ud800"}',
    '{"type": "answer", "approval": "a", "decision": "maybe"}',
    '{"type": "watch", "session": "s", "extra": ' + "[" * 100_000 + "]" * 100_000 + "}",
    '{"type": "answer", "approval": "a", "decision": "edit", "arguments": ' + '{"a":' * 50_000 + "1",
    '{"type": "ping"} {"type": "ping"}',
    "hello",
]


def test_a_frame_that_is_none_gets_an_error_and_the_connection_stays(tmp_path: Path) -> None:
    async def scenario(gate: Served) -> None:
        async with gate.client() as client:
            for text in BAD_FRAMES:
                await client.socket.send(text)
                error = await client.until(ErrorFrame)
                assert error.code == "bad_frame", text[:80]
                assert len(error.content) < 1000
                assert (await client.answer(Ping(ref="p"), Pong)).ref == "p"

    run(tmp_path, HELLO, scenario)


REFUSED = [
    (Say(session="s", text=" "), "refused"),
    (Say(session="s", text="hi", agent="nobody"), "refused"),
    (Say(session="a:b", text="hi"), "refused"),
    (Say(session="s" * 201, text="hi"), "refused"),
    (Say(session="s", text="hi", client_id="c" * 201), "refused"),
    (Watch(session=""), "refused"),
    (Watch(session="user:alice:s"), "refused"),
    (Watch(session="a\nb"), "refused"),
    (Cancel(), "bad_request"),
    (Cancel(session="s", run="r"), "bad_request"),
    (Cancel(run="r-there-is-none"), "not_found"),
    (Answer(approval="none", decision="once"), "not_found"),
]


def test_what_cannot_be_done_is_answered_with_the_frames_own_marks(tmp_path: Path) -> None:
    async def scenario(gate: Served) -> None:
        async with gate.client() as client:
            for number, (frame, code) in enumerate(REFUSED):
                marked = structs.replace(frame, ref=f"r{number}")
                error = await client.answer(marked, ErrorFrame)
                assert (error.code, error.ref) == (code, f"r{number}"), frame
                assert error.client_id == getattr(frame, "client_id", "")
                assert error.content

    run(tmp_path, HELLO, scenario)


def test_negative_and_future_positions_are_watched_without_harm(tmp_path: Path) -> None:
    async def scenario(gate: Served) -> None:
        async with gate.client() as client:
            await client.say("s", "hi")
            await client.watch("s", -5)
            first = await client.to_reply()
            for after in (2**63 - 1, 2**63, 2**64, 10**40, -(10**40)):
                await client.send(Watch(session="s", after=after))
                assert isinstance(await client.next(), Watching), after
                await client.answer(Ping(), Pong)
            await client.watch("s", 0)
            assert await client.to_reply() == first

    run(tmp_path, HELLO, scenario)


@pytest.mark.parametrize(("sent", "code"), [(b"\x00binary", 1003), ("x" * 1_000_001, 1009)])
def test_what_is_no_text_or_too_long_ends_the_connection(
    tmp_path: Path, sent: bytes | str, code: int
) -> None:
    async def scenario(gate: Served) -> None:
        async with gate.client() as client, gate.client() as other:
            await client.socket.send(sent)
            assert await client.to_close() == code
            await other.answer(Ping(), Pong)

    run(tmp_path, HELLO, scenario)


def test_a_message_in_many_empty_parts_is_one_message(tmp_path: Path) -> None:
    async def scenario(gate: Served) -> None:
        async with gate.client() as client:
            pieces = iter(["", '{"type":', *[""] * 20_000, '"ping","ref":"p"}'])
            await client.socket.send(pieces)
            assert (await client.until(Pong)).ref == "p"

    run(tmp_path, HELLO, scenario)


def test_a_client_that_sends_only_bad_frames_is_sent_away(tmp_path: Path) -> None:
    async def scenario(gate: Served) -> None:
        async with gate.client() as client:
            for _ in range(2):
                for _ in range(MAX_BAD_FRAMES - 1):
                    await client.socket.send("x")
                    await client.until(ErrorFrame)
                await client.answer(Ping(), Pong)
            for _ in range(MAX_BAD_FRAMES):
                await client.socket.send("x")
            assert await client.to_close() == 1008

    run(tmp_path, HELLO, scenario)


def test_a_connection_watches_a_bounded_number_of_sessions(tmp_path: Path) -> None:
    async def scenario(gate: Served) -> None:
        async with gate.client() as client:
            for number in range(MAX_WATCHED):
                await client.watch(f"s{number}")
            refused = await client.answer(Watch(session="more", ref="m"), ErrorFrame)
            assert (refused.code, refused.ref) == ("bad_request", "m")
            await client.answer(Unwatch(session="s0"), Done)
            await client.watch("more")

    run(tmp_path, HELLO, scenario)


def test_another_users_session_and_runs_are_not_there(tmp_path: Path) -> None:
    """I06: the same name is another conversation; a run's id opens nothing."""

    async def scenario(gate: Served) -> None:
        async with gate.client() as owner, gate.client(gate.token_of("alice")) as alice:
            await owner.say("s", "hi")
            await owner.watch("s", 0)
            run_id = (await owner.to_reply())[-1].run
            none = await alice.answer(Cancel(run="r-there-is-none"), ErrorFrame)
            theirs = await alice.answer(Cancel(run=run_id), ErrorFrame)
            assert theirs.code == none.code == "not_found"
            assert theirs.content.replace(run_id, "") == none.content.replace("r-there-is-none", "")
            assert (await alice.answer(Cancel(session="s"), Cancelled)).runs == 0
            await alice.watch("s", 0)
            accepted = await alice.say("s", "hello")
            frames = await alice.to_reply()
            assert {frame.request for frame in frames} == {accepted.request}

    run(tmp_path, HELLO, scenario)


@pytest.mark.parametrize(
    ("scopes", "frame"),
    [
        (("approve",), Say(session="s", text="hi")),
        (("approve",), Watch(session="s")),
        (("approve",), Cancel(session="s")),
        (("chat",), Answer(approval="a", decision="once")),
    ],
)
def test_a_token_does_what_its_scopes_say(tmp_path: Path, scopes: tuple[str, ...], frame: Say) -> None:
    async def scenario(gate: Served) -> None:
        async with gate.client(gate.token_of("alice", scopes)) as client:  # pyright: ignore[reportArgumentType]
            refused = await client.answer(frame, ErrorFrame)
            assert refused.code == "not_allowed"
            await client.answer(Ping(), Pong)

    run(tmp_path, HELLO, scenario)


@pytest.mark.parametrize("talking", [True, False])
def test_a_revoked_token_ends_its_connections(tmp_path: Path, talking: bool) -> None:
    async def scenario(gate: Served) -> None:
        async with gate.client(gate.token_of("alice")) as alice, gate.client(gate.token_of("bob")) as bob:
            await alice.watch("s")
            gate.tokens.revoke("alice")
            if talking:
                await alice.send(Say(session="s", text="one more"))
            async with asyncio.timeout(8):
                assert await alice.to_close() == 4401
            await bob.answer(Ping(), Pong)
            assert await gate.gateway.sessions.pending() == []

    run(tmp_path, HELLO, scenario)


def test_cancelling_by_session_ends_what_runs(tmp_path: Path) -> None:
    async def scenario(gate: Served) -> None:
        async with gate.client() as client:
            await client.watch("s")
            await client.say("s", "go", agent="coder", limits=MANY_TURNS)
            await client.until(EventFrame)
            await client.send(Cancel(session="s", ref="c"))
            frames: list[str] = []
            while not {"cancelled", "reply"} <= set(frames):
                frame = await client.next()
                frames.append(str(frame.__struct_config__.tag))
                if isinstance(frame, ReplyFrame):
                    assert frame.outcome == "cancelled"
                if isinstance(frame, Cancelled):
                    assert (frame.runs, frame.session, frame.ref) == (1, "s", "c")

    run(tmp_path, numbered(200), scenario)


ASKING: Script = [
    {
        "agent": "asker",
        "replies": [
            {"calls": [{"name": "shell", "arguments": {"command": "echo ran"}}]},
            {"text": "it ran"},
        ],
    }
]


def test_an_approval_is_answered_once_by_whose_session_it_is(tmp_path: Path) -> None:
    asker = Agent("asker", "asks", "You are asker.", tools=("shell",), permission_mode="bubble")

    async def main() -> None:
        settings = with_gateway(settings_for(tmp_path, write_script(tmp_path, ASKING)))
        async with asyncio.timeout(30), served(settings, agents=[asker]) as gate:
            stranger = gate.token_of("alice", ("chat", "approve"))
            async with gate.client() as client, gate.client(stranger) as alice:
                await client.watch("s")
                await client.say("s", "go", agent="asker")
                asked = await client.until(EventFrame, lambda frame: frame.data["kind"] == "approval_asked")
                approval = str(asked.data["approval_id"])
                answer = Answer(approval=approval, decision="once", ref="a")
                assert (await alice.answer(answer, ErrorFrame)).code == "not_found"
                edit = structs.replace(answer, decision="edit")
                assert (await client.answer(edit, ErrorFrame)).code == "refused"
                await client.send(answer)
                await client.send(answer)
                seen = await until_all(client, Answered, ErrorFrame, ReplyFrame)
                assert seen[Answered] == Answered(approval=approval, ref="a")
                assert seen[ErrorFrame].code == "busy"
                assert seen[ReplyFrame].content == "it ran"

    asyncio.run(main())


async def until_all(client: Client, *kinds: type[Frame]) -> dict[Any, Any]:
    """The first frame of each kind, in whatever order they come."""
    seen: dict[Any, Any] = {}
    while len(seen) < len(kinds):
        frame = await client.next()
        if isinstance(frame, kinds):
            seen.setdefault(type(frame), frame)
    return seen
