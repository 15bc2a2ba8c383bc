"""Faults of class 15: questions to people that are lost, crossed, widened, or asked of nobody."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from approving import asked, hand, lead, opened, orchestrates, runs_shell, say, shell, worker
from harness import Script, Seen, ask, follow

from xclaw.app import App
from xclaw.contracts.agents import Agent, Limits
from xclaw.contracts.approvals import Answer, Approval
from xclaw.contracts.errors import UsageError
from xclaw.contracts.events import (
    ApprovalAnswered,
    ApprovalAsked,
    ChildEnded,
    RunEnded,
    ToolCallEnded,
    ToolCallStarted,
)
from xclaw.contracts.permissions import Rules
from xclaw.contracts.sessions import SessionRow
from xclaw.runtime.runs import RunRequest


def play(
    home: Path,
    script: Script,
    scenario: Callable[[App], Awaitable[None]],
    agents: Sequence[Agent] = (),
    **permissions: object,
) -> None:
    async def main() -> None:
        async with asyncio.timeout(30), opened(home, script, agents, **permissions) as app:
            await scenario(app)

    asyncio.run(main())


async def begun(
    app: App, session: str = "s", text: str = "go", agent: str = "orchestrator"
) -> "asyncio.Task[Seen]":
    handle = await app.runs.start(RunRequest(text, session, agent))
    return asyncio.get_running_loop().create_task(follow(handle))


def shells(seen: Seen) -> list[ToolCallEnded]:
    return [event for event in seen.events(ToolCallEnded) if event.name == "shell"]


DEEP: Script = [
    orchestrates(hand("A", "TASK-A: pass it on")),
    {
        "agent": "A",
        "replies": [
            {"calls": [hand("B", "TASK-B: pass it on")]},
            {"text": {"status": "success", "summary_data": {}}},
        ],
    },
    {
        "agent": "B",
        "replies": [
            {"calls": [hand("C", "TASK-C: do it")]},
            {"text": {"status": "success", "summary_data": {}}},
        ],
    },
    runs_shell("C", "echo ran >> log.txt && cat log.txt"),
]
LINE = (lead("A"), lead("B"), worker("C"))


def test_a_question_from_three_levels_below_reaches_the_top_with_its_path(tmp_path: Path) -> None:
    """A01, J2: one question, with the exact command; approved, it runs once."""

    async def scenario(app: App) -> None:
        task = await begun(app)
        [approval] = await asked(app)
        assert approval.path == ("orchestrator", "A", "B", "C")
        assert json.loads(approval.arguments) == {"command": "echo ran >> log.txt && cat log.txt"}
        assert approval.root_session_id == "s"
        assert approval.status == "pending"
        assert await app.runs.approvals.pending(conversation_sessions={"s"}) == [approval]
        assert await app.runs.approvals.pending(conversation_sessions={"other"}) == []
        await say(app, approval)
        seen = await task
        [event] = seen.events(ApprovalAsked)
        assert event.path == approval.path
        [ran] = shells(seen)
        assert ran.ok
        assert ran.content == "ran\n[exit code 0]"
        assert seen.result.outcome == "success"
        assert await app.runs.approvals.pending() == []

    play(tmp_path, DEEP, scenario, LINE)


def test_a_question_of_a_background_worker_is_shown_and_a_denial_is_an_answer_to_it(tmp_path: Path) -> None:
    """A01, J2: spawned, asked while its parent waits, denied with a reason that the worker reads."""
    script: Script = [
        {
            "agent": "orchestrator",
            "replies": [
                {"calls": [hand("B", "TASK-B: do it", "spawn")]},
                {"calls": [{"name": "wait", "arguments": {}}]},
                {"text": "over"},
            ],
        },
        runs_shell("B", "rm -rf everything"),
    ]

    async def scenario(app: App) -> None:
        task = await begun(app)
        [approval] = await asked(app)
        assert approval.path == ("orchestrator", "B")
        await say(app, approval, "deny", reason="not today")
        seen = await task
        [call] = shells(seen)
        assert not call.ok
        assert "not today" in call.content
        assert [e.name for e in seen.events(ToolCallStarted) if e.name == "shell"] == []
        assert seen.result.text == "over"

    play(tmp_path, script, scenario, [worker("B")])


def test_a_question_that_nobody_answers_in_time_is_denied(tmp_path: Path) -> None:
    """A01: never for ever, where a limit is set."""

    async def scenario(app: App) -> None:
        seen = await ask(app, "go")
        [call] = shells(seen)
        assert not call.ok
        assert "nobody answered within 0.05 s" in call.content
        [answer] = seen.events(ApprovalAnswered)
        assert (answer.decision, answer.by) == ("deny", "xclaw")
        [row] = seen.events(ApprovalAsked)
        with pytest.raises(UsageError, match="answered already: deny, by xclaw"):
            await app.runs.approvals.answer(row.approval_id, Answer("once"), by="owner")

    script = [orchestrates(hand("B", "TASK-B: do it")), runs_shell("B", "touch x")]
    play(tmp_path, script, scenario, [worker("B")], approval_timeout_s=0.05)


def test_always_belongs_to_who_asked_and_beats_no_denial(tmp_path: Path) -> None:
    """A03: a grant of one worker's is no other's, no other user's, and never overrides a rule that denies."""
    script: Script = [
        {
            "agent": "orchestrator",
            "when": "^A",
            "replies": [{"calls": [hand("A", "TASK-A: look")]}, {"text": "ok"}],
        },
        {
            "agent": "orchestrator",
            "when": "^B",
            "replies": [{"calls": [hand("B", "TASK-B: push")]}, {"text": "ok"}],
        },
        runs_shell("A", "git status"),
        {
            "agent": "B",
            "replies": [
                {"calls": [shell("git push origin")]},
                {"calls": [shell("git status")]},
                {"text": "x"},
            ],
        },
    ]
    agents = [worker("A"), worker("B", Rules(deny=("shell(git push *)",)))]

    async def scenario(app: App) -> None:
        first = await begun(app, "one", "A")
        [approval] = await asked(app)
        await say(app, approval, "always", rule="shell(git *)")
        await first
        text = (tmp_path / "permissions.toml").read_text()
        assert 'agent = "A"\nrule = "shell(git *)"' in text

        # The same agent, in another conversation of the same user: no question.
        seen = await ask(app, "A", "two")
        assert seen.events(ApprovalAsked) == []
        assert shells(seen)[0].exit_code is not None

        # Another agent: the denial holds, and the rest is asked.
        third = await begun(app, "three", "B")
        [approval] = await asked(app)
        assert json.loads(approval.arguments) == {"command": "git status"}
        await say(app, approval, "deny")
        seen = await third
        pushed, status = shells(seen)[:2]
        assert "`deny shell(git push *)` of B forbids it" in pushed.content
        assert "the user denied" in status.content

        # Another user's conversation: asked again.
        await app.journal.sessions.open_session(SessionRow("bob/x", "bob/x", "bob", "x"))
        fourth = await begun(app, "bob/x", "A")
        [approval] = await asked(app)
        assert approval.root_session_id == "bob/x"
        await say(app, approval)
        await fourth

    play(tmp_path, script, scenario, agents)


