"""Hostile and careless clients of sessions: resets under a watch, storms of interrupts, messages said twice."""

import asyncio
from pathlib import Path
from typing import cast

import pytest

from gateway.api_client import Scene, at_the_api
from gateway.served import Client
from gateway.test_api_approvals import asked, with_ops
from xclaw.contracts.agents import Limits
from xclaw.contracts.errors import SessionBusy
from xclaw.gateway.wire import ErrorFrame, ReplyFrame, Say, Watch, Watching
from xclaw.runtime.runs import RunHandle, RunRequest
from xclaw.testing.fake_provider import Hang, Reply, Text


class Hanging:
    """A model that answers nothing to what says "first", or "on hold"."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    def __call__(self, body: dict[str, object]) -> Reply:
        messages = body["messages"]
        assert isinstance(messages, list)
        self.asked.set()
        last = str(cast("object", messages[-1]))
        return Hang() if "first" in last or "on hold" in last else Text("ok")


async def endings(client: Client, count: int) -> list[tuple[str, str]]:
    """Text and outcome of replies and refusals, in order."""
    found: list[tuple[str, str]] = []
    while len(found) < count:
        frame = await client.next()
        if isinstance(frame, ReplyFrame):
            found.append((frame.content, frame.outcome))
        elif isinstance(frame, ErrorFrame):
            found.append((frame.content, frame.code))
    return found


def test_a_watch_that_begins_after_a_reset_waits_for_nothing_that_is_gone(tmp_path: Path) -> None:
    """The resident's answer was the newest thing said: the journal has it no more. G03."""

    async def body(scene: Scene) -> None:
        scene.provider.answer_with(lambda _: Text("hi"))
        gateway = scene.served.gateway
        async with scene.served.client() as first, scene.served.client() as second:
            await first.watch("s")
            await scene.owner.ask("s", "hello", agent="orchestrator")
            await scene.owner.ask("s", "hello", agent="coder")
            assert (await scene.owner.delete("/sessions/s/team/coder")).status == 204
            async with gateway.watch("s") as outlet:
                waiting = asyncio.ensure_future(anext(outlet))
                reads = 0
                read_on = gateway.sessions.read_conversation

                async def counted(conversation: str, after: int, limit: int) -> object:
                    nonlocal reads
                    reads += 1
                    return await read_on(conversation, after, limit)

                gateway.sessions.read_conversation = counted  # pyright: ignore[reportAttributeAccessIssue] - counts
                for _ in range(20):
                    await gateway.sessions.last_id()
                assert reads <= 2
                waiting.cancel()
            await second.watch("s")
            await second.say("s", "again", agent="orchestrator")
            assert (await second.until(ReplyFrame)).content == "hi"

    at_the_api(tmp_path, body)


def test_who_watches_a_deleted_session_anew_sees_what_is_said_in_it(tmp_path: Path) -> None:
    """The old watch has not been left yet when the new one begins."""

    async def body(scene: Scene) -> None:
        scene.provider.answer_with(lambda _: Text("hi"))
        gateway = scene.served.gateway
        await scene.owner.ask("s", "hello", agent="orchestrator")
        async with scene.served.client() as client:
            old = gateway.watch("s")
            outlet = await old.__aenter__()
            await scene.owner.ask("s", "hello", agent="orchestrator")
            assert (await scene.owner.delete("/sessions/s")).status == 204
            await client.watch("s")
            async for _ in outlet:
                pass
            await old.__aexit__(None, None, None)
            await client.say("s", "again", agent="orchestrator")
            assert (await client.until(ReplyFrame)).content == "hi"

    at_the_api(tmp_path, body)


