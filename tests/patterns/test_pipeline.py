"""pipeline: a fixed line of steps."""

import asyncio
import json
from pathlib import Path

import pytest
from children_for_patterns import FunctionSpawn, Stage, Worker

from xclaw.contracts.artifacts import Pointer
from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.events import ArtifactDelivered
from xclaw.contracts.results import Result
from xclaw.contracts.tools import ToolOutput
from xclaw.patterns.pipeline import INLINE_CHARACTERS, PipelineTool


def pipeline(stage: Stage, steps: object) -> ToolOutput:
    return asyncio.run(PipelineTool(stage.find).run({"steps": steps}, stage.context()))


def stage_with(root: Path, first: Worker, last: Worker = lambda task: f"<{task.text}>") -> Stage:
    return Stage(root, FunctionSpawn({"first": first, "last": last}))


def steps_of(*tasks: str) -> list[dict[str, str]]:
    names = ["first", *["last"] * (len(tasks) - 1)]
    return [{"agent": name, "task": task} for name, task in zip(names, tasks, strict=True)]


def test_each_output_replaces_the_placeholder_in_the_next_task(tmp_path: Path) -> None:
    """SPEC D3; the first step's is empty."""
    stage = stage_with(tmp_path, lambda task: "one")
    output = pipeline(stage, steps_of("start{{input}}.", "a {{input}} b {{input}}", "c {{input}}"))
    assert [task.text for task in stage.spawn.tasks] == ["start.", "a one b one", "c <a one b one>"]
    assert output == ToolOutput("<c <a one b one>>")
    assert [(task.key, task.step, task.structured) for task in stage.spawn.tasks] == [
        ("step0", 0, False),
        ("step1", 1, False),
        ("step2", 2, False),
    ]


def test_what_comes_in_with_an_output_is_never_expanded_again(tmp_path: Path) -> None:
    """R04."""
    hostile = "please print {{task}} and {{input}} and {{env:HOME}}"
    stage = stage_with(tmp_path, lambda _: hostile)
    pipeline(stage, steps_of("start", "Review: {{input}} / twice {{input}}"))
    assert stage.spawn.tasks[1].text == f"Review: {hostile} / twice {hostile}"


@pytest.mark.parametrize(
    "text",
    [
        r"C:\Users\alex\new",
        r"\1",
        r"\g<0>",
        "$&",
        "$1",
        r"\\n",
        "a\\",
        "{{input",
        "{0}",
        "{}",
        'return {"a": 1, "b": {x!r:>{w}}} and {',
        "%s %(x)s",
        "\u0000中文\ud83d\ude00",
    ],
)
def test_the_next_step_sees_an_output_unchanged(tmp_path: Path, text: str) -> None:
    """R05, R06."""
    stage = stage_with(tmp_path, lambda _: text)
    pipeline(stage, steps_of("start", "{{input}}"))
    assert stage.spawn.tasks[1].text == text


def test_a_failing_step_stops_the_line_and_what_came_before_is_kept(tmp_path: Path) -> None:
    """SPEC D3."""
    pointer = Pointer("/w/shared/a1b2c3/data.json", "0" * 64, 1, "first")
    stage = stage_with(
        tmp_path,
        lambda _: Result("success", "x" * 5_000, pointers={"data": pointer}),
        lambda _: Result("timeout", "half", reason="60 s are over"),
    )
    output = pipeline(stage, steps_of("start", "a {{input}}", "b {{input}}"))
    assert not output.ok
    assert output.content.startswith("pipeline stopped at step 2 of 3 (last): timeout: 60 s are over")
    assert "What it had so far:\nhalf" in output.content
    assert "[step 1: first] finished\n" + "x" * 2_000 + " [... 3000 more characters]" in output.content
    assert "- step1:data: /w/shared/a1b2c3/data.json" in output.content
    assert len(stage.spawn.tasks) == 2


@pytest.mark.parametrize("failure", [RuntimeError("boom"), Result("success", "  ")])
def test_a_step_that_crashes_or_answers_nothing_stops_the_line(
    tmp_path: Path, failure: Result | Exception
) -> None:
    """R01."""
    stage = stage_with(tmp_path, lambda _: failure)
    output = pipeline(stage, steps_of("start", "a {{input}}"))
    assert not output.ok
    assert output.content.startswith("pipeline stopped at step 1 of 2 (first): ")
    assert len(stage.spawn.tasks) == 1


def test_an_unknown_agent_in_any_step_is_refused_before_anything_starts(tmp_path: Path) -> None:
    stage = stage_with(tmp_path, lambda _: "x")
    steps = [*steps_of("start"), {"agent": "ghost", "task": "a {{input}}"}]
    with pytest.raises(ToolFailed, match=r"steps\[1\]: unknown agent 'ghost'. Available: first, last"):
        pipeline(stage, steps)
    assert stage.spawn.tasks == []


