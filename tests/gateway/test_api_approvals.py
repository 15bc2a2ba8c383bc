"""Approvals over HTTP: shown to whom they belong, answered once, by whoever may."""

from pathlib import Path

from gateway.api_client import Api, Json, Scene, at_the_api
from xclaw.testing.fake_replies import Calls, Text

AGENT = """\
---
name: ops
description: Runs commands.
tools: [shell]
---
You run commands.
"""


async def asked(scene: Scene, api: Api, command: str = "echo hello") -> tuple[Json, Json]:
    """A message whose agent asks whether a command may run, and its approval."""
    scene.provider.queue(Calls(("c1", "shell", f'{{"command": "{command}"}}')), Text("done"))
    accepted = await api.say("s", "run it", agent="ops")
    async with api.stream(f"/sessions/s/events?after={accepted['after']}") as stream:
        told = await stream.until(lambda each: each.data.get("data", {}).get("kind") == "approval_asked")
    (approval,) = (await api.get("/approvals")).rows
    assert approval["approval"] == told[-1].data["data"]["approval_id"]
    return accepted, approval


def with_ops(home: Path) -> None:
    (home / "agents").mkdir()
    (home / "agents" / "ops.md").write_text(AGENT)


def test_an_approval_is_shown_and_answered(tmp_path: Path) -> None:
    """A01, J2."""

    async def body(scene: Scene) -> None:
        accepted, approval = await asked(scene, scene.owner)
        assert (approval["session"], approval["agent"], approval["tool"]) == ("s", "ops", "shell")
        assert (approval["path"], approval["status"]) == (["ops"], "pending")
        assert "echo hello" in approval["arguments"]
        got = await scene.owner.post(f"/approvals/{approval['approval']}", {"decision": "once"})
        assert (got.status, got.json["status"]) == (200, "answered")
        told = await scene.owner.reply(accepted)
        assert "hello" in str(
            [t.data for t in told if t.data.get("data", {}).get("kind") == "tool_call_ended"]
        )
        again = await scene.owner.post(f"/approvals/{approval['approval']}", {"decision": "deny"})
        assert again.error == (409, "busy")
        assert (await scene.owner.get("/approvals")).rows == []

    with_ops(tmp_path)
    at_the_api(tmp_path, body)


def test_a_denial_has_its_reason_and_an_edit_its_arguments(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        accepted, approval = await asked(scene, scene.owner)
        sent = {"decision": "deny", "reason": "not on a Friday"}
        assert (await scene.owner.post(f"/approvals/{approval['approval']}", sent)).status == 200
        await scene.owner.reply(accepted)
        assert "not on a Friday" in str(scene.provider.requests[1].body)
        accepted, approval = await asked(scene, scene.owner)
        path = f"/approvals/{approval['approval']}"
        wrongs: tuple[Json, ...] = (
            {"decision": "edit"},
            {"decision": "edit", "arguments": {}},
            {"decision": "once", "arguments": {"command": "echo x"}},
            {"decision": "maybe"},
            {},
        )
        for wrong in wrongs:
            assert (await scene.owner.post(path, wrong)).status == 400
        edited = {"decision": "edit", "arguments": {"command": "echo other"}}
        assert (await scene.owner.post(path, edited)).status == 200
        await scene.owner.reply(accepted)
        assert "other" in str(scene.provider.requests[3].body)

    with_ops(tmp_path)
    at_the_api(tmp_path, body)


def test_an_approval_is_its_users_own_and_needs_the_scope(tmp_path: Path) -> None:
    """I06: neither seen nor answered by others, and not without the scope `approve`."""

    async def body(scene: Scene) -> None:
        alice = scene.as_user("alice", "chat", "approve")
        bob, boss = scene.as_user("bob", "chat", "approve"), scene.as_user("boss", "approve", "admin")
        accepted, approval = await asked(scene, alice)
        path = f"/approvals/{approval['approval']}"
        assert (await bob.get("/approvals")).rows == []
        assert (await scene.owner.get("/approvals")).rows == []
        assert (await bob.post(path, {"decision": "once"})).error == (404, "not_found")
        assert (await scene.as_user("alice").post(path, {"decision": "once"})).error == (403, "not_allowed")
        assert (await scene.as_user("alice").get("/approvals")).error == (403, "not_allowed")
        assert [row["approval"] for row in (await boss.get("/approvals?user=alice")).rows] == [
            approval["approval"]
        ]
        assert (await boss.post(f"{path}?user=alice", {"decision": "once"})).status == 200
        told = await alice.reply(accepted)
        answered = next(
            t.data["data"] for t in told if t.data.get("data", {}).get("kind") == "approval_answered"
        )
        assert answered["by"] == "boss"

    with_ops(tmp_path)
    at_the_api(tmp_path, body)