def test_session_holds_for_that_agent_and_that_call_in_that_conversation(tmp_path: Path) -> None:
    """A03, I03."""
    script: Script = [
        orchestrates(hand("A", "TASK-A: look"), hand("A", "TASK-A: look again")),
        {
            "agent": "A",
            "replies": [{"calls": [shell("git status")]}, {"calls": [shell("git status -s")]}, {"text": "x"}],
        },
    ]

    async def scenario(app: App) -> None:
        first = await begun(app, "one")
        [_, second_ask] = await asked(app, 2)
        [one, _] = await app.runs.approvals.pending()
        await say(app, one, "session")
        await say(app, second_ask, "once")
        # Both go on to the other command, which the grant does not cover.
        later = await asked(app, 2)
        assert [json.loads(a.arguments)["command"] for a in later] == ["git status -s"] * 2
        for approval in later:
            await say(app, approval)
        await first

        again = await begun(app, "one")
        asks = await asked(app, 2)
        assert {json.loads(a.arguments)["command"] for a in asks} == {"git status -s"}
        for approval in asks:
            await say(app, approval)
        seen = await again
        assert len(seen.events(ApprovalAsked)) == 2

        other = await begun(app, "two")
        asks = await asked(app, 2)
        assert {json.loads(a.arguments)["command"] for a in asks} == {"git status"}
        other.cancel()
        assert not (tmp_path / "permissions.toml").exists()

    play(tmp_path, script, scenario, [worker("A")])