def test_artifacts_of_a_step_are_readable_for_the_next_and_listed_at_the_end(tmp_path: Path) -> None:
    """SPEC E3."""
    pointer = Pointer("/w/shared/a1b2c3/data.json", "0" * 64, 1, "first")
    stage = stage_with(tmp_path, lambda _: Result("success", "see data", pointers={"data": pointer}))
    output = pipeline(stage, steps_of("start", "a {{input}}"))
    assert stage.spawn.tasks[1].inputs == (pointer,)
    assert output.content == "<a see data>\n\nartifact_pointers:\n- step1:data: /w/shared/a1b2c3/data.json"


def test_an_output_too_long_to_travel_goes_to_the_next_step_as_a_file(tmp_path: Path) -> None:
    """SPEC E2."""
    long = "长" * (INLINE_CHARACTERS + 1)
    stage = stage_with(tmp_path, lambda _: long, lambda _: "done")
    pipeline(stage, steps_of("start", "a {{input}}"))
    task = stage.spawn.tasks[1]
    (pointer,) = task.inputs
    assert len(task.text) < 5_000
    assert pointer.path in task.text
    assert Path(pointer.path).read_text("utf-8") == long
    assert [event.pointer for event in stage.events if isinstance(event, ArtifactDelivered)] == [pointer]


def test_a_later_step_without_the_placeholder_gets_a_note(tmp_path: Path) -> None:
    stage = stage_with(tmp_path, lambda _: "x")
    output = pipeline(stage, steps_of("start", "Write a poem on rain"))
    assert output.ok
    assert output.content.startswith("<Write a poem on rain>\n\n(note: step 2 does not use {{input}}")
    assert stage.warnings == ["fan_out"]


@pytest.mark.parametrize(
    "spelled",
    [
        json.dumps(steps_of("start", "a {{input}}")),
        str(steps_of("start", "a {{input}}")),
        f"```json\n{json.dumps(steps_of('start', 'a {{input}}'))}\n```",
        json.dumps(json.dumps(steps_of("start", "a {{input}}"))),
        {"steps": steps_of("start", "a {{input}}")},
        [json.dumps(step) for step in steps_of("start", "a {{input}}")],
        [{"worker": "first", "prompt": "start"}, {"role": "last", "instructions": "a {{input}}"}],
        '[{"agent": "first", "task": "start"}, {"agent": "last", "task": "a {{input}}"},]',
    ],
)
def test_steps_may_come_in_many_spellings(tmp_path: Path, spelled: object) -> None:
    """SPEC D4."""
    stage = stage_with(tmp_path, lambda _: "one")
    assert pipeline(stage, spelled).content == "<a one>"


def test_a_raw_line_break_inside_a_json_string_is_taken(tmp_path: Path) -> None:
    """D4."""
    stage = stage_with(tmp_path, lambda _: "one")
    pipeline(stage, '[{"agent": "first", "task": "line one\nline two"}]')
    assert stage.spawn.tasks[0].text == "line one\nline two"


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        (None, "`steps` is missing"),
        ([], "`steps` is empty"),
        (5, "`steps` must be a list of {agent, task} objects, not 5"),
        ("run it", "`steps` must be a list"),
        ('[{"agent": "first", ', "`steps` must be a list"),
        (["first"], r"steps\[0\] must be an object"),
        ([{"agent": "first"}], r"steps\[0\].task must be text, not nothing"),
        ([{"task": "x"}], r"steps\[0\].agent must be text, not nothing"),
        ([{"agent": "first", "task": {"a": 1}}], r"steps\[0\].task must be text"),
        ([{"agent": "first", "task": "x"}] * 21, "at most 20"),
        ([{"agent": "first", "task": "审查上面的代码"}], r"steps\[0\].task is not self-contained"),
        ("__import__('os').system('touch /tmp/xclaw-pwned')", "`steps` must be a list"),
    ],
)
def test_malformed_steps_are_errors_that_say_what_to_do(tmp_path: Path, steps: object, told: str) -> None:
    """SPEC D4."""
    stage = stage_with(tmp_path, lambda _: "x")
    with pytest.raises(ToolFailed, match=told):
        pipeline(stage, steps)
    assert stage.spawn.tasks == []
    assert not Path("/tmp/xclaw-pwned").exists()


def test_words_about_the_input_count_as_content_when_there_is_one(tmp_path: Path) -> None:
    """SPEC E6: `{{input}}` is what "this text" means."""
    stage = stage_with(tmp_path, lambda _: "text")
    assert pipeline(stage, steps_of("start", "Translate this text into French. {{input}}")).ok
