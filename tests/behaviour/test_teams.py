"""Teams of agents: strategies, mail between members, the end of everybody waiting (SPEC G5, G6)."""

from pathlib import Path

from team_play import Play, View, call, play_team, send, team
from xclaw.contracts.events import MailSent
from xclaw.testing.fake_provider import Reply, Text


def test_members_of_a_parallel_team_work_at_once_and_read_what_the_others_send(tmp_path: Path) -> None:
    """G5."""

    def coder(view: View) -> Reply:
        if not view.outputs:
            return send("writer", "There are 17 herons.")
        return Text("Counted: 17.")

    def writer(view: View) -> Reply:
        if any("17 herons" in told for told in view.told):
            return Text("Written: seventeen.")
        return Text("I wait for the number.") if view.outputs else call("wait_for_mail")

    played = play_team(
        tmp_path, Play(team("parallel", "coder", "writer"), {"coder": coder, "writer": writer})
    )
    assert played.seen.result.text == "The team is done."
    print(played.play.views["lead"][-1].outputs)
    members = played.record["members"]
    assert [members["coder"]["text"], members["writer"]["text"]] == ["Counted: 17.", "Written: seventeen."]
    assert list(members) == ["coder", "writer"]
    assert played.record["mail"] == {"coder to writer": 1}