def test_answers_in_any_order_reach_the_calls_that_they_are_for(tmp_path: Path) -> None:
    """A04: two at once, answered in reverse; unknown and second answers are refused and change nothing."""
    script: Script = [
        orchestrates(hand("B", "TASK-ONE: rm a"), hand("B", "TASK-TWO: rm b")),
        runs_shell("B", "rm a", "TASK-ONE"),
        runs_shell("B", "rm b", "TASK-TWO"),
    ]

    async def scenario(app: App) -> None:
        task = await begun(app)
        asks = await asked(app, 2)
        by_command = {json.loads(approval.arguments)["command"]: approval for approval in asks}
        for name, approval in (("a", by_command["rm a"]), ("b", by_command["rm b"])):
            workspace = await place_of(app, approval)
            workspace.mkdir(parents=True, exist_ok=True)
            (workspace / name).write_text("here")
        assert len({approval.approval_id for approval in asks}) == 2
        assert all(re.fullmatch("a[0-9a-f]{24}", approval.approval_id) for approval in asks)
        await say(app, by_command["rm b"])
        with pytest.raises(UsageError, match="answered already: once, by owner"):
            await say(app, by_command["rm b"], "deny")
        with pytest.raises(UsageError, match="there is no approval"):
            await app.runs.approvals.answer("a000", Answer("once"), by="owner")
        await say(app, by_command["rm a"], "deny")
        seen = await task
        assert sorted(call.ok for call in shells(seen)) == [False, True]
        assert (await place_of(app, by_command["rm a"]) / "a").exists()
        assert not (await place_of(app, by_command["rm b"]) / "b").exists()

    play(tmp_path, script, scenario, [worker("B")])


async def place_of(app: App, approval: Approval) -> Path:
    started = (await app.journal.read_run(approval.run_id))[0].event
    return Path(app.workspaces.open("B", getattr(started, "task_id"), approval.run_id).private_dir)  # noqa: B009


def test_five_workers_at_once_are_asked_and_answered_each_for_itself(tmp_path: Path) -> None:
    """A06: yes, no, yes, nothing in time, yes; what is allowed anyway goes on meanwhile."""
    names = [f"T{n}" for n in range(5)]
    script: Script = [
        orchestrates(*(hand("B", f"TASK-{name}: look") for name in names)),
        *(
            {
                "agent": "B",
                "when": f"TASK-{name}",
                "replies": [
                    {
                        "calls": [
                            {"name": "list_dir", "arguments": {"path": "."}},
                            {"name": "view_file", "arguments": {"path": "none.txt"}},
                            shell(f"echo {name}"),
                        ]
                    },
                    {"text": "x"},
                ],
            }
            for name in names
        ),
    ]

    async def scenario(app: App) -> None:
        task = await begun(app)
        asks = await asked(app, 5)
        commands = {json.loads(approval.arguments)["command"]: approval for approval in asks}
        for name, decision in zip(names, ["once", "deny", "once", "", "once"], strict=True):
            if decision:
                await say(app, commands[f"echo {name}"], decision)
        seen = await task
        outcomes = sorted(call.content.splitlines()[0][:32] for call in shells(seen))
        assert outcomes[:3] == ["T0", "T2", "T4"]
        assert sum("the user denied" in call.content for call in shells(seen)) == 1
        assert sum("nobody answered" in call.content for call in shells(seen)) == 1
        assert sum(e.ok for e in seen.events(ToolCallEnded) if e.name == "list_dir") == 5
        assert len([e for e in seen.events(ToolCallEnded) if e.name == "view_file"]) == 5
        assert len(seen.events(ChildEnded)) == 5

    play(tmp_path, script, scenario, [worker("B")], approval_timeout_s=1.0)


