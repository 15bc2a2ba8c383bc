"""When things happened, as it is read from entries."""

from recorded_runs import Recording, answered, ended, entries_of, failed, spawned, started, turn

from xclaw.contracts.events import ApprovalAnswered, ApprovalAsked, RunResumed, ToolCallEnded, ToolCallStarted
from xclaw.contracts.usage import Usage
from xclaw.testing.sample_events import sample_events
from xclaw.traces.forms import timeline_json
from xclaw.traces.timeline import Span, timeline


def of_kind(spans: list[Span], kind: str) -> list[Span]:
    return [span for span in spans if span.kind == kind]


def test_a_run_and_its_calls_have_start_and_length() -> None:
    spans = timeline(
        entries_of(
            [
                started("coder"),
                turn(1),
                answered(1, Usage(5, 5)),
                ToolCallStarted("c1", "deliver", "{}"),
                ToolCallEnded("c1", "deliver", True, "ok", 0.25),
                ended(),
            ]
        )
    )
    (run,), (model,), (tool,) = of_kind(spans, "run"), of_kind(spans, "model"), of_kind(spans, "tool")
    assert (run.start, run.duration_s, run.ok, run.detail) == (1000.0, 5.0, True, "success")
    assert (model.start, model.duration_s, model.usage) == (1001.5, 0.5, Usage(5, 5))
    assert (tool.start, tool.duration_s, tool.ok, tool.name) == (1003.0, 0.25, True, "deliver")


def test_each_failed_attempt_is_a_span_of_its_own() -> None:
    """U03: the split by provider is seen in time too."""
    spans = timeline(
        entries_of(
            [
                started("coder"),
                turn(1, "a:1"),
                failed(1, Usage(30, 0), 0.3, "a:1", "b:1"),
                answered(1, Usage(30, 4), 0.4, "b:1"),
            ]
        )
    )
    (attempt,), (model,) = of_kind(spans, "attempt"), of_kind(spans, "model")
    assert (attempt.name, attempt.start, attempt.duration_s, attempt.ok) == ("a:1", 1001.0, 1.0, False)
    assert (model.name, model.start) == ("b:1", 1002.5)


def test_what_is_in_flight_is_open_until_the_run_ends() -> None:
    going = [started("coder"), turn(1)]
    assert of_kind(timeline(entries_of(going)), "model")[0].duration_s is None
    (cut,) = of_kind(timeline(entries_of([*going, ended("cancelled")])), "model")
    assert (cut.duration_s, cut.ok) == (1.0, False)


def test_what_a_crash_cut_off_has_no_end_and_did_not_succeed() -> None:
    spans = timeline(
        entries_of([started("coder"), turn(1), RunResumed("p2"), turn(1), answered(1, Usage(1, 1)), ended()])
    )
    first, second = of_kind(spans, "model")
    assert (first.duration_s, first.ok) == (None, False)
    assert second.ok is True


def test_the_wait_for_a_person_is_a_span_that_no_crash_ends() -> None:
    """J2."""
    asked = ApprovalAsked("a1", "c1", "shell", "{}", "commands ask", "", ("coder",))
    going = [started("coder"), turn(1), answered(1, Usage(1, 1)), asked, RunResumed("p2")]
    (waiting,) = of_kind(timeline(entries_of(going)), "approval")
    assert (waiting.name, waiting.duration_s, waiting.ok) == ("shell", None, None)
    answers = (
        (ApprovalAnswered("a1", "once", "owner"), True, "once, by owner"),
        (ApprovalAnswered("a1", "deny", "owner"), False, "deny, by owner"),
        (ApprovalAnswered("a1", "void", "xclaw"), False, "void, by xclaw"),
    )
    for said, ok, detail in answers:
        (over,) = of_kind(timeline(entries_of([*going, said, ended()])), "approval")
        assert (over.duration_s, over.ok, over.detail) == (2.0, ok, detail)


def test_spans_of_several_runs_are_in_order_of_time() -> None:
    recording = Recording()
    recording.record("root", started("orchestrator"), turn(1), spawned("a", "coder"))
    recording.record("a", started("coder", 1), turn(1), answered(1, Usage(1, 1)), ended(), parent="root")
    recording.record("root", ended())
    spans = timeline(recording.entries)
    assert [span.start for span in spans] == sorted(span.start for span in spans)
    assert [span.agent for span in of_kind(spans, "run")] == ["orchestrator", "coder"]


def test_every_kind_of_event_can_be_read_and_has_a_json_form() -> None:
    spans = timeline(entries_of(sample_events()))
    assert len(timeline_json(spans)) == len(spans) > 0
    assert timeline([]) == []
