"""Plans of a coordinator: what is accepted, and that every fault says what to mend (SPEC H5)."""

import asyncio
import itertools
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patterns.children_for_patterns import FunctionSpawn, Stage, Worker
from xclaw.contracts.coordination import Coordination
from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.events import PhaseChanged
from xclaw.contracts.plans import PlannedTask
from xclaw.contracts.results import Result
from xclaw.contracts.tasks import Task
from xclaw.contracts.tools import ToolContext
from xclaw.patterns.coordinator.graph import ancestors, conflicts, find_cycle, normalised
from xclaw.patterns.coordinator.reports import nothing_kept
from xclaw.patterns.coordinator.settings import CoordinatorSettings
from xclaw.patterns.coordinator.write_plan import WritePlanTool

SYNTHESIS = Coordination(phase="synthesis", begun=True, rounds=3)


def task(task_id: object, **fields: object) -> dict[str, object]:
    return {
        "id": task_id,
        "agent": "coder",
        "task": f"Write the module {task_id}.py with the constant X.",
        "writes": [f"{task_id}.py"],
        "depends_on": [],
        **fields,
    }


def _done(_task: Task) -> str:
    return "done"


class Desk:
    """A coordinator that is about to plan."""

    def __init__(self, root: Path, state: Coordination = SYNTHESIS) -> None:
        workers: dict[str, Worker] = dict.fromkeys(["coder", "writer", "verifier"], _done)
        self.stage = Stage(root, FunctionSpawn(workers))
        self.state = state

    @property
    def context(self) -> ToolContext:
        return replace(self.stage.context(), coordination=lambda: self.state)

    def plan(self, plan: object) -> tuple[PlannedTask, ...]:
        """The plan as it was accepted. Raises `ToolFailed`."""
        tool = WritePlanTool(self.stage.find, CoordinatorSettings(), nothing_kept)

        async def main() -> None:
            output = await tool.run({"plan": plan}, self.context)
            assert output.ok

        asyncio.run(main())
        [changed] = [event for event in self.stage.events if isinstance(event, PhaseChanged)]
        return changed.plan


def refused(root: Path, plan: object, state: Coordination = SYNTHESIS) -> str:
    desk = Desk(root, state)
    with pytest.raises(ToolFailed) as failure:
        desk.plan(plan)
    assert not any(isinstance(event, PhaseChanged) for event in desk.stage.events)
    assert desk.stage.spawn.tasks == [], "nobody began"
    return str(failure.value)


def test_a_cycle_is_named_in_its_order(tmp_path: Path) -> None:
    plan = [task("a", depends_on=["c"]), task("b", depends_on=["a"]), task("c", depends_on=["b"])]
    text = refused(tmp_path, plan)
    assert "a -> c -> b -> a" in text
    assert "take one of the dependencies out" in text


def test_a_task_that_waits_for_itself_is_a_cycle(tmp_path: Path) -> None:
    assert "a -> a" in refused(tmp_path, [task("a", depends_on=["a"])])


def test_an_unknown_dependency_is_named_with_the_ids_there_are(tmp_path: Path) -> None:
    text = refused(tmp_path, [task("a"), task("b", depends_on=["core"])])
    assert "task b depends on 'core', which is no task" in text
    assert "a, b" in text


def test_a_dependency_may_be_a_task_of_an_earlier_round_that_was_done(tmp_path: Path) -> None:
    done = {"core": Result("success"), "docs": Result("error")}
    state = replace(SYNTHESIS, phase="implementation", round=2, results=done)
    [accepted] = Desk(tmp_path, state).plan([task("mend", depends_on=["core"])])
    assert accepted.depends_on == ("core",)
    assert "'docs', which is no task" in refused(tmp_path, [task("mend", depends_on=["docs"])], state)


def test_an_id_that_stands_twice_is_refused(tmp_path: Path) -> None:
    text = refused(tmp_path, [task("a"), task("a", writes=["b.py"])])
    assert "'a' stands 2 times" in text


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (["a.py"], ["a.py"]),
        (["a.py"], ["./a.py"]),
        (["src/a.py"], ["src//x/../a.py"]),
        (["src"], ["src/a.py"]),
        (["src/a.py"], ["src/"]),
        (["."], ["anything.md"]),
        (["README.md"], ["readme.md"]),
        (["caf\u00e9.md"], ["cafe\u0301.md"]),
        (["\u0390.md"], ["\u03aa\u0301.md"]),
        (["src\\a.py"], ["src/a.py"]),
        (["/repo/a.py"], ["/repo//a.py"]),
        (["a.py", "b.py"], ["c.py", "b.py"]),
    ],
)
def test_two_tasks_that_may_run_at_once_may_not_write_one_place(
    tmp_path: Path, first: list[str], second: list[str]
) -> None:
    """H5: seen before they run, however the place is spelled."""
    plan = [task("one", writes=first), task("two", writes=second)]
    text = refused(tmp_path, plan)
    assert "one and two may run at once and both write" in text
    ordered = [task("one", writes=first), task("two", writes=second, depends_on=["one"])]
    assert len(Desk(tmp_path / "ordered").plan(ordered)) == 2