def test_a_run_that_is_cancelled_withdraws_its_question(tmp_path: Path) -> None:
    """A04, J2: the wait ends, the approval is void, and a late answer is told so."""

    async def scenario(app: App) -> None:
        handle = await app.runs.start(RunRequest("go", "s"))
        task = asyncio.get_running_loop().create_task(follow(handle))
        [approval] = await asked(app)
        ends = await handle.cancel("enough")
        assert {end.outcome for end in ends} == {"cancelled"}
        seen = await task
        [answered] = seen.events(ApprovalAnswered)
        assert (answered.decision, answered.approval_id) == ("void", approval.approval_id)
        assert await app.runs.approvals.pending() == []
        with pytest.raises(UsageError, match="is void"):
            await say(app, approval)
        known = await app.runs.approvals.approval(approval.approval_id)
        assert known is not None
        assert known.status == "void"

    play(tmp_path, DEEP, scenario, LINE)


def test_the_clock_of_a_run_stands_still_while_a_person_decides(tmp_path: Path) -> None:
    """J2, K3: a worker with little time, and everybody above it, waits longer than that for an answer."""

    async def scenario(app: App) -> None:
        handle = await app.runs.start(RunRequest("go", "s", limits=Limits(timeout_s=2.0)))
        task = asyncio.get_running_loop().create_task(follow(handle))
        [approval] = await asked(app)
        # The root's time runs out for a worker that works; that is how long the other has waited at least.
        waiting = asyncio.Event()
        stop = app.runs.subscribe(lambda entry: waiting.set() if is_end(entry.event) else None)
        await waiting.wait()
        stop()
        await say(app, approval)
        seen = await task
        ends = {event.child_run_id: event.result.outcome for event in seen.events(ChildEnded)}
        assert sorted(ends.values()) == ["success", "timeout"]
        ran = next(call for call in shells(seen) if call.ok)
        assert ran.duration_s < 1.0, "what a person takes is no time of the tool's"

    def is_end(event: object) -> bool:
        return isinstance(event, RunEnded) and event.outcome == "timeout"

    slow = Agent("slow", "slow", "You are slow.", tools=("shell",), rules=Rules())
    script: Script = [
        orchestrates(hand("slow", "TASK-S: wait"), hand("B", "TASK-B: do it")),
        runs_shell("slow", "sleep 30"),
        runs_shell("B", "echo hi"),
    ]
    play(
        tmp_path,
        script,
        scenario,
        [slow, worker("B")],
        allow=("shell(sleep *)",),
    )


def test_edited_arguments_run_instead_and_are_checked_first(tmp_path: Path) -> None:
    """J2: against the schema and the rules; the model is told."""

    async def scenario(app: App) -> None:
        task = await begun(app)
        [approval] = await asked(app)
        for wrong, match in (
            ({"comand": "ls"}, "cannot be used"),
            ({"command": "git push"}, "not permitted either"),
        ):
            with pytest.raises(UsageError, match=match):
                await say(app, approval, "edit", arguments=wrong)
        with pytest.raises(UsageError, match="arguments go with"):
            await say(app, approval, "edit")
        with pytest.raises(UsageError, match="arguments go with"):
            await say(app, approval, "once", arguments={"command": "ls"})
        await say(app, approval, "edit", arguments={"command": "echo safe"})
        seen = await task
        [call] = shells(seen)
        assert "safe\n[exit code 0]" in call.content
        assert "the user changed the arguments" in call.content
        [started] = [e for e in seen.events(ToolCallStarted) if e.name == "shell"]
        assert json.loads(started.arguments) == {"command": "echo safe"}

    script = [orchestrates(hand("B", "TASK-B: do it")), runs_shell("B", "rm -rf /tmp/x")]
    play(tmp_path, script, scenario, [worker("B")], deny=("shell(git push *)",))


