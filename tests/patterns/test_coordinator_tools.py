"""Research, implementation and verification of a coordinator: what is refused, handed on, and read as a verdict (SPEC H1)."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from patterns.children_for_patterns import FunctionSpawn, Stage, Worker
from xclaw.contracts.coordination import NOT_BEGUN, Coordination, planned_key
from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.events import ChildEnded, ChildSpawned, Event, PhaseChanged
from xclaw.contracts.plans import Check, CheckRun, PlannedTask, Verdict
from xclaw.contracts.results import Result
from xclaw.contracts.tasks import Task
from xclaw.contracts.tools import Tool, ToolContext, ToolOutput
from xclaw.patterns.coordinator.settings import CoordinatorSettings
from xclaw.patterns.coordinator.toolset import coordinator_tools
from xclaw.patterns.coordinator.verify import verdict_of

CHECKS = (Check("one"), Check("two"))


def ran(command: str, exit_code: int | None) -> CheckRun:
    return CheckRun(command, "call", True, exit_code, "out")


def denied(command: str) -> CheckRun:
    return CheckRun(command, "call", False, None, "error: nobody")


@pytest.mark.parametrize(
    ("runs", "verdict"),
    [
        ([ran("one", 0), ran("two", 0)], "passed"),
        ([ran("one", 0), ran("two", 1)], "failed"),
        ([ran("one", 0), ran("two", None)], "failed"),
        ([ran("one", -9), ran("two", 0)], "failed"),
        ([ran("one", 0), ran("two", 127)], "incomplete"),
        ([ran("one", 126), ran("two", 1)], "failed"),
        ([ran("one", 0)], "incomplete"),
        ([], "incomplete"),
        ([ran("one", 0), denied("two")], "not_permitted"),
        ([denied("one"), denied("two")], "not_permitted"),
        ([denied("one"), ran("two", 1)], "failed"),
        ([denied("one"), ran("two", 127)], "not_permitted"),
    ],
)
def test_a_verdict_is_read_from_exit_codes(runs: list[CheckRun], verdict: Verdict) -> None:
    assert verdict_of(CHECKS, runs) == verdict


@dataclass
class Desk:
    """A coordinator's run, its state folded from what the tools record."""

    root: Path
    workers: Mapping[str, Worker]
    state: Coordination = NOT_BEGUN
    settings: CoordinatorSettings = field(default_factory=CoordinatorSettings)

    def __post_init__(self) -> None:
        self.stage = Stage(self.root, FunctionSpawn(self.workers))
        self.tools: Mapping[str, Tool] = coordinator_tools(self.stage.find, self.settings)

    def context(self, call_id: str) -> ToolContext:
        def record(event: Event) -> None:
            self.stage.events.append(event)
            self.state = self.state.after(event)

        return replace(self.stage.context(), call_id=call_id, record=record, coordination=lambda: self.state)

    def use(self, name: str, call_id: str = "call1", /, **arguments: object) -> ToolOutput:
        async def main() -> ToolOutput:
            async with asyncio.timeout(5):
                return await self.tools[name].run(arguments, self.context(call_id))

        return asyncio.run(main())

    @property
    def tasks(self) -> list[Task]:
        return self.stage.spawn.tasks


def done(_task: Task) -> Result:
    return Result("success", summary_data={"done": True})


PEOPLE: Mapping[str, Worker] = {"explorer": done, "general": done, "coder": done, "verifier": done}


@pytest.mark.parametrize(
    ("tasks", "words"),
    [
        (None, "must be a list"),
        ([], "must be a list"),
        ([{"agent": "explorer"}], "tasks[0].question must be text"),
        ([{"agent": "nobody", "question": "What is in src/?"}], "tasks[0].agent: unknown agent"),
        ([{"agent": "verifier", "question": "What is in src/?"}], "choose another agent"),
        ([{"question": f"What is in src/{n}?"} for n in range(13)], "13 questions; at most 12"),
        ([{"question": "Summarise the text above."}], "not self-contained"),
        ([{"question": "What is in src/?", "inputs": ["/no/such"]}], "is not an artifact"),
    ],
)
def test_research_that_cannot_be_done_is_refused_before_anybody_begins(
    tmp_path: Path, tasks: object, words: str
) -> None:
    desk = Desk(tmp_path, PEOPLE)
    with pytest.raises(ToolFailed) as refusal:
        desk.use("research", tasks=tasks)
    assert words in str(refusal.value)
    assert desk.tasks == []
    assert desk.state == NOT_BEGUN


@pytest.mark.parametrize(
    "tasks",
    [
        '[{"question": "What is in src/?"}]',
        {"question": "What is in src/?"},
        ["What is in src/?"],
        "What is in src/?",
        {"tasks": [{"agent": "Explorer ", "question": "What is in src/?"}]},
    ],
)
def test_questions_are_read_as_models_write_them(tmp_path: Path, tasks: object) -> None:
    """D4; who is to find out may be left out."""
    desk = Desk(tmp_path, PEOPLE)
    assert desk.use("research", tasks=tasks).ok
    assert [(task.agent, task.text, task.key) for task in desk.tasks] == [
        ("explorer", "What is in src/?", "research:1")
    ]
    assert desk.state.phase == "synthesis"


