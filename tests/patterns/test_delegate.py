"""delegate: one task to one specialist."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest
from children_for_patterns import FunctionSpawn, Stage, Worker

from xclaw.contracts.artifacts import Pointer
from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.results import Outcome, Result
from xclaw.contracts.tools import ToolOutput
from xclaw.patterns.delegate import DelegateTool


def delegate(stage: Stage, **arguments: object) -> ToolOutput:
    return asyncio.run(DelegateTool(stage.find).run(arguments, stage.context()))


def record_of(output: ToolOutput) -> dict[str, object]:
    return cast("dict[str, object]", json.loads(output.content))


def stage_with(root: Path, worker: Worker = lambda task: f"did {task.text}") -> Stage:
    return Stage(root, FunctionSpawn({"coder": worker, "reviewer": worker}))


def test_a_result_comes_back_as_a_small_record_with_paths_instead_of_contents(tmp_path: Path) -> None:
    """SPEC E1, E3."""
    pointer = Pointer("/w/shared/a1b2c3/jwt.ts", "0" * 64, 10, "coder")
    result = Result("success", "ignored", {"exports": ["sign"]}, {"source": pointer})
    output = delegate(stage_with(tmp_path, lambda _: result), agent="coder", task="Write jwt.ts")
    assert output.ok
    assert record_of(output) == {
        "status": "success",
        "outcome": "success",
        "summary_data": {"exports": ["sign"]},
        "artifact_pointers": {"source": "/w/shared/a1b2c3/jwt.ts"},
    }


@pytest.mark.parametrize("outcome", ["error", "timeout", "exhausted", "stuck", "over_budget", "cancelled"])
def test_a_child_that_did_not_succeed_is_an_error_with_its_reason_and_what_it_had(
    tmp_path: Path, outcome: Outcome
) -> None:
    """R01: the parent never sees a success that was none."""
    result = Result(outcome, "half", None, reason="provider answered 500")
    output = delegate(stage_with(tmp_path, lambda _: result), agent="coder", task="Write jwt.ts")
    record = record_of(output)
    assert not output.ok
    assert (record["status"], record["outcome"]) == ("error", outcome)
    assert record["reason"] == "provider answered 500"
    assert record["text"] == "half"


def test_summary_data_is_never_null_on_success(tmp_path: Path) -> None:
    """R01."""
    record = record_of(delegate(stage_with(tmp_path), agent="coder", task="Write jwt.ts"))
    assert record["status"] == "success"
    assert record["summary_data"] == {}
    assert record["structured"] is False
    assert record["text"] == "did Write jwt.ts"


def test_an_unverified_success_says_so(tmp_path: Path) -> None:
    result = Result("completed_unverified", "", {"tests": "pass"}, reason="no tool receipt for: tests")
    record = record_of(delegate(stage_with(tmp_path, lambda _: result), agent="coder", task="Write jwt.ts"))
    assert (record["outcome"], record["reason"]) == ("completed_unverified", "no tool receipt for: tests")


def test_an_unknown_agent_is_an_error_that_lists_the_known_ones(tmp_path: Path) -> None:
    """SPEC D1."""
    stage = stage_with(tmp_path)
    with pytest.raises(ToolFailed, match=r"unknown agent 'ghost'\. Available: coder, reviewer"):
        delegate(stage, agent="ghost", task="Write jwt.ts")
    assert stage.spawn.tasks == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"task": "x"}, "`agent` is missing"),
        ({"agent": "coder"}, "`task` is missing"),
        ({"agent": "coder", "task": "  "}, "`task` is empty"),
        ({"agent": "coder", "task": 5}, "`task` must be text, not 5"),
        ({"agent": ["coder"], "task": "x"}, "`agent` must be text"),
        ({"agent": "coder", "task": "x", "inputs": 3}, "`inputs` must be a list of paths"),
        ({"agent": "coder", "task": "x", "inputs": [3]}, r"inputs\[0\] must be a path, not 3"),
        ({"agent": "coder", "task": "x", "inputs": "[broken"}, "`inputs` must be a list of paths"),
        ({"agent": "coder", "task": "x", "output_schema": "nonsense"}, "must be a JSON Schema"),
        ({"agent": "coder", "task": "x", "output_schema": {"score": "int"}}, '"type": "object"'),
        (
            {"agent": "coder", "task": "x", "output_schema": {"type": "object", "required": 1}},
            "not a JSON Schema",
        ),
        (
            {
                "agent": "coder",
                "task": "x",
                "output_schema": {"type": "object", "properties": {"a": {"$ref": "http://169.254.1.1/"}}},
            },
            "only refer to its own parts",
        ),
    ],
)
def test_malformed_arguments_are_errors_that_say_what_to_do(
    tmp_path: Path, arguments: Mapping[str, object], told: str
) -> None:
    """SPEC D4."""
    stage = stage_with(tmp_path)
    with pytest.raises(ToolFailed, match=told):
        delegate(stage, **arguments)
    assert stage.spawn.tasks == []


def test_a_refused_child_is_an_error_for_the_model(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="no more of this"):
        delegate(stage_with(tmp_path), agent="coder", task="refuse")


@pytest.mark.parametrize(
    "text",
    [
        'return {"a": 1, "b": {x!r:>{w}}} and {',
        "{0} {} %s %(x)s",
        r"C:\Users\alex\new \1 \g<0> $&",
        "{{input}}",
    ],
)
def test_a_task_reaches_the_child_unchanged(tmp_path: Path, text: str) -> None:
    """R05, R06."""
    stage = stage_with(tmp_path)
    delegate(stage, agent="coder", task=text)
    assert [task.text for task in stage.spawn.tasks] == [text]


def test_an_output_schema_travels_as_an_object_also_when_it_came_as_text(tmp_path: Path) -> None:
    """SPEC E4, D4."""
    stage = stage_with(tmp_path)
    schema = {"type": "object", "properties": {"score": {"type": "integer"}}}
    delegate(stage, agent="coder", task="Rate x", output_schema=json.dumps(schema))
    delegate(stage, agent="coder", task="Rate y", output_schema=schema)
    delegate(stage, agent="coder", task="Rate z", output_schema=None)
    assert [task.output_schema for task in stage.spawn.tasks] == [schema, schema, None]


def test_inputs_are_handed_on_from_a_list_a_text_and_an_object_of_pointers(tmp_path: Path) -> None:
    """SPEC E3, D4."""
    stage = stage_with(tmp_path)
    pointer = stage.delivered_by_a_child("report.md")
    for inputs in ([pointer.path], pointer.path, json.dumps([pointer.path]), {"report": pointer.path}):
        delegate(stage, agent="reviewer", task="Review it", inputs=inputs)
    assert [[item.path for item in task.inputs] for task in stage.spawn.tasks] == [[pointer.path]] * 4


@pytest.mark.parametrize(
    "words",
    [
        "Review {path}.",
        "Review `{path}` with care",
        'Review "{path}", then report',
        "审查{path}，重点关注安全性",
        "读取「{path}」并总结",
        "用 view_file 读取{path}并总结要点。",
        "source: {path}\nRead it.",
    ],
)
def test_a_delivered_path_in_the_task_is_handed_on_by_itself(tmp_path: Path, words: str) -> None:
    """SPEC E7: by pointer."""
    stage = stage_with(tmp_path)
    pointer = stage.delivered_by_a_child("report.md")
    delegate(stage, agent="reviewer", task=words.replace("{path}", pointer.path))
    assert [item.path for item in stage.spawn.tasks[0].inputs] == [pointer.path]


def test_a_file_name_with_spaces_is_found_inside_quotation_marks(tmp_path: Path) -> None:
    stage = stage_with(tmp_path)
    pointer = stage.delivered_by_a_child("final report.md")
    delegate(stage, agent="reviewer", task=f'Review "{pointer.path}" now')
    assert [item.path for item in stage.spawn.tasks[0].inputs] == [pointer.path]


def test_an_artifact_that_the_caller_may_not_read_is_not_handed_on(tmp_path: Path) -> None:
    """A5, J1: naming a path gives nobody a right to it."""
    stage = stage_with(tmp_path)
    pointer = stage.delivered_by_a_child("secret.md", granted=False)
    delegate(stage, agent="reviewer", task=f"Review {pointer.path}")
    assert stage.spawn.tasks[0].inputs == ()
    with pytest.raises(ToolFailed, match="is not an artifact that you were given"):
        delegate(stage, agent="reviewer", task="Review the report", inputs=[pointer.path])


def test_a_task_that_points_at_what_the_child_cannot_see_comes_back(tmp_path: Path) -> None:
    """SPEC E6."""
    stage = stage_with(tmp_path)
    with pytest.raises(ToolFailed, match="not self-contained"):
        delegate(stage, agent="coder", task="审查上面的代码")
    assert stage.warnings == ["not_self_contained"]
    assert stage.spawn.tasks == []


def test_a_small_request_handed_out_whole_gets_a_note_and_is_done_all_the_same(tmp_path: Path) -> None:
    stage = stage_with(tmp_path)
    stage.request = "What is the capital of Australia?"
    record = record_of(delegate(stage, agent="coder", task="What is the capital of Australia?"))
    assert record["status"] == "success"
    assert "answered directly" in str(record["note"])
    assert stage.warnings == ["fan_out"]


def test_the_key_of_a_child_is_the_same_in_a_replay(tmp_path: Path) -> None:
    """K6."""
    stage = stage_with(tmp_path)
    delegate(stage, agent="Coder", task="Write x")
    delegate(stage, agent="coder", task="Write x")
    assert {task.key for task in stage.spawn.tasks} == {"coder#0"}


def test_cancelling_the_call_cancels_the_child(tmp_path: Path) -> None:
    """C05."""

    async def main() -> None:
        stage = stage_with(tmp_path, lambda _: asyncio.Event())
        arguments = {"agent": "coder", "task": "Write x"}
        running = asyncio.ensure_future(DelegateTool(stage.find).run(arguments, stage.context()))
        async with asyncio.timeout(5):
            await stage.spawn.started.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        assert stage.spawn.cancelled == ["coder#0"]

    asyncio.run(main())


def test_the_roster_is_told_to_the_model(tmp_path: Path) -> None:
    description = DelegateTool(stage_with(tmp_path).find, {"规划师": "plans {x}"}).spec.description
    assert description.endswith("- 规划师: plans {x}")
