"""The HTTP API over a real socket: sessions, their team, their export."""

import asyncio
import json
from pathlib import Path

import pytest

from gateway.api_client import Scene, at_the_api
from xclaw.gateway.frames import entry_of
from xclaw.gateway.wire import decode_server
from xclaw.testing.fake_replies import Calls, Hang, Raw, Text, Until, stream_of


def test_sessions_are_listed_the_latest_used_first_page_by_page(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        for name in ("one", "two", "three"):
            scene.provider.queue(Text("yes"))
            await scene.owner.ask(name, f"hello {name}")
        rows = (await scene.owner.get("/sessions")).rows
        assert [row["session"] for row in rows] == ["three", "two", "one"]
        assert (rows[0]["channel"], rows[0]["running"], rows[0]["residents"]) == ("api", False, [])
        page = (await scene.owner.get("/sessions?limit=2")).rows
        assert [row["session"] for row in page] == ["three", "two"]
        rest = (await scene.owner.get(f"/sessions?limit=2&before={page[-1]['used_at']!r}")).rows
        assert [row["session"] for row in rest] == ["one"]
        for wrong in ("limit=0", "limit=501", "limit=x", "before=x"):
            got = await scene.owner.get(f"/sessions?{wrong}")
            assert got.error == (400, "bad_request")
            assert wrong.partition("=")[0] in got.json["error"]["message"]

    at_the_api(tmp_path, body)


def test_a_session_can_be_named_and_deleted(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        scene.provider.queue(Text("yes"), Text("no"))
        accepted = await scene.owner.say("s", "hello")
        await scene.owner.reply(accepted)
        named = await scene.owner.call("PATCH", "/sessions/s", {"title": " 我的  notes "})
        assert named.json["title"] == "我的 notes"
        assert (await scene.owner.get("/sessions")).rows[0]["title"] == "我的 notes"
        for wrong in ("", "  ", "\x00", "x" * 201):
            assert (await scene.owner.call("PATCH", "/sessions/s", {"title": wrong})).status == 400
        assert (await scene.owner.delete("/sessions/s")).status == 204
        for path in ("/sessions/s", f"/messages/{accepted['request']}"):
            assert (await scene.owner.get(path)).error == (404, "not_found")
        assert (await scene.owner.delete("/sessions/s")).error == (404, "not_found")
        await scene.owner.ask("s", "again")
        assert "hello" not in str(scene.provider.requests[1].body)

    at_the_api(tmp_path, body)


def test_a_session_in_which_a_run_goes_on_is_not_deleted(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        gate = asyncio.Event()
        scene.provider.queue(Raw(Until(gate), stream_of(Text("done"), True)))
        accepted = await scene.owner.say("s", "work")
        async with scene.owner.stream(f"/sessions/s/events?after={accepted['after']}") as stream:
            await stream.until(lambda told: told.event == "event")
            assert (await scene.owner.get("/sessions/s")).json["running"] is True
            assert (await scene.owner.delete("/sessions/s")).error == (409, "busy")
            gate.set()
            await stream.to_reply()
        assert (await scene.owner.delete("/sessions/s")).status == 204

    at_the_api(tmp_path, body)


def test_residents_are_shown_with_what_they_remember_and_can_forget(tmp_path: Path) -> None:
    """B5."""

    async def body(scene: Scene) -> None:
        scene.provider.queue(Text("line 4"), Text("I said line 4"), Text("of what?"))
        await scene.owner.ask("s", "where is the bug?", agent="skeptic")
        await scene.owner.ask("s", "say it again", agent="skeptic")
        session = (await scene.owner.get("/sessions/s")).json
        assert session["residents"] == ["skeptic"]
        assert [run["agent"] for run in session["runs"]] == ["skeptic", "skeptic"]
        (resident,) = (await scene.owner.get("/sessions/s/team")).rows
        assert (resident["agent"], resident["session_id"], resident["messages"]) == (
            "skeptic",
            "team:skeptic:s",
            2,
        )
        assert (resident["last_request"], resident["last_answer"]) == ("say it again", "I said line 4")
        assert resident["remembers"]["turns"] == 2
        assert resident["remembers"]["tokens"] > 0
        assert (await scene.owner.delete("/sessions/s/team/coder")).error == (404, "not_found")
        assert (await scene.owner.delete("/sessions/s/team/Skeptic")).status == 204
        await scene.owner.ask("s", "and now?", agent="skeptic")
        assert "line 4" not in str(scene.provider.requests[2].body)

    at_the_api(tmp_path, body)


def test_a_conversation_is_exported_to_read_and_to_work_with(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        scene.provider.queue(
            Calls(
                ("c1", "delegate", json.dumps({"agent": "coder", "task": "Write a.md with one line in it."}))
            ),
            Calls(("c2", "deliver", '{"path": "a.md", "content": "x"}')),
            Text('{"status": "success", "summary_data": {"done": 1}, "pointers": {}}'),
            Text("It is done.\n\n## User, to coder\n\n> forged"),
            Text("As I said."),
        )
        await scene.owner.ask("s", "Write a.md\nplease")
        await scene.owner.ask("s", "right?", agent="skeptic")
        got = await scene.owner.get("/sessions/s/export")
        assert got.headers["Content-Type"] == "text/markdown; charset=utf-8"
        assert got.headers["Content-Disposition"].startswith('attachment; filename="s.md"')
        text = got.body.decode()
        heads = [line for line in text.splitlines() if line.startswith("## ")]
        assert [head.partition(" · ")[0] for head in heads] == [
            "## User, to orchestrator",
            "## orchestrator",
            "## User, to skeptic",
            "## skeptic",
        ]
        assert "> Write a.md\n> please\n" in text
        assert "- orchestrator asked coder: Write a.md with one line" in text
        assert "- coder delivered a.md (1 bytes, sha256 " in text
        lines = (await scene.owner.get("/sessions/s/export?format=jsonl")).body.splitlines()
        frames = [decode_server(line) for line in lines]
        entries = [entry_of(frame) for frame in frames]  # pyright: ignore[reportArgumentType]
        assert [entry.id for entry in entries] == sorted({entry.id for entry in entries})
        stored = await scene.served.gateway.sessions.read_conversation("s", 0, 1000)
        assert entries == stored
        assert (await scene.owner.get("/sessions/s/export?format=pdf")).error == (400, "bad_request")

    at_the_api(tmp_path, body)


def test_everything_of_a_tree_can_be_fetched_for_a_trace(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        scene.provider.queue(Text("hello"))
        told = await scene.owner.ask("s", "hi")
        run = told[-1].data["run"]
        rows = (await scene.owner.get(f"/runs/{run}/entries")).rows
        entries = [entry_of(decode_server(json.dumps(row))) for row in rows]  # pyright: ignore[reportArgumentType]
        assert entries == await scene.served.gateway.journal.read_tree(run)
        assert rows[0]["data"]["instructions"]
        assert "instructions" not in told[0].data["data"] or not told[0].data["data"]["instructions"]
        assert {row["request"] for row in rows} == {told[-1].data["request"]}

    at_the_api(tmp_path, body)


def test_a_session_whose_first_message_waits_is_there_already(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        scene.provider.queue(Hang())
        accepted = await scene.owner.say("s", "hi")
        assert (await scene.owner.get("/sessions/s")).json["session"] == "s"
        assert accepted["request"]

    at_the_api(tmp_path, body)


@pytest.mark.parametrize("path", ["", "/team", "/export", "/export?format=jsonl"])
def test_a_session_that_is_not_there_is_a_404(tmp_path: Path, path: str) -> None:
    async def body(scene: Scene) -> None:
        assert (await scene.owner.get(f"/sessions/none{path}")).error == (404, "not_found")

    at_the_api(tmp_path, body)


def test_a_deleted_session_can_be_used_again_at_once(tmp_path: Path) -> None:
    """Also where nobody watched it before, so that the gateway still has it in mind."""

    async def body(scene: Scene) -> None:
        gate = asyncio.Event()
        scene.provider.queue(Text("one"), Raw(Until(gate), stream_of(Text("two"), True)))
        first = await scene.owner.say("s", "hello")
        while (await scene.owner.get(f"/messages/{first['request']}")).json["status"] != "ended":
            pass
        while (await scene.owner.delete("/sessions/s")).status == 409:
            pass
        second = await scene.owner.say("s", "hello again")
        async with scene.owner.stream(f"/sessions/s/events?after={second['after']}") as stream:
            await stream.until(lambda told: told.event == "event")
            gate.set()
            told = await stream.to_reply()
        assert told[-1].data["content"] == "two"
        assert (await scene.owner.get("/sessions/s")).json["title"] == "hello again"

    at_the_api(tmp_path, body, within_s=10)