def test_a_rule_that_does_not_cover_the_call_is_no_answer_to_it(tmp_path: Path) -> None:
    """A03: nor does one silence a rule that asks each time."""

    async def scenario(app: App) -> None:
        task = await begun(app)
        [approval] = await asked(app)
        for rule in ("shell(git *)", "write_file", "shell(", "shell(make *)\n"):
            with pytest.raises(UsageError):
                await say(app, approval, "always", rule=rule)
        assert approval.rule == "shell(echo hi)"
        await say(app, approval, "session")
        [approval] = await asked(app)
        assert approval.rule == ""
        with pytest.raises(UsageError, match="no rule is on offer"):
            await say(app, approval, "session")
        with pytest.raises(UsageError, match="`ask shell\\(make \\*\\)` of settings matches"):
            await say(app, approval, "always", rule="shell(make all)")
        await say(app, approval)
        await task

    script: Script = [
        orchestrates(hand("B", "TASK-B: do it")),
        {
            "agent": "B",
            "replies": [{"calls": [shell("echo hi")]}, {"calls": [shell("make all")]}, {"text": "x"}],
        },
    ]
    play(tmp_path, script, scenario, [worker("B")], ask=("shell(make *)",))


def test_where_nobody_can_be_asked_the_model_is_told_what_would_allow_it(tmp_path: Path) -> None:
    """A01: an unattended run ends; nothing waits."""

    async def scenario(app: App) -> None:
        seen = await ask(app, "go")
        [call] = shells(seen)
        assert not call.ok
        assert "shell(touch x)" in call.content
        assert "permissions.allow" in call.content
        assert "--allow-shell" in call.content
        assert seen.events(ApprovalAsked) == []

    script = [orchestrates(hand("B", "TASK-B: do it")), runs_shell("B", "touch x")]
    play(tmp_path, script, scenario, [worker("B")], unattended="deny")


def test_arguments_that_nobody_could_judge_are_not_asked(tmp_path: Path) -> None:
    """A01's kind: a command of a million characters."""

    async def scenario(app: App) -> None:
        seen = await ask(app, "go")
        [call] = shells(seen)
        assert "nobody can judge" in call.content
        assert len(call.content) < 1_000
        assert seen.events(ApprovalAsked) == []

    script = [orchestrates(hand("B", "TASK-B: do it")), runs_shell("B", "echo " + "x" * 1_000_000)]
    play(tmp_path, script, scenario, [worker("B")])


def test_sessions_at_once_get_their_own_answers(tmp_path: Path) -> None:
    """I03, A04: twenty conversations ask at the same time; each answer runs its own command."""

    async def scenario(app: App) -> None:
        tasks = [await begun(app, f"s{n}") for n in range(20)]
        asks = await asked(app, 20)
        for approval in reversed(asks):
            number = int(approval.root_session_id[1:])
            if number % 2:
                await say(app, approval, "edit", arguments={"command": f"echo {approval.root_session_id}"})
            else:
                await say(app, approval, "deny", reason=approval.root_session_id)
        for number, task in enumerate(tasks):
            [call] = shells(await task)
            assert re.search(rf"\bs{number}\b", call.content)
            assert call.ok == bool(number % 2)

    script = [orchestrates(hand("B", "TASK-B: do it")), runs_shell("B", "date")]
    play(tmp_path, script, scenario, [worker("B")])
