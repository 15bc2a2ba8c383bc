"""The HTTP API over a real socket: messages, their answers, and who may see them."""

import asyncio
import re
from pathlib import Path
from typing import cast

import pytest

from gateway.api_client import Scene, at_the_api
from xclaw.testing.fake_replies import Hang, Raw, Text, Until, stream_of


def test_a_message_is_accepted_and_its_answer_can_be_fetched(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        scene.provider.queue(Text("Hello there"))
        accepted = await scene.owner.say("notes", "hi")
        assert accepted["session"] == "notes"
        assert (accepted["waiting"], accepted["duplicate"]) == (0, False)
        told = await scene.owner.reply(accepted)
        assert told[-1].data["content"] == "Hello there"
        message = (await scene.owner.get(f"/messages/{accepted['request']}")).json
        assert (message["status"], message["outcome"], message["text"]) == ("ended", "success", "Hello there")
        assert (message["request"], message["session"]) == (accepted["request"], "notes")
        run = (await scene.owner.get(f"/runs/{message['run']}")).json
        assert (run["run"], run["root"], run["parent"]) == (message["run"], message["run"], "")
        assert (run["session"], run["agent"], run["title"]) == ("notes", "orchestrator", "hi")
        assert run["usage"]["output_tokens"] > 0

    at_the_api(tmp_path, body)


def test_a_run_without_a_session_gets_a_fresh_one(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        scene.provider.queue(Text("one"), Text("two"))
        first = (await scene.owner.post("/runs", {"text": "a"})).json
        second = (await scene.owner.post("/runs", {"text": "b"})).json
        assert first["session"] != second["session"]
        assert first["session"].startswith("web-")
        await scene.owner.reply(first)
        await scene.owner.reply(second)
        assert (await scene.owner.get(f"/sessions/{first['session']}")).json["runs"][0]["title"] == "a"

    at_the_api(tmp_path, body)


@pytest.mark.parametrize("path", ["/sessions/s/messages", "/runs"])
def test_a_message_that_is_sent_again_under_its_key_is_the_same_one(tmp_path: Path, path: str) -> None:
    """G01: whether the client's id stands in the body or in the header Idempotency-Key."""

    async def body(scene: Scene) -> None:
        scene.provider.queue(Text("once"))
        first = (await scene.owner.post(path, {"text": "pay"}, Idempotency_Key="k1")).json
        again = (await scene.owner.post(path, {"text": "pay"}, Idempotency_Key="k1")).json
        await scene.owner.reply(first)
        later = (await scene.owner.post(path, {"text": "pay", "client_id": "k1"})).json
        assert [first["duplicate"], again["duplicate"], later["duplicate"]] == [False, True, True]
        assert first["request"] == again["request"] == later["request"]
        assert first["session"] == again["session"] == later["session"]
        assert len(scene.provider.requests) == 1
        told = await scene.owner.reply(later)
        assert told[-1].data["content"] == "once"

    at_the_api(tmp_path, body)


def test_two_keys_that_differ_are_refused(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        got = await scene.owner.post("/runs", {"text": "x", "client_id": "a"}, Idempotency_Key="b")
        assert got.error == (400, "bad_request")
        assert "Idempotency-Key" in got.json["error"]["message"]

    at_the_api(tmp_path, body)


@pytest.mark.parametrize(
    ("sent", "named"),
    [
        ({}, "text"),
        ({"text": 7}, "$.text"),
        ({"text": "x", "agent": None}, "$.agent"),
        ({"text": "x", "agent": "a" * 201}, "$.agent"),
        ({"text": "x", "manner": "shout"}, "$.manner"),
        ({"text": "x", "models": "openai:m"}, "$.models"),
        ({"text": "x", "models": ["m"] * 17}, "$.models"),
        ({"text": "x", "models": [7]}, "$.models[0]"),
        ({"text": "x", "limits": {"max_turns": 0}}, "$.limits.max_turns"),
        ({"text": "x", "limits": {"max_turns": 1.5}}, "$.limits.max_turns"),
        ({"text": "x", "limits": {"timeout_s": -1}}, "$.limits.timeout_s"),
        ({"text": "x", "limits": {"max_usd": "1"}}, "$.limits.max_usd"),
        ([], "object"),
        ("text", "object"),
    ],
)
def test_a_body_that_is_not_what_it_should_be_is_refused_by_field(
    tmp_path: Path, sent: object, named: str
) -> None:
    async def body(scene: Scene) -> None:
        got = await scene.owner.post("/sessions/s/messages", sent)
        assert got.error == (400, "bad_request")
        assert named in got.json["error"]["message"]
        assert not scene.provider.requests

    at_the_api(tmp_path, body)


@pytest.mark.parametrize("user", ["Alice", "a:b", "-", "..%2F", "%00", "alice%0Ax"])
def test_a_user_who_can_not_be_is_refused(tmp_path: Path, user: str) -> None:
    async def body(scene: Scene) -> None:
        got = await scene.owner.get(f"/sessions?user={user}")
        assert got.error == (400, "bad_request")
        assert "?user" in got.json["error"]["message"]

    at_the_api(tmp_path, body)


@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b"{" * 5_000, b"[" * 100_000, b'{"text": "\xff"}', b'{"text": "\\ud800"}', b"NaN", b"null"],
)
def test_what_is_no_json_is_a_400(tmp_path: Path, raw: bytes) -> None:
    async def body(scene: Scene) -> None:
        got = await scene.owner.call("POST", "/sessions/s/messages", raw=raw)
        assert got.error == (400, "bad_request")
        assert len(got.body) < 1_500

    at_the_api(tmp_path, body)


def test_fields_of_a_later_version_are_left_out(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        scene.provider.queue(Text("fine"))
        got = await scene.owner.post("/sessions/s/messages", {"text": "x", "mood": {"good": [1]}})
        assert got.status == 202
        await scene.owner.reply(got.json)

    at_the_api(tmp_path, body)


@pytest.mark.parametrize(
    ("path", "sent", "code"),
    [
        ("/sessions/s/messages", {"text": "  \n"}, "refused"),
        ("/sessions/s/messages", {"text": "x", "agent": "nobody"}, "refused"),
        ("/sessions/s/messages", {"text": "x", "models": ["no-such-provider:m"]}, "refused"),
        ("/sessions/a:b/messages", {"text": "x"}, "not_found"),
        ("/sessions/%20/messages", {"text": "x"}, "not_found"),
        ("/sessions/%00/messages", {"text": "x"}, "not_found"),
        (f"/sessions/{'s' * 201}/messages", {"text": "x"}, "not_found"),
        ("/runs", {"text": "x", "session": "team:coder:s"}, "refused"),
    ],
)
def test_a_message_that_can_never_be_answered_is_refused_before_it_is_stored(
    tmp_path: Path, path: str, sent: object, code: str
) -> None:
    async def body(scene: Scene) -> None:
        assert (await scene.owner.post(path, sent)).error == (404 if code == "not_found" else 400, code)
        assert await scene.served.gateway.sessions.pending() == []

    at_the_api(tmp_path, body)


def test_two_messages_at_once_are_answered_one_after_the_other(tmp_path: Path) -> None:
    """I07: two connections, one session, the same moment."""

    async def body(scene: Scene) -> None:
        gate = asyncio.Event()
        scene.provider.queue(Raw(Until(gate), stream_of(Text("a1"), True)), Text("a2"))
        async with asyncio.TaskGroup() as group:
            one = group.create_task(scene.owner.say("s", "m1"))
            two = group.create_task(scene.owner.say("s", "m2"))
        gate.set()
        first, second = sorted((one.result(), two.result()), key=lambda accepted: accepted["waiting"])
        assert (first["waiting"], second["waiting"]) == (0, 1)
        texts = {one.result()["request"]: "m1", two.result()["request"]: "m2"}
        await scene.owner.reply(second)
        sent = cast("list[dict[str, str]]", scene.provider.requests[1].body["messages"])
        said = [(message["role"], message["content"]) for message in sent[1:4]]
        assert said == [
            ("user", texts[first["request"]]),
            ("assistant", "a1"),
            ("user", texts[second["request"]]),
        ]
        exported = (await scene.owner.get("/sessions/s/export")).body.decode()
        assert re.findall(r"^> (m1|m2|a1|a2)$", exported, re.MULTILINE) == [
            texts[first["request"]],
            "a1",
            texts[second["request"]],
            "a2",
        ]

    at_the_api(tmp_path, body)


def test_a_waiting_message_can_be_taken_back_and_a_taken_one_cannot(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        gate = asyncio.Event()
        scene.provider.queue(Raw(Until(gate), stream_of(Text("a1"), True)))
        first = await scene.owner.say("s", "m1")
        second = await scene.owner.say("s", "m2")
        waiting = (await scene.owner.get(f"/messages/{second['request']}")).json
        assert (waiting["status"], waiting["run"], waiting["outcome"]) == ("waiting", "", None)
        assert (await scene.owner.delete(f"/messages/{second['request']}")).status == 204
        dropped = (await scene.owner.get(f"/messages/{second['request']}")).json
        assert dropped["status"] == "dropped"
        assert dropped["reason"]
        gate.set()
        await scene.owner.reply(first)
        assert (await scene.owner.delete(f"/messages/{first['request']}")).error == (409, "busy")
        assert (await scene.owner.delete("/messages/m0")).error == (404, "not_found")
        assert len(scene.provider.requests) == 1

    at_the_api(tmp_path, body)


def test_another_users_things_are_not_there(tmp_path: Path) -> None:
    """I06: by name, by id, in every route; what was said never reaches the other one's model."""

    async def body(scene: Scene) -> None:
        alice, bob = scene.as_user("alice"), scene.as_user("bob")
        scene.provider.queue(Text("noted"), Text("I know of no code"))
        accepted = await alice.say("demo", "my code is 1234")
        await alice.reply(accepted)
        run = (await alice.get(f"/messages/{accepted['request']}")).json["run"]
        for method, path in (
            ("GET", f"/messages/{accepted['request']}"),
            ("DELETE", f"/messages/{accepted['request']}"),
            ("GET", "/sessions/demo"),
            ("PATCH", "/sessions/demo"),
            ("DELETE", "/sessions/demo"),
            ("GET", "/sessions/demo/export"),
            ("POST", "/sessions/demo/cancel"),
            ("GET", "/sessions/demo/team"),
            ("GET", f"/runs/{run}"),
            ("GET", f"/runs/{run}/events"),
            ("GET", f"/runs/{run}/entries"),
            ("POST", f"/runs/{run}/cancel"),
            ("GET", f"/runs/{run}/artifacts/x"),
        ):
            sent = {"title": "mine"} if method == "PATCH" else None
            got = await bob.call(method, path, sent)
            assert got.error == (404, "not_found"), (method, path)
            assert b"alice" not in got.body
        assert (await bob.get("/sessions")).rows == []
        assert (await bob.get("/sessions?user=alice")).error == (403, "not_allowed")
        assert (await bob.post("/sessions/demo/messages?user=alice", {"text": "x"})).error[0] == 403
        for trick in ("user:alice:demo", "user%3Aalice%3Ademo", "team:skeptic:user:alice:demo"):
            assert (await bob.get(f"/sessions/{trick}")).error == (404, "not_found")
        await bob.ask("demo", "what is my code?")
        assert "1234" not in str(scene.provider.requests[1].body)
        assert (await alice.get(f"/runs/{run}")).json["outcome"] == "success"

    at_the_api(tmp_path, body)


def test_another_user_cannot_end_a_run_that_goes_on(tmp_path: Path) -> None:
    """I06."""

    async def body(scene: Scene) -> None:
        alice, bob = scene.as_user("alice"), scene.as_user("bob")
        gate = asyncio.Event()
        scene.provider.queue(Raw(Until(gate), stream_of(Text("done"), True)))
        accepted = await alice.say("demo", "work")
        async with alice.stream(f"/sessions/demo/events?after={accepted['after']}") as stream:
            run = (await stream.until(lambda told: told.event == "event"))[-1].data["run"]
        assert (await bob.post(f"/runs/{run}/cancel")).error == (404, "not_found")
        assert (await bob.post("/sessions/demo/cancel")).error == (404, "not_found")
        gate.set()
        assert (await alice.reply(accepted))[-1].data["outcome"] == "success"

    at_the_api(tmp_path, body)


def test_an_admin_may_look_after_others_and_nobody_else(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        alice, boss = scene.as_user("alice"), scene.as_user("boss", "chat", "admin")
        scene.provider.queue(Text("noted"))
        await alice.ask("demo", "hello")
        assert [row["session"] for row in (await boss.get("/sessions?user=alice")).rows] == ["demo"]
        assert (await boss.get("/sessions/demo?user=alice")).json["runs"][0]["title"] == "hello"
        assert (await boss.get("/sessions/demo")).error == (404, "not_found")
        assert (await boss.call("DELETE", "/sessions/demo?user=alice")).status == 204
        assert (await alice.get("/sessions/demo")).error == (404, "not_found")

    at_the_api(tmp_path, body)


def test_a_token_without_the_scope_is_told_which_one_is_needed(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        got = await scene.as_user("carol", "approve").get("/sessions")
        assert got.error == (403, "not_allowed")
        assert "chat" in got.json["error"]["message"]

    at_the_api(tmp_path, body)


def test_a_run_and_a_session_can_be_cancelled(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        scene.provider.queue(Hang(), Hang())
        accepted = await scene.owner.say("s", "work")
        async with scene.owner.stream(f"/sessions/s/events?after={accepted['after']}") as stream:
            run = (await stream.until(lambda told: told.event == "event"))[-1].data["run"]
            got = await scene.owner.post(f"/runs/{run}/cancel", {"reason": "enough"})
            assert [(end["run_id"], end["outcome"]) for end in got.json["ends"]] == [(run, "cancelled")]
            reply = (await stream.to_reply())[-1]
        assert reply.data["outcome"] == "cancelled"
        assert (await scene.owner.get(f"/runs/{run}")).json["reason"] == "enough"
        again = await scene.owner.post(f"/runs/{run}/cancel")
        assert again.json["ends"][0]["outcome"] == "cancelled"
        await scene.owner.say("s", "work on")
        waiting = await scene.owner.say("s", "and on")
        async with scene.owner.stream(f"/sessions/s/events?after={accepted['after']}") as stream:
            await stream.until(
                lambda t: t.data.get("data", {}).get("kind") == "run_started" and t.data["run"] != run
            )
            assert (await scene.owner.post("/sessions/s/cancel")).json == {"runs": 1}
        assert (await scene.owner.get(f"/messages/{waiting['request']}")).json["status"] == "dropped"
        assert (await scene.owner.post("/sessions/unknown/cancel")).error == (404, "not_found")

    at_the_api(tmp_path, body)


def test_a_closing_gateway_takes_no_more_messages(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        await scene.served.gateway.drain(0)
        assert (await scene.owner.post("/runs", {"text": "x"})).error == (503, "closing")

    at_the_api(tmp_path, body)


def test_an_address_that_is_none_and_a_method_that_is_not_there_are_errors_of_the_same_form(
    tmp_path: Path,
) -> None:
    async def body(scene: Scene) -> None:
        assert (await scene.owner.get("/nowhere")).error == (404, "not_found")
        assert (await scene.owner.get("/sessions//events")).error == (404, "not_found")
        got = await scene.owner.call("PUT", "/sessions/s")
        assert got.error == (405, "bad_request")
        assert got.headers["Allow"] == "GET, PATCH, DELETE"

    at_the_api(tmp_path, body)


def test_a_name_may_hold_what_addresses_use_for_themselves(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        scene.provider.queue(Text("yes"))
        name = "a%2Fb%3Fc%20%E6%96%87%25"
        accepted = await scene.owner.say(name, "hi")
        assert accepted["session"] == "a/b?c 文%"
        async with scene.owner.stream(f"/sessions/{name}/events?after={accepted['after']}") as stream:
            await stream.to_reply()
        assert (await scene.owner.get("/sessions")).rows[0]["session"] == "a/b?c 文%"
        assert (await scene.owner.get(f"/sessions/{name}")).json["runs"][0]["outcome"] == "success"

    at_the_api(tmp_path, body)


def test_the_router_explains_itself_without_asking_anybody(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        got = (await scene.owner.post("/route", {"text": "@coder write a parser"})).json
        assert (got["agent"], got["by"], got["text"]) == ("coder", "mention", "write a parser")
        got = (await scene.owner.post("/route", {"text": "Is there a SQL injection in this query?"})).json
        assert (got["by"], got["agent"]) == ("rule", "skeptic")
        (matched,) = [rule for rule in got["considered"] if rule["matched"]]
        assert matched["rule"] == got["rule"]
        assert matched["words"]
        assert all(rule["why_not"] for rule in got["considered"] if not rule["matched"])
        assert not scene.provider.requests

    at_the_api(tmp_path, body)


def test_the_agents_are_listed_without_paths_of_the_server(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        agents = {row["name"]: row for row in (await scene.owner.get("/agents")).rows}
        assert agents["orchestrator"]["orchestrator"] is True
        assert agents["coder"]["orchestrator"] is False
        assert agents["coder"]["description"]
        assert str(scene.home) not in str(agents)

    at_the_api(tmp_path, body)


def test_an_error_of_ours_tells_nothing_but_where_to_look(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def body(scene: Scene) -> None:
        await scene.served.gateway.journal.close()
        got = await scene.owner.get("/sessions")
        assert got.error == (500, "internal")
        mark = got.json["error"]["message"].rpartition(" ")[2]
        assert mark in caplog.text
        assert str(scene.home) not in got.body.decode()

    at_the_api(tmp_path, body)