def test_of_many_interrupts_the_last_is_answered_and_what_was_queued_comes_after(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        model = Hanging()
        scene.provider.answer_with(model)
        async with scene.served.client() as client:
            await client.watch("s")
            await client.say("s", "first", agent="orchestrator")
            await model.asked.wait()
            for number in range(5):
                await client.send(
                    Say(
                        session="s",
                        text=f"then {number}" if number == 4 else f"on hold {number}",
                        manner="interrupt",
                        agent="orchestrator",
                    )
                )
            await client.send(Say(session="s", text="then queued", agent="orchestrator"))
            ends = await endings(client, 7)
            assert [end for end in ends if end[1] == "success"] == [("ok", "success")] * 2
            assert all(outcome in ("cancelled", "refused") for _, outcome in ends[:5])
        asked = [str(request.body["messages"])[-40:] for request in scene.provider.requests]
        assert "then 4" in asked[-2]
        assert "then queued" in asked[-1]

    at_the_api(tmp_path, body)


def test_what_ended_one_message_before_it_began_ends_no_other(tmp_path: Path) -> None:
    """A message waits for a session that another process has; an interrupt takes its place."""

    async def body(scene: Scene) -> None:
        scene.provider.answer_with(lambda _: Text("ok"))
        runs = scene.served.gateway.runs
        start, tried = runs.start, asyncio.Event()

        async def busy_at_first(request: RunRequest) -> RunHandle:
            if "first" in request.text:
                tried.set()
                raise SessionBusy("another process works in it")
            return await start(request)

        runs.start = busy_at_first  # as if another process worked in the session
        async with scene.served.client() as client:
            await client.watch("s")
            await client.say("s", "first", agent="orchestrator")
            await tried.wait()
            await client.send(Say(session="s", text="then", manner="interrupt", agent="orchestrator"))
            assert [outcome for _, outcome in await endings(client, 2)] == ["refused", "success"]

    at_the_api(tmp_path, body)


def test_a_message_that_was_given_up_says_so_when_it_is_said_again(tmp_path: Path) -> None:
    """G01: who missed that would wait for ever for an answer."""

    async def body(scene: Scene) -> None:
        scene.provider.answer_with(Hanging())
        await scene.owner.say("s", "first", agent="orchestrator")
        await scene.owner.say("s", "second", client_id="c2")
        await scene.owner.post("/sessions/s/cancel", {"reason": "no more"})
        again = await scene.owner.post("/sessions/s/messages", {"text": "second", "client_id": "c2"})
        assert again.error == (400, "refused")
        assert "no more" in again.json["error"]["message"]

    at_the_api(tmp_path, body)


def test_messages_said_again_leave_nothing_behind_in_memory(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        scene.provider.answer_with(lambda _: Text("hi"))
        gateway = scene.served.gateway
        for number in range(5):
            await scene.owner.ask(f"s{number}", "hello", client_id="c", agent="orchestrator")
        for number in range(5):
            accepted = await scene.owner.say(f"s{number}", "hello", client_id="c", agent="orchestrator")
            assert accepted["duplicate"]
            assert (await scene.owner.delete(f"/messages/{accepted['request']}")).status == 409
        assert vars(gateway)["_conversations"] == {}

    at_the_api(tmp_path, body)


@pytest.mark.parametrize(
    "limits",
    [
        Limits(max_turns=-5),
        Limits(max_turns=0),
        Limits(timeout_s=-1.0),
        Limits(max_tokens=-1),
        Limits(max_usd=-1),
    ],
)
def test_limits_that_nothing_can_keep_are_refused_over_a_socket_as_over_http(
    tmp_path: Path, limits: Limits
) -> None:
    async def body(scene: Scene) -> None:
        async with scene.served.client() as client:
            await client.send(Say(session="s", text="hi", limits=limits, agent="orchestrator"))
            refused = await client.next()
            assert isinstance(refused, ErrorFrame)
            assert (refused.code, "limits." in refused.content) == ("refused", True)

    at_the_api(tmp_path, body)


def test_a_watch_from_before_the_beginning_is_one_from_the_beginning(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        async with scene.served.client() as client:
            watching = await client.answer(Watch(session="s", after=-(10**30)), Watching)
            assert watching.after == 0

    at_the_api(tmp_path, body)


def test_of_answers_at_the_same_time_one_counts_and_the_others_are_told_that_they_came_too_late(
    tmp_path: Path,
) -> None:
    """A04."""

    async def body(scene: Scene) -> None:
        _, approval = await asked(scene, scene.owner)
        path = f"/approvals/{approval['approval']}"
        async with asyncio.TaskGroup() as group:
            answers = [group.create_task(scene.owner.post(path, {"decision": "once"})) for _ in range(5)]
        got = sorted((answer.result() for answer in answers), key=lambda each: each.status)
        assert got[0].status == 200
        assert [each.error for each in got[1:]] == [(409, "busy")] * 4

    with_ops(tmp_path)
    at_the_api(tmp_path, body)


def test_a_token_in_the_path_is_refused_as_one_in_the_query(tmp_path: Path) -> None:
    """G04: it is not repeated in the answer either."""

    async def body(scene: Scene) -> None:
        token = scene.served.token_of("alice")
        refused = await scene.owner.get(f"/sessions/{token}")
        assert refused.error == (400, "token_in_url")
        assert token.encode() not in refused.body

    at_the_api(tmp_path, body)
