"""How a small model is led through a coordinator's phases (SPEC H1)."""

from typing import cast

import pytest

from xclaw.agents.loader import builtin_agents
from xclaw.contracts.agents import Agent
from xclaw.contracts.coaching import Standing
from xclaw.contracts.coordination import PHASE_TOOLS
from xclaw.loop.schema_checks import violations
from xclaw.models.embedded.coaching import SmallModelCoaching

COACHING = SmallModelCoaching()
ROSTER = dict.fromkeys(("coder", "writer", "verifier"), "x")
FINAL = {"type": "object", "properties": {"summary_data": {"type": "object"}}}


def agent(name: str) -> Agent:
    found = builtin_agents().get(name)
    assert found is not None
    return found


def accepts(schema: dict[str, object], reply: object) -> bool:
    return not violations(reply, schema)


def schema_for(name: str, standing: Standing) -> dict[str, object]:
    final = None if name == "coordinator" else FINAL
    return COACHING.schema(agent(name), (), final, list(ROSTER), standing)


REPLIES: dict[str, dict[str, object]] = {
    "research": {"action": "research", "tasks": [{"question": "Which formulas?"}]},
    "write_plan": {
        "action": "write_plan",
        "plan": [
            {"id": "t1", "task": "Write a.py.", "agent": "coder", "writes": ["a.py"], "depends_on": []},
            {"id": "t2", "task": "Write A.md.", "agent": "writer", "writes": ["A.md"], "depends_on": ["t1"]},
        ],
    },
    "implement": {"action": "implement"},
    "verify": {"action": "verify", "checks": [{"why": "it runs", "command": "python3 a.py"}]},
    "answer": {"action": "answer", "text": "Done."},
}


@pytest.mark.parametrize("tool", PHASE_TOOLS)
def test_each_phase_offers_its_own_tool_and_nothing_else(tool: str) -> None:
    schema = schema_for("coordinator", Standing("x", offered=(tool,), next_step="go on"))
    assert [name for name, reply in REPLIES.items() if accepts(schema, reply)] == [tool]


@pytest.mark.parametrize("standing", [Standing("x"), Standing("x", offered=("implement",), is_over=True)])
def test_the_end_and_going_round_in_circles_leave_only_the_answer(standing: Standing) -> None:
    schema = schema_for("coordinator", standing)
    assert [name for name, reply in REPLIES.items() if accepts(schema, reply)] == ["answer"]


def test_nobody_is_planned_who_does_not_make_anything() -> None:
    schema = schema_for("coordinator", Standing("x", offered=("write_plan",)))
    plan = [{"id": "t1", "task": "x", "agent": "verifier", "writes": ["a.py"], "depends_on": []}]
    assert not accepts(schema, {"action": "write_plan", "plan": plan})


def test_a_verifier_is_offered_the_next_command_as_it_is_written_then_only_the_end() -> None:
    schema = schema_for("verifier", Standing("x", commands=("pytest -q", "mypy .")))
    assert accepts(schema, {"action": "shell", "command": "pytest -q"})
    assert not accepts(schema, {"action": "shell", "command": "mypy ."})
    assert not accepts(schema, {"action": "shell", "command": "rm -rf ."})
    end = schema_for("verifier", Standing("x"))
    assert not accepts(end, {"action": "shell", "command": "pytest -q"})
    assert "result" in str(end)


def test_the_example_goes_through_all_phases_and_the_next_step_is_proposed() -> None:
    shots = COACHING.shots(agent("coordinator"))
    calls = [call.name for shot in shots for call in getattr(shot, "tool_calls", ())]
    assert calls == list(PHASE_TOOLS)
    note = COACHING.note(
        agent("coordinator"), Standing("x", offered=("implement",), next_step="call implement")
    )
    assert note == "(Next: call implement.)"


def test_tools_are_few() -> None:
    names = cast("tuple[str, ...]", agent("coordinator").tools)
    assert COACHING.tools(agent("coordinator"), names, "x") == PHASE_TOOLS
    assert COACHING.tools(agent("verifier"), ("shell", "view_file", "list_dir"), "x") == (
        "shell",
        "view_file",
    )
    assert COACHING.tools(agent("explorer"), ("view_file", "list_dir", "deliver"), "Which formulas?") == ()
    assert COACHING.tools(agent("coder"), ("view_file", "deliver", "shell"), "x") == ("view_file", "deliver")


@pytest.mark.parametrize(
    "depends_on", [[["t1"]], [["t2"], []], [[], ["t2"]], [[], [], ["t3"]], [["t2"], ["t1"]]]
)
def test_no_plan_can_go_round_in_a_circle(depends_on: list[list[str]]) -> None:
    """H5: a small model does not mend a cycle that it made."""
    schema = schema_for("coordinator", Standing("x", offered=("write_plan",)))
    plan = [
        {"id": f"t{number}", "task": "x", "agent": "coder", "writes": [f"{number}.py"], "depends_on": needed}
        for number, needed in enumerate(depends_on, 1)
    ]
    assert not accepts(schema, {"action": "write_plan", "plan": plan})


@pytest.mark.parametrize(
    ("text", "is_allowed"),
    [
        ("Done: slug.py makes slugs.", True),
        ("Done: slug.py makes slugs. The check that slugify('A b') is 'a-b' passed.", True),
        ("One. Two. Three.", False),
        ("No end", False),
    ],
)
def test_the_last_answer_has_two_sentences_at_most(text: str, *, is_allowed: bool) -> None:
    """With more room a small model tells of checks that were never run."""
    schema = schema_for("coordinator", Standing("x"))
    assert accepts(schema, {"action": "answer", "text": text}) is is_allowed