def test_an_order_over_a_third_task_is_an_order_too(tmp_path: Path) -> None:
    plan = [
        task("one", writes=["a.py"]),
        task("two", depends_on=["one"]),
        task("three", writes=["a.py"], depends_on=["two"]),
    ]
    assert len(Desk(tmp_path).plan(plan)) == 3


@pytest.mark.parametrize("place", ["src/*.py", "a?.py", "../a.py", "..", "a\nb.py", " "])
def test_a_place_that_names_no_file_is_refused(tmp_path: Path, place: str) -> None:
    if place.strip():
        assert "plan[0].writes" in refused(tmp_path, [task("a", writes=[place])])
    else:
        assert Desk(tmp_path).plan([task("a", writes=[place])])[0].writes == ()


def test_a_thousand_tasks_are_refused_at_once(tmp_path: Path) -> None:
    text = refused(tmp_path, [task(f"t{n}") for n in range(1_000)])
    assert "the plan has 1000 tasks; at most 40" in text


def test_every_fault_is_in_one_answer(tmp_path: Path) -> None:
    text = refused(
        tmp_path,
        [
            task("a", agent="nobody"),
            task("", task=""),
            task("c", writes=["*.py"]),
            "just text",
            task("e", agent="verifier"),
        ],
    )
    for part in (
        "plan[0].agent",
        "plan[1].id",
        "plan[1].task",
        "plan[2].writes",
        "plan[3] must be an object",
        "verifier only checks what others made",
    ):
        assert part in text
    assert "send the whole plan again" in text


def test_a_task_that_points_at_what_its_worker_cannot_see_is_refused(tmp_path: Path) -> None:
    """E6."""
    assert "task a is not self-contained" in refused(tmp_path, [task("a", task="Review the code above.")])


def test_an_input_is_an_artifact_or_a_file_of_a_task_before(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    pointer = desk.stage.delivered_by_a_child("spec.md")
    plan = [
        task("a", inputs=[pointer.path]),
        task("b", inputs=["a.py"], depends_on=["a"]),
    ]
    a, b = desk.plan(plan)
    assert a.inputs == (pointer.path,)
    assert b.inputs == (), "it comes with the result of the task before"
    text = refused(tmp_path / "other", [task("a"), task("b", inputs=["a.py"])])
    assert "task b: the input 'a.py' is no artifact" in text
    assert "add the dependency" in text


def test_an_artifact_that_the_coordinator_was_not_given_is_no_input(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    pointer = desk.stage.delivered_by_a_child("secret.md", granted=False)
    with pytest.raises(ToolFailed, match="is no artifact that you were given"):
        desk.plan([task("a", inputs=[pointer.path])])


@pytest.mark.parametrize(
    "written",
    [
        json.dumps([task("a"), task("b", depends_on=["a"])]),
        f"```json\n{json.dumps([task('a'), task('b', depends_on='a')])}\n```",
        {"tasks": [task("a"), task("b", depends_on=["a"])]},
        [json.dumps(task("a")), task("b", depends_on='["a"]')],
    ],
)
def test_a_plan_is_read_as_models_write_it(tmp_path: Path, written: object) -> None:
    """D4."""
    a, b = Desk(tmp_path).plan(written)
    assert (a.id, b.id, b.depends_on) == ("a", "b", ("a",))


@pytest.mark.parametrize("written", [None, "", [], "{", 7, {"tasks": []}])
def test_what_is_no_plan_is_refused_with_an_example(tmp_path: Path, written: object) -> None:
    assert '"depends_on": ["core"]' in refused(tmp_path, written)


EDGES = st.integers(1, 8).flatmap(
    lambda n: st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=16).map(
        lambda pairs: {str(i): sorted({str(b) for a, b in pairs if a == i}) for i in range(n)}
    )
)


@given(EDGES)
def test_a_graph_has_a_cycle_or_an_order(edges: dict[str, list[str]]) -> None:
    cycle = find_cycle(edges)
    if cycle:
        assert cycle[0] == cycle[-1]
        assert all(after in edges[before] for before, after in itertools.pairwise(cycle))
        return
    before = ancestors(edges)
    assert all(name not in before[name] for name in edges)
    for name, direct in edges.items():
        assert before[name] == set(direct).union(*(before[each] for each in direct))


@given(EDGES, st.lists(st.sampled_from(["a", "b", "a/c"]), min_size=8, max_size=8))
def test_only_tasks_in_an_order_share_a_place(edges: dict[str, list[str]], places: list[str]) -> None:
    if find_cycle(edges):
        return
    tasks = [PlannedTask(name, "coder", "x", writes=(places[int(name)],)) for name in edges]
    found = {(one, other) for one, other, _ in conflicts(tasks, edges)}
    before = ancestors(edges)
    for index, one in enumerate(tasks):
        for other in tasks[index + 1 :]:
            in_order = one.id in before[other.id] or other.id in before[one.id]
            shared = one.writes[0][0] == other.writes[0][0]
            assert ((one.id, other.id) in found) == (shared and not in_order)


def test_a_path_has_one_spelling() -> None:
    assert {normalised(path) for path in ("a/b.py", "./a/b.py", "a//b.py", "a/x/../b.py", " a/b.py ")} == {
        "a/b.py"
    }
    assert normalised("//repo/a.py") == "/repo/a.py"
