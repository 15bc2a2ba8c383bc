"""`kill -9` in the middle of a team, then resume: mail neither lost nor doubled, the board as it was (SPEC G5, K6)."""

import json
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_kill import Provider, Zygote, count, entries_in

from xclaw.contracts.events import (
    BoardChanged,
    ChildSpawned,
    Entry,
    MailSent,
    MessageAdded,
    ModelAnswered,
    RunEnded,
    ToolCallEnded,
)

MEMBER = "another agent called you"


def calls(tool: str, /, **arguments: object) -> dict[str, object]:
    return {"calls": [{"name": tool, "arguments": arguments}]}


def makes(name: str, strategy: str, *agents: str) -> dict[str, object]:
    return {
        "agent": "you are the orchestrator",
        "when": f"^MAKE-{name}",
        "replies": [
            calls(
                "create_team",
                name=name,
                agents=list(agents),
                strategy=strategy,
                goal=f"GOAL-{name}",
                rounds=2,
            ),
            {"text": "The team is done."},
        ],
    }


RULES: list[dict[str, object]] = [
    makes("MAIL", "parallel", "coder", "writer"),
    {
        "agent": MEMBER,
        "when": "GOAL-MAIL\n\n## Your team\nYou are coder",
        "replies": [
            calls("team_tasks", action="add", text="Count"),
            calls("team_tasks", action="claim", id="t1"),
            calls("send_message", to="writer", message="I have t1."),
            calls("team_tasks", action="complete", id="t1", text="17"),
            {"text": "Counted."},
        ],
    },
    {
        "agent": MEMBER,
        "when": "GOAL-MAIL\n\n## Your team\nYou are writer",
        "replies": [calls("wait_for_mail")],
    },
    {
        "agent": MEMBER,
        "when": '<mail id="[^"]*" from="coder"',
        "replies": [calls("send_message", to="all", message="Thank you."), {"text": "Written."}],
    },
    {
        "agent": MEMBER,
        "when": '<mail id="[^"]*" from="writer"',
        "replies": [{"text": "NO CHANGE"}],
    },
    makes("TURNS", "round-robin", "optimist", "skeptic"),
    {"agent": MEMBER, "when": "GOAL-TURNS", "replies": [{"text": "my first word"}]},
    {"agent": MEMBER, "when": r"Round 2 of 2\. It is your turn", "replies": [{"text": "my last word"}]},
]


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    provider = Provider(tmp_path_factory.mktemp("provider"), RULES)
    yield provider
    provider.stop()


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    zygote = Zygote()
    yield zygote
    zygote.stop()


def check(entries: list[Entry], job: str) -> None:
    """Nothing of it was lost and nothing was done twice."""
    sent = [e.event for e in entries if isinstance(e.event, MailSent)]
    read = Counter(
        e.event.message_id for e in entries if isinstance(e.event, MessageAdded) and e.event.message_id
    )
    assert [read[mail.mail_id] for mail in sent] == [1] * len(sent)
    assert len(sent) == 2
    ends = Counter(e.address.run_id for e in entries if isinstance(e.event, RunEnded))
    assert (len(ends), set(ends.values())) == (3, {1})
    assert count(entries, ChildSpawned) == 2
    outcomes = [e.event.outcome for e in entries if isinstance(e.event, RunEnded)]
    assert outcomes == ["success"] * 3
    (told,) = [
        e.event for e in entries if isinstance(e.event, ToolCallEnded) and e.event.name == "create_team"
    ]
    record = json.loads(told.content)
    if job == "MAKE-MAIL":
        assert record["mail"] == {"coder to writer": 1, "writer to coder": 1}
        changes = [e.event.change for e in entries if isinstance(e.event, BoardChanged)]
        assert changes in (["added", "claimed", "completed"], ["added", "claimed"])
        assert len(record["tasks"]) == 1
    else:
        assert [each["text"] for each in record["members"].values()] == ["my last word"] * 2
        assert count(entries, ModelAnswered) == 6


@pytest.mark.timeout(600)
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("job", ["MAKE-MAIL", "MAKE-TURNS"])
def test_a_team_killed_at_any_event_goes_on_where_it_was(
    zygote: Zygote, provider: Provider, job: str, when: str
) -> None:
    with tempfile.TemporaryDirectory() as home:
        assert zygote.do(do="run", text=job, home=home, url=provider.url) == (0, '[["success", ""]]')
        whole = entries_in(Path(home))
        check(whole, job)
    outcomes: Counter[str] = Counter()
    for at in range(1 + (when == "after"), len(whole) + 1, 2):
        with tempfile.TemporaryDirectory() as home:
            order = {"text": job, "home": home, "url": provider.url}
            code, out = zygote.do(do="run", number=at, when=when, **order)
            if code == 0 and at > len(whole) - 6:
                continue  # this time it had fewer events
            assert code == -signal.SIGKILL, f"event {at}: {out}"
            at_kill = entries_in(Path(home))
            provider.reset()
            code, out = zygote.do(do="resume", home=home, url=provider.url)
            assert code == 0, f"event {at}: {out}"
            after = entries_in(Path(home))
            if not at_kill or any(isinstance(e.event, RunEnded) and not e.address.parent_id for e in at_kill):
                outcomes["nothing to resume"] += 1
                continue
            assert json.loads(out) == [["success", ""]], f"event {at}: {out}"
            check(after, job)
            paid = count(after, ModelAnswered) - count(at_kill, ModelAnswered)
            assert provider.requests() == paid, f"event {at}: a finished call was paid for again"
            outcomes["resumed"] += 1
    assert outcomes["resumed"] >= len(whole) // 2 - 6
