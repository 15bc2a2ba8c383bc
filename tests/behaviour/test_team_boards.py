"""The task board of a team, and what a crash leaves of board and mail (SPEC G5, K6; fault B05)."""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import cast

import pytest
from harness import follow, settings_for
from team_play import Member, Play, Played, View, call, play_team, send, team

from xclaw.app import open_app
from xclaw.contracts.events import BoardChanged, Entry, MailSent, MessageAdded, RunEnded, ToolCallEnded
from xclaw.runtime.runs import RunRequest
from xclaw.testing import FakeProvider
from xclaw.testing.fake_provider import Hang, Reply, Status, Text


def board(played: Played) -> list[dict[str, object]]:
    return cast("list[dict[str, object]]", played.record["tasks"])


def answers_of(played: Played, member: str) -> list[str]:
    return [event.content for event in played.of(member) if isinstance(event, ToolCallEnded)]


def in_turn(*steps: Reply) -> Member:
    return lambda view: steps[min(view.turns, len(steps) - 1)]


def test_of_all_who_claim_a_task_at_once_one_gets_it(tmp_path: Path) -> None:
    def adds(view: View) -> Reply:
        if view.turns == 0:
            return call("team_tasks", action="add", text="Count the herons")
        return send("all", "there is a task") if view.turns == 1 else Text("added")

    def claims(view: View) -> Reply:
        if not view.told:
            return call("wait_for_mail")
        if sum("heron" in out for out in view.outputs) or any("error" in out for out in view.outputs):
            return Text("tried")
        return call("team_tasks", action="claim", id="t1")

    names = ["writer", "skeptic", "explorer", "reviewer"]
    members = {"coder": adds, **dict.fromkeys(names, claims)}
    played = play_team(tmp_path, Play(team("parallel", *members), members))
    tries = [
        e
        for name in names
        for e in played.of(name)
        if isinstance(e, ToolCallEnded) and e.name == "team_tasks"
    ]
    assert Counter(e.ok for e in tries) == {True: 1, False: 3}
    claimed = [e for e in played.seen.events(BoardChanged) if e.change == "claimed"]
    assert len(claimed) == 1
    assert all(f"t1 is claimed by {claimed[0].member}" in e.content for e in tries if not e.ok)


def test_a_task_waits_for_those_it_depends_on(tmp_path: Path) -> None:
    coder = in_turn(
        call("team_tasks", action="add", text="Count"),
        call("team_tasks", action="add", text="Write", after=["t1"]),
        call("team_tasks", action="claim", id="t2"),
        call("team_tasks", action="claim", id="t1"),
        call("team_tasks", action="complete", id="t1", text="17"),
        call("team_tasks", action="claim", id="T2"),
        call("team_tasks", action="release", id="t2"),
        call("team_tasks", action="list"),
        Text("done"),
    )
    members = {"coder": coder, "writer": in_turn(Text("done"))}
    played = play_team(tmp_path, Play(team("parallel", *members), members))
    told = answers_of(played, "coder")
    assert "t2 has to wait for t1" in told[2]
    assert json.loads(told[5])["state"] == "claimed"
    states = {str(task["id"]): (task["state"], task["note"]) for task in board(played)}
    assert states == {"t1": ("done", "17"), "t2": ("open", "")}
    assert [task["id"] for task in json.loads(told[7])["tasks"]] == ["t1", "t2"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"action": "claim", "id": "t9"}, "there is no task 't9'; there are none"),
        ({"action": "complete", "id": "t1"}, "there is no task 't1'"),
        ({"action": "claim"}, "`id` is missing"),
        ({"action": "steal", "id": "t1"}, "is not one of list, add, claim"),
        ({"action": "add"}, "`text` is missing"),
        ({"action": "add", "text": "x", "after": ["t7"]}, "there is no task 't7'"),
        ({"action": "add", "text": "x" * 2_001}, "at most 2000 characters"),
    ],
)
def test_what_the_board_cannot_do_is_said_and_changes_nothing(
    tmp_path: Path, arguments: dict[str, object], told: str
) -> None:
    members = {
        "coder": in_turn(call("team_tasks", **arguments), Text("done")),
        "writer": in_turn(Text("done")),
    }
    played = play_team(tmp_path, Play(team("parallel", *members), members))
    assert told in answers_of(played, "coder")[0]
    assert played.seen.events(BoardChanged) == []