@pytest.mark.parametrize(
    ("checks", "words"),
    [
        (None, "must be a list"),
        ([], "must be a list"),
        ([{"why": "x"}], "checks[0].command must be a command line"),
        ([{"command": "  "}], "checks[0].command must be a command line"),
        ([{"command": "a"}, {"command": " a "}], "stands twice"),
        ([{"command": "x" * 4_001}], "at most 4000 characters"),
        ([{"command": "a\0b"}], "no NUL"),
        ([{"command": "echo \ud83d"}], "no half of one"),
        ([{"command": f"test {n}"} for n in range(21)], "21 commands; at most 20"),
    ],
)
def test_checks_that_cannot_be_run_are_refused(tmp_path: Path, checks: object, words: str) -> None:
    desk = Desk(tmp_path, PEOPLE, Coordination(phase="verification", begun=True, rounds=3))
    with pytest.raises(ToolFailed) as refusal:
        desk.use("verify", checks=checks)
    assert words in str(refusal.value)
    assert desk.tasks == []


@pytest.mark.parametrize(
    ("checks", "commands"),
    [
        (["one [exit code 0]"], ["one"]),
        (["one", "one [exit code 0]", "two\n[exit code -9]"], ["one", "two"]),
        (["echo '[exit code 0]' end"], ["echo '[exit code 0]' end"]),
    ],
)
def test_a_receipt_that_was_copied_along_is_no_part_of_a_command(
    tmp_path: Path, checks: list[str], commands: list[str]
) -> None:
    """H1: a small model that was shown `[exit code 0]` behind a command repeats both."""
    desk = Desk(tmp_path, PEOPLE, Coordination(phase="verification", begun=True, round=1, rounds=3))
    desk.use("verify", checks=checks)
    assert [check.command for check in desk.tasks[0].checks] == commands


def test_a_verifier_is_given_the_newest_of_each_file_and_time_for_its_commands(tmp_path: Path) -> None:
    desk = Desk(tmp_path, PEOPLE)
    first = desk.stage.delivered_by_a_child("a.py", "x = 1")
    second = desk.stage.delivered_by_a_child("a.py", "x = 2")
    other = desk.stage.delivered_by_a_child("b.py", "y = 1")
    desk.state = Coordination(phase="verification", begun=True, rounds=3, delivered=(first, other, second))
    desk.use("verify", checks=["one", {"command": "two", "why": "x"}])
    task = desk.tasks[0]
    assert task.agent == "verifier"
    assert task.inputs == (other, second)
    assert [check.command for check in task.checks] == ["one", "two"]
    assert task.limits.timeout_s is not None
    assert task.limits.timeout_s > 2 * desk.settings.check_timeout_s


def test_one_task_whose_input_has_vanished_fails_alone(tmp_path: Path) -> None:
    desk = Desk(tmp_path, PEOPLE)
    pointer = desk.stage.delivered_by_a_child("spec.md")
    Path(pointer.path).chmod(0o600)
    Path(pointer.path).write_text("something else", "utf-8")
    plan = (
        PlannedTask("a", "coder", "Write a.py from the specification.", inputs=(pointer.path,)),
        PlannedTask("b", "coder", "Write b.py with the constant X."),
    )
    desk.state = Coordination(phase="implementation", begun=True, rounds=3, plan=plan)
    output = desk.use("implement")
    assert output.ok
    assert [task.key for task in desk.tasks] == ["task:b"]
    ends = {e.part: e.outcome for e in desk.stage.events if isinstance(e, PhaseChanged) and e.part}
    assert ends == {"a": "error", "b": "success"}


def test_files_that_were_not_announced_and_those_that_did_not_come_are_noted(tmp_path: Path) -> None:
    stage = Stage(tmp_path, FunctionSpawn({}))
    one = stage.delivered_by_a_child("same.py", "x = 1")
    other = stage.delivered_by_a_child("same.py", "x = 2")
    results = {"a": one, "b": other}

    def coder(task: Task) -> Result:
        pointer = results[task.key.removeprefix("task:")]
        return Result("success", summary_data={"done": True}, pointers={"file": pointer})

    plan = tuple(
        PlannedTask(name, "coder", f"Write {name}.py with the constant X.", writes=(f"{name}.py",))
        for name in ("a", "b")
    )
    desk = Desk(
        tmp_path, {"coder": coder}, Coordination(phase="implementation", begun=True, rounds=3, plan=plan)
    )
    text = desk.use("implement").content
    assert "a did not deliver a.py" in text
    assert "a and b both delivered same.py; the later one counts" in text


def test_the_same_call_after_a_crash_records_nothing_twice(tmp_path: Path) -> None:
    """K6: the second run of a call finds what the first had recorded."""
    desk = Desk(tmp_path, PEOPLE)
    first = desk.use("research", tasks=["What is in src/?"])
    recorded = list(desk.stage.events)
    again = desk.use("research", tasks=["What is in src/?"])
    assert desk.stage.events == recorded
    assert again == first
    with pytest.raises(ToolFailed, match="does not belong here"):
        desk.use("research", "call2", tasks=["What is in src/?"])


def test_only_children_of_the_plan_count_as_its_tasks() -> None:
    """A child that was spawned beside the phases is none of the plan's, whatever its key."""
    plan = (PlannedTask("a", "coder", "x"),)
    state = Coordination(phase="implementation", begun=True, rounds=3, plan=plan)
    state = state.after(PhaseChanged("implementation", 1, 3, "call1", total=1))
    for call_id, run_id in (("spawned", "c1"), ("call1", "c2")):
        task = Task("coder", "x", "spawn", key=planned_key("a"))
        state = state.after(ChildSpawned(call_id, run_id, "s", "t", task))
    beside = state.after(ChildEnded("c1", Result("success")))
    assert beside.undone == ("a",)
    assert beside.after(ChildEnded("c2", Result("success"))).undone == ()
