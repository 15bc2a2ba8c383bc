"""Faults of class 06 through the whole runtime: loops, recursion, limits."""

import json
from pathlib import Path

import pytest
from harness import against_provider, ask
from wire import (
    DIALECTS,
    NOTHING,
    Body,
    Cast,
    act,
    content,
    form,
    messages,
    outputs,
    play,
    tool_names,
)

from xclaw.app import App
from xclaw.contracts.agents import Limits
from xclaw.contracts.events import ChildSpawned, RunStarted, ToolCallStarted, Warned
from xclaw.testing import FakeProvider
from xclaw.testing.fake_provider import Calls, Pause, Raw, Reply, Status, Text

RECURSIVE = """---
name: lead
description: Hands work on.
tools: delegate, list_dir
---
You hand work on.
"""


def with_lead(home: Path) -> Path:
    (home / "agents").mkdir(parents=True)
    (home / "agents" / "lead.md").write_text(RECURSIVE, "utf-8")
    return home


def hand(agent: str, task: str) -> tuple[str, object]:
    return ("delegate", {"agent": agent, "task": task})


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("width", [1, 2])
def test_delegation_to_oneself_ends_at_the_depth_limit(tmp_path: Path, dialect: str, width: int) -> None:
    """L01: everybody hands the same task on, to itself, however deep it is."""
    bodies: list[Body] = []

    def answer(body: Body) -> Reply:
        bodies.append(body)
        told = outputs(body)
        if told:
            return Text("I give up") if "TASK" not in content(messages(body)[1]) else form("gave up", "error")
        return act(dialect, *(hand("lead", f"TASK: do this {n}") for n in range(width)))

    async def scenario(app: App, provider: FakeProvider) -> None:
        provider.answer_with(answer)
        seen = await ask(app, "START")
        assert seen.result.outcome == "completed_unverified"
        depths = [event.depth for event in seen.events(RunStarted)]
        assert max(depths) == 3
        assert len(depths) == sum(width**depth for depth in range(4))

    against_provider(with_lead(tmp_path), scenario, dialect=dialect)
    if dialect == "native":
        deepest = [body for body in bodies if "delegate" not in tool_names(body)]
        assert len(deepest) == 2 * width**3
        assert any("there is no tool 'delegate'" in output for body in deepest for output in outputs(body))


def test_a_tree_without_end_in_width_and_depth_is_bounded_as_a_whole(tmp_path: Path) -> None:
    """L01: 16 children each would be 4,369 runs."""

    def answer(body: Body) -> Reply:
        if outputs(body):
            return Text("done") if "TASK" not in content(messages(body)[1]) else form()
        return act("native", *(hand("lead", f"TASK: do this {n}") for n in range(16)))

    async def scenario(app: App, provider: FakeProvider) -> None:
        provider.answer_with(answer)
        seen = await ask(app, "START")
        assert seen.result.outcome == "success"
        assert len(seen.events(RunStarted)) == 40

    against_provider(with_lead(tmp_path), scenario, max_runs=40)


REPEATED: list[tuple[list[Reply], bool]] = [
    ([Calls(("c", "view_file", '{"path":"missing.txt"}'))], True),
    ([Calls(("c", "view_file", f'{{"path":{" " * n}"missing.txt", "offset": 0}}')) for n in range(9)], True),
    (
        [
            Calls(("c", "view_file", json.dumps(fields)))
            for n in range(9)
            for fields in [dict(sorted({"path": "missing.txt", "offset": 0}.items(), reverse=n % 2 == 0))]
        ],
        True,
    ),
    ([Calls(("c", "shell", '{"command":"echo noop"}'))], True),
    ([Calls(("c", "list_dir", "{}"), ("d", "view_file", '{"path":"x"}'))], True),
    ([Calls(("c", "nothing", "{}"))], True),
    ([Calls(("c", "delegate", '{"agent":"ghost","task":"TASK: say hello"}'))], True),
    (
        [*(Calls(("c", "view_file", json.dumps({"path": f"missing{n}.txt"}))) for n in range(8)), Text("ok")],
        False,
    ),
    ([*(Calls(("c", "shell", json.dumps({"command": f"echo {n}"}))) for n in range(8)), Text("ok")], False),
]


