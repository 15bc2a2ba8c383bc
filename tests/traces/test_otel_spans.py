"""Entries as spans for OpenTelemetry: names, parents, times, and what stays at home."""

from dataclasses import replace

import pytest
from recorded_runs import Recording, answered, ended, entries_of, failed, spawned, started, turn

from xclaw.contracts.events import (
    Compacted,
    Entry,
    Event,
    MessageAdded,
    RunResumed,
    ToolCallEnded,
    ToolCallStarted,
)
from xclaw.contracts.usage import Usage
from xclaw.testing.sample_events import sample_events
from xclaw.traces.otel_ids import TraceParent, call_span_id, parse_traceparent, run_span_id, trace_id_of
from xclaw.traces.otel_spans import SpanRecord, span_records
from xclaw.traces.spending import own_spend


def named(records: list[SpanRecord], name: str) -> SpanRecord:
    (record,) = [record for record in records if record.name == name]
    return record


def family() -> list[Entry]:
    """A root whose tool call spawned a child; its first model failed."""
    recording = Recording()
    recording.record(
        "root",
        started("orchestrator"),
        turn(1, "openai:big"),
        failed(1, Usage(30, 2), 0.3, "openai:big", "mistral:small"),
        answered(1, Usage(30, 4, 10), 0.4, "mistral:small"),
        ToolCallStarted("call-1", "delegate", '{"secret": 1}'),
        spawned("child", "coder"),
    )
    recording.record(
        "child",
        replace(started("coder", 1), parent_call_id="call-1"),
        turn(1),
        answered(1, Usage(7, 3), None),
        ended("error"),
        parent="root",
    )
    recording.record("root", ToolCallEnded("call-1", "delegate", True, "done", 5.0), ended())
    return recording.entries


def test_a_child_stands_under_the_tool_call_that_spawned_it_in_one_trace() -> None:
    """K5: one trace id per root."""
    records = span_records(family())
    root, child = named(records, "invoke_agent orchestrator"), named(records, "invoke_agent coder")
    tool = named(records, "execute_tool delegate")
    assert {record.trace_id for record in records} == {trace_id_of("root")}
    assert root.parent_id is None
    assert (tool.parent_id, child.parent_id) == (root.span_id, tool.span_id)
    assert named(records, "chat 1").parent_id == child.span_id
    assert named(records, "chat small").parent_id == root.span_id
    assert len({record.span_id for record in records}) == len(records) == 6


def test_the_same_entries_give_the_same_ids_again() -> None:
    assert span_records(family()) == span_records(reversed(family()))


def test_times_are_those_of_the_journal() -> None:
    records = span_records(family())
    root, tool = named(records, "invoke_agent orchestrator"), named(records, "execute_tool delegate")
    assert (root.start_ns, root.end_ns) == (1_000_000_000_000, 1_011_000_000_000)
    assert (tool.start_ns, tool.end_ns) == (1_004_000_000_000, 1_009_000_000_000)
    assert all(record.start_ns <= record.end_ns for record in records)


def test_each_token_stands_on_one_span_only() -> None:
    """U01, U03: failed attempts and compactions too, and agents' sums under another name."""
    entries = entries_of(
        [
            started("coder"),
            turn(1, "a:1"),
            failed(1, Usage(30, 2), 0.3, "a:1", "b:1"),
            answered(1, Usage(40, 5), 0.4, "b:1"),
            Compacted(1, "short", 100, 10, Usage(50, 6), 0.5),
            ended(),
        ]
    )
    records = span_records(entries)
    spend = own_spend(entries)
    for name, total in (
        ("input_tokens", spend.usage.input_tokens),
        ("output_tokens", spend.usage.output_tokens),
    ):
        found = [record.attributes.get(f"gen_ai.usage.{name}", 0) for record in records]
        assert sum(number for number in found if isinstance(number, int)) == total
    (run,) = [record for record in records if record.name.startswith("invoke_agent")]
    assert run.attributes["gen_ai.aggregated_usage.input_tokens"] == 120
    assert run.attributes["xclaw.total_cost_usd"] == pytest.approx(1.2)
    assert named(records, "chat").attributes["xclaw.compaction"] is True


def test_an_unknown_cost_is_absent_and_never_zero() -> None:
    records = span_records(family())
    assert "xclaw.cost_usd" not in named(records, "chat 1").attributes
    assert "xclaw.total_cost_usd" not in named(records, "invoke_agent orchestrator").attributes
    assert named(records, "chat small").attributes["xclaw.cost_usd"] == 0.4


def test_what_failed_says_so_with_a_type_of_few_values() -> None:
    records = span_records(family())
    attempt, child = named(records, "chat big"), named(records, "invoke_agent coder")
    assert (attempt.failed, attempt.attributes["error.type"]) == (True, "500")
    assert (child.failed, child.attributes["error.type"]) == (True, "error")
    assert "error.type" not in named(records, "chat small").attributes
    vague = replace(
        failed(1, Usage(), None, "a:1", None), status=None, error="connection refused by 10.0.0.1"
    )
    records = span_records(entries_of([started("coder"), turn(1), vague, ended("error")]))
    assert named(records, "chat 1").attributes["error.type"] == "_OTHER"