def test_what_a_member_had_claimed_is_free_when_it_has_ended(tmp_path: Path) -> None:
    coder = in_turn(
        call("team_tasks", action="add", text="Count"),
        call("team_tasks", action="claim", id="t1"),
        Status(400, '{"error": {"message": "no"}}'),
    )

    def writer(view: View) -> Reply:
        if view.turns == 0:
            return call("wait_for_mail", sender="coder")
        return call("team_tasks", action="claim", id="t1") if view.turns == 1 else Text("mine now")

    members = {"coder": coder, "writer": writer}
    played = play_team(tmp_path, Play(team("parallel", *members), members))
    assert json.loads(answers_of(played, "writer")[1])["by"] == "writer"
    changes = [(e.change, e.member) for e in played.seen.events(BoardChanged)]
    assert changes == [("added", "coder"), ("claimed", "coder"), ("claimed", "writer")]


def test_what_is_not_ones_own_is_not_completed(tmp_path: Path) -> None:
    coder = in_turn(
        call("team_tasks", action="add", text="Count"),
        call("team_tasks", action="complete", id="t1"),
        call("team_tasks", action="release", id="t1"),
        Text("done"),
    )
    members = {"coder": coder, "writer": in_turn(Text("done"))}
    played = play_team(tmp_path, Play(team("parallel", *members), members))
    assert all("t1 is not yours: it is open" in told for told in answers_of(played, "coder")[1:])


def test_a_full_and_lively_mailbox_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """B05, B07: every letter of every sender, in the order it was sent, in bounded batches."""
    rounds = 8

    def sends(view: View) -> Reply:
        return send("reader", f"number {view.turns}") if view.turns < rounds else Text("all sent")

    (tmp_path / "agents").mkdir(parents=True)
    (tmp_path / "agents" / "reader.md").write_text(
        "---\nname: reader\ndescription: reads\nmaxTurns: 200\n---\nRead.\n", "utf-8"
    )
    senders = {f"coder#{n}": sends for n in range(1, 6)}
    members = {**senders, "reader": in_turn(Text("read"))}
    played = play_team(
        tmp_path,
        Play(team("parallel", *["coder"] * 5, "reader"), members),
        worker_turns=rounds + 2,
    )
    read = [event for event in played.read_by("reader") if event.origin == "notification"]
    assert len({event.message_id for event in read}) == len(read) == 5 * rounds
    for name in senders:
        own = [event.text for event in read if f'from="{name}"' in event.text]
        assert [f">number {n}<" in text for n, text in enumerate(own)] == [True] * rounds


def test_board_and_mail_are_after_a_restart_what_they_were_before(tmp_path: Path) -> None:
    """K6: the claims stand, the mail that was under way is read once, nothing is paid for twice."""

    def coder_first(view: View) -> Reply:
        steps = (
            call("team_tasks", action="add", text="Count"),
            call("team_tasks", action="claim", id="t1"),
            send("writer", "I have it."),
        )
        return steps[view.turns] if view.turns < 3 else Hang()

    def coder_then(view: View) -> Reply:
        return Text("done") if view.turns > 3 else call("team_tasks", action="complete", id="t1", text="17")

    def writer_then(view: View) -> Reply:
        if not view.outputs:
            return call("team_tasks", action="list")
        return Text("I saw it")

    async def main() -> list[Entry]:
        async with asyncio.timeout(20), FakeProvider() as provider:
            env = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": provider.url}
            settings = settings_for(tmp_path, "openai:m", env=env)
            make = team("parallel", "coder", "writer")
            provider.answer_with(Play(make, {"coder": coder_first, "writer": in_turn(Hang())}).answer)
            async with open_app(settings) as app:
                await app.runs.start(RunRequest("Start the team.", "s"))
                await provider.wait_requests(6)
                await app.runs.suspend()
            provider.answer_with(Play(make, {"coder": coder_then, "writer": writer_then}).answer)
            async with open_app(settings) as app:
                (row,) = await app.runs.interrupted()
                seen = await follow(await app.runs.resume(row.root_id))
                assert seen.result.outcome == "success"
                return await app.journal.read_tree(row.root_id)

    entries = asyncio.run(main())
    events = [entry.event for entry in entries]
    (mail,) = [e for e in events if isinstance(e, MailSent) and e.sender]
    read = [e for e in events if isinstance(e, MessageAdded) and e.message_id == mail.mail_id]
    assert len(read) == 1
    changes = [e.change for e in events if isinstance(e, BoardChanged)]
    assert changes == ["added", "claimed", "completed"]
    listed = next(e for e in events if isinstance(e, ToolCallEnded) and '"tasks"' in e.content)
    assert json.loads(listed.content)["tasks"][0]["by"] == "coder"
    assert sum(isinstance(e, RunEnded) for e in events) == 3