@pytest.mark.parametrize(("replies", "stops"), REPEATED)
def test_a_call_repeated_without_progress_ends_the_run(
    tmp_path: Path, replies: list[Reply], stops: bool
) -> None:
    """L03: at most four times, with a warning before; different calls are not stopped."""
    troupe = Cast(
        {"TASK": replies, "START": [act("native", hand("worker", "TASK: say hello")), Text("I see")]}
    )
    agent = (
        "---\nname: worker\ndescription: Works.\ntools: view_file, list_dir, shell, delegate\n---\nWork.\n"
    )

    async def scenario(app: App, provider: FakeProvider) -> None:
        provider.answer_with(troupe.answer)
        seen = await ask(app, "START")
        assert seen.result.text == "I see"
        told = outputs(troupe.asked["START"][1])[0]
        if stops:
            assert len(troupe.asked["TASK"]) == 4
            assert '"outcome": "stuck"' in told
            assert "repeated_call" in told
            assert [event.code for event in seen.events(Warned)].count("repeated_call") == 2
        else:
            assert "stuck" not in told
            assert len(troupe.asked["TASK"]) >= 9

    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "worker.md").write_text(agent, "utf-8")
    against_provider(tmp_path, scenario, allow_shell=True)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_three_failures_of_any_kind_close_a_road_and_no_other(tmp_path: Path, dialect: str) -> None:
    """L04: a time-out, a provider's failure, a failed result; then the fourth is refused unstarted."""
    same = act(dialect, hand("coder", "TASK-A: say a"))
    bad = act(dialect, ("delegate", {"agent": "ghost", "task": "TASK-A: say a"}))
    roles: dict[str, list[Reply]] = {
        "TASK-A": [Raw(Pause(30)), Status(400), form("no", "error"), form("must never be asked")],
        "TASK-B": [form("B")],
        "START": [
            bad,
            same,
            same,
            same,
            same,
            act(dialect, hand("coder", "TASK-B: say b")),
            Text("one failed"),
        ],
    }
    troupe = Cast(roles)

    async def scenario(app: App, provider: FakeProvider) -> None:
        provider.answer_with(troupe.answer)
        seen = await ask(app, "START", worker_timeout_s=0.3)
        assert (seen.result.outcome, seen.result.text) == ("success", "one failed")
        assert len(seen.events(ChildSpawned)) == 4

    against_provider(tmp_path, scenario, dialect=dialect)
    told = outputs(troupe.asked["START"][-1])
    assert "unknown agent" in told[0]
    assert [
        '"outcome": "timeout"' in told[1],
        '"outcome": "error"' in told[2],
        '"outcome": "error"' in told[3],
    ] == [True] * 3
    assert "failed three times" in told[4]
    assert '"summary_data": "B"' in told[5]
    assert len(troupe.asked["TASK-A"]) == 3


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("turns", [1, 3])
def test_the_turn_limit_is_an_outcome_of_its_own_and_keeps_what_there_was(
    tmp_path: Path, dialect: str, turns: int
) -> None:
    """L06: no off-by-one; the findings and the delivered files are handed up."""
    deliveries = [
        act(dialect, ("deliver", {"path": f"f{n}.txt", "content": f"F{n}"}), ("list_dir", NOTHING))
        for n in range(5)
    ]
    troupe = Cast(
        {"TASK": deliveries, "START": [act(dialect, hand("worker", "TASK: write files")), Text("partly")]}
    )

    async def scenario(app: App, provider: FakeProvider) -> None:
        provider.answer_with(troupe.answer)
        assert (await ask(app, "START")).result.outcome == "completed_unverified"

    agent = f"---\nname: worker\ndescription: Works.\nmaxTurns: {turns}\n---\nWork.\n"
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "worker.md").write_text(agent, "utf-8")
    against_provider(tmp_path, scenario, dialect=dialect)
    assert len(troupe.asked["TASK"]) == turns
    told = outputs(troupe.asked["START"][1])[0]
    assert '"status": "error"' in told
    assert '"outcome": "exhausted"' in told
    for number in range(turns):
        assert f"f{number}.txt" in told


def test_the_users_own_run_ends_at_its_limits_with_what_it_had(tmp_path: Path) -> None:
    """L06: turns, model calls and tokens of the tree."""
    replies = [act("native", ("write_file", {"path": f"{n}.txt", "content": "x"})) for n in range(9)]

    async def scenario(app: App, provider: FakeProvider) -> None:
        for number, (limits, outcome) in enumerate(
            [(Limits(max_turns=3), "exhausted"), (Limits(max_tokens=1_500), "over_budget")]
        ):
            provider.answer_with(Cast({"START": replies}).answer)
            seen = await ask(app, "START", f"s{number}", limits=limits)
            assert seen.result.outcome == outcome
            assert seen.result.reason
            assert "wrote" in seen.result.text or outcome == "over_budget"
            assert len(seen.events(ToolCallStarted)) <= 3

    against_provider(tmp_path, scenario)


def test_model_calls_of_a_whole_tree_are_bounded(tmp_path: Path) -> None:
    """L01, L06: failed attempts and children count."""
    roles: dict[str, list[Reply]] = {
        "TASK": [act("native", ("write_file", {"path": f"{n}.txt", "content": "x"})) for n in range(9)],
        "START": [act("native", hand("coder", "TASK: write files")), Text("never asked")],
    }
    played = play(tmp_path, roles, max_calls=4)
    assert played.seen.result.outcome == "over_budget"
    assert len(played.asked["TASK"]) + len(played.asked["START"]) == 4