def test_what_was_said_stays_at_home_unless_it_is_asked_for() -> None:
    """K5: contents are off by default, error texts included, since providers quote prompts in them."""
    known = str([(record.name, record.attributes, record.error) for record in span_records(family())])
    for content in (
        "input of",
        "answer 1",
        "raw 1",
        "secret",
        "done",
        "half a te",
        "be good",
        "broke",
        "because",
    ):
        assert content not in known
    records = span_records(family(), include_content=True)
    root, tool = (
        named(records, "invoke_agent orchestrator").attributes,
        named(records, "execute_tool delegate"),
    )
    assert (root["input.value"], root["output.value"]) == ("input of orchestrator", "the end")
    assert root["gen_ai.system_instructions"] == '[{"type": "text", "content": "be good"}]'
    assert tool.attributes["gen_ai.tool.call.arguments"] == '{"secret": 1}'
    assert tool.attributes["gen_ai.tool.call.result"] == "done"
    chat = named(records, "chat small").attributes
    assert chat["gen_ai.input.messages"] == (
        '[{"role": "user", "parts": [{"type": "text", "content": "input of orchestrator"}]}]'
    )
    assert '"content": "answer 1"' in str(chat["gen_ai.output.messages"])
    assert "input.value" not in named(records, "invoke_agent coder").attributes
    assert named(records, "chat big").error == "broke"


def test_a_prompt_after_a_compaction_holds_the_summary_instead() -> None:
    events: list[Event] = [
        started("coder"),
        turn(1),
        answered(1, Usage(1, 1)),
        MessageAdded("go on", "user"),
        Compacted(2, "in short", 9, 3),
        turn(2, "m:2"),
        answered(2, Usage(1, 1), model="m:2"),
        ended(),
    ]
    prompt = str(
        named(span_records(entries_of(events), include_content=True), "chat 2").attributes[
            "gen_ai.input.messages"
        ]
    )
    assert "in short" in prompt
    assert "go on" in prompt
    assert "input of coder" not in prompt


def test_what_is_exported_is_bounded_and_can_be_encoded() -> None:
    huge = "x" * 1_000_000 + "\ud800"
    first: Event = replace(started("coder"), input=huge, agent="a\ud800" * 500)
    events: list[Event] = [first, turn(1)]
    for number in range(1, 20):
        events += [
            answered(number, Usage(10**30, -5)),
            ToolCallStarted(f"c{number}", huge, huge),
            ToolCallEnded(f"c{number}", huge, False, huge, 0.1),
            turn(number + 1),
        ]
    for record in span_records(entries_of(events), include_content=True):
        assert len(record.name) < 300
        for value in (*record.attributes.values(), record.error):
            if isinstance(value, str):
                assert len(value.encode()) < 150_000
            elif isinstance(value, int):
                assert 0 <= value < 2**63


def test_a_call_that_was_made_again_after_a_crash_is_one_span() -> None:
    records = span_records(
        entries_of(
            [
                started("coder"),
                turn(1),
                answered(1, Usage(1, 1)),
                ToolCallStarted("c1", "deliver", "{}"),
                RunResumed("p2"),
                ToolCallStarted("c1", "deliver", "{}"),
                ToolCallEnded("c1", "deliver", True, "ok", 1.0),
                turn(2),
                RunResumed("p3"),
                turn(2, "m:2"),
                answered(2, Usage(1, 1), model="m:2"),
                ended(),
            ]
        )
    )
    tool = named(records, "execute_tool deliver")
    assert (tool.start_ns, tool.end_ns, tool.failed) == (1_003_000_000_000, 1_006_000_000_000, False)
    cut = [record for record in records if record.name == "chat 1" and record.failed]
    assert [record.attributes["error.type"] for record in cut] == ["interrupted"]
    assert len({record.span_id for record in records}) == len(records)


def test_a_run_that_is_open_ends_with_its_last_entry_and_has_not_failed() -> None:
    records = span_records(entries_of([started("coder"), turn(1)]))
    run = named(records, "invoke_agent coder")
    assert (run.attributes["xclaw.outcome"], run.failed) == ("open", False)
    assert run.end_ns == 1_001_000_000_000


def test_a_part_of_a_tree_names_the_parents_that_the_whole_has() -> None:
    child = [entry for entry in family() if entry.address.run_id == "child"]
    record = named(span_records(child), "invoke_agent coder")
    assert record.parent_id == call_span_id("root", "call-1")


def test_a_child_whose_tool_call_is_unknown_stands_under_its_parents_run() -> None:
    entries = [entry for entry in family() if not isinstance(entry.event, ToolCallStarted | ToolCallEnded)]
    assert named(span_records(entries), "invoke_agent coder").parent_id == run_span_id("root")


def test_a_root_stands_under_the_span_of_another_program() -> None:
    parent = parse_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    assert parent == TraceParent(0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331)
    assert parent is not None
    records = span_records(family(), parent=parent)
    root, child = named(records, "invoke_agent orchestrator"), named(records, "invoke_agent coder")
    assert {record.trace_id for record in records} == {parent.trace_id}
    assert (root.parent_id, root.parent_is_remote) == (parent.span_id, True)
    assert not child.parent_is_remote


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
    ],
)
def test_what_is_no_traceparent_is_ignored(text: str) -> None:
    assert parse_traceparent(text) is None


def test_every_kind_of_event_can_be_exported() -> None:
    assert span_records(entries_of(sample_events()), include_content=True)
    assert span_records([]) == []
