"""The tree of runs as it is read from entries."""

from recorded_runs import Recording, answered, ended, entries_of, failed, spawned, started, took, turn

from xclaw.contracts.artifacts import Pointer
from xclaw.contracts.events import (
    ArtifactDelivered,
    ChildSpawned,
    Compacted,
    Entry,
    RunEnded,
    RunResumed,
    TextDelta,
    Warned,
)
from xclaw.contracts.results import Result
from xclaw.contracts.usage import Usage
from xclaw.testing.sample_events import sample_events
from xclaw.traces.forms import tree_json
from xclaw.traces.tree import trace_trees


def three_levels() -> list[Entry]:
    recording = Recording()
    recording.record(
        "root", started("orchestrator"), turn(1), answered(1, Usage(10, 5), 0.01), spawned("a", "coder")
    )
    recording.record("a", started("coder", 1), parent="root")
    for number in (1, 2, 3):
        recording.record("a", turn(number), answered(number, Usage(7, 3), 0.02), parent="root")
    recording.record("a", spawned("b", "explorer"), parent="root")
    recording.record(
        "b", started("explorer", 2), turn(1), answered(1, Usage(100, 1), 0.1), ended(), parent="a"
    )
    recording.record("a", took("b"), ended(turns=3), parent="root")
    recording.record("root", took("a"), turn(2), answered(2, Usage(10, 5), 0.01), ended(turns=2))
    return recording.entries


def test_own_spend_of_all_runs_adds_up_to_the_total_of_the_root() -> None:
    """U01: orchestrator 20/10, worker 21/9, its child 100/1; together 141/20."""
    (root,) = trace_trees(three_levels())
    nodes = {node.run_id: node for node in root.walk()}
    own = {
        run_id: (node.own.usage.input_tokens, node.own.usage.output_tokens) for run_id, node in nodes.items()
    }
    assert own == {"root": (20, 10), "a": (21, 9), "b": (100, 1)}
    assert (root.total.usage.input_tokens, root.total.usage.output_tokens) == (141, 20)
    assert root.total.cost_usd is not None
    assert abs(root.total.cost_usd - sum(node.own.known_usd for node in nodes.values())) < 1e-9
    assert root.total.calls == 6


def test_failed_attempts_and_compactions_count_and_are_split_by_model() -> None:
    """U03: provider A 30/0 failed, fallback B 30/4, and a summary that a model wrote."""
    (node,) = trace_trees(
        entries_of(
            [
                started("coder"),
                turn(1, "a:1"),
                failed(1, Usage(30, 0), 0.3, "a:1", "b:1"),
                answered(1, Usage(30, 4), 0.4, "b:1"),
                Compacted(3, "in short", 900, 90, Usage(50, 5), 0.5),
                Compacted(5, "without a model", 900, 90),
            ]
        )
    )
    assert (node.own.usage.input_tokens, node.own.usage.output_tokens) == (110, 9)
    assert node.own.calls == 3
    assert {model: spend.usage.total_tokens for model, spend in node.by_model.items()} == {
        "a:1": 30,
        "b:1": 34,
        "compaction": 55,
    }
    assert (node.failed_attempts, node.models) == (1, ("b:1",))


def test_a_cancelled_run_has_cost_what_its_calls_cost() -> None:
    """U03: one call of 50/5, then cancelled."""
    (node,) = trace_trees(
        entries_of([started("coder"), turn(1), answered(1, Usage(50, 5)), turn(2), ended("cancelled")])
    )
    assert (node.status, node.own.usage.total_tokens, node.turns) == ("cancelled", 55, 2)
    assert node.reason == "because"


def test_an_unknown_price_makes_the_cost_of_everything_above_it_unknown_and_never_zero() -> None:
    recording = Recording()
    recording.record(
        "root", started("orchestrator"), turn(1), answered(1, Usage(10, 5), 0.01), spawned("a", "coder")
    )
    recording.record("a", started("coder", 1), turn(1), answered(1, Usage(7, 3), None), parent="root")
    (root,) = trace_trees(recording.entries)
    assert root.own.cost_usd == 0.01
    assert root.total.cost_usd is None
    form = tree_json(root)
    assert isinstance(form["total"], dict)
    assert form["total"]["cost_usd"] is None
    assert form["total"]["known_usd"] == 0.01


def test_a_child_that_was_asked_for_and_never_began_is_in_the_tree() -> None:
    (root,) = trace_trees(entries_of([started("orchestrator"), spawned("a", "coder", background=True)]))
    (child,) = root.children
    assert (child.agent, child.status, child.mode, child.background) == (
        "coder",
        "not_started",
        "delegate",
        True,
    )
    assert child.task == "task of a"


def test_a_child_spawned_twice_by_a_replay_is_one_child() -> None:
    recording = Recording()
    recording.record(
        "root", started("orchestrator"), spawned("a", "coder"), RunResumed("p2"), spawned("a", "coder")
    )
    recording.record("a", started("coder", 1), ended(), parent="root")
    (root,) = trace_trees(recording.entries)
    assert [child.run_id for child in root.children] == ["a"]
    assert root.resumes == 1


def test_a_run_without_an_end_is_open_and_has_no_length() -> None:
    (node,) = trace_trees(entries_of([started("coder"), turn(1)]))
    assert (node.status, node.ended_at, tree_json(node)["duration_s"]) == ("open", None, None)


def test_files_that_a_child_handed_up_are_the_childs() -> None:
    handed = Pointer("/shared/x/a.md", "0" * 64, 3, "coder", "a")
    own = Pointer("/shared/y/b.md", "1" * 64, 4, "orchestrator", "root")
    result = RunEnded(Result("success"), "success", 1, (handed, own))
    (node,) = trace_trees(entries_of([started("orchestrator"), ArtifactDelivered(own, "b.md"), result]))
    assert node.artifacts == (own,)


def test_streamed_text_is_no_part_of_a_trace() -> None:
    entries = entries_of([started("coder"), ended()])
    delta = Entry(entries[0].address, 0, 999.0, TextDelta("hel"))
    assert trace_trees([delta, *entries]) == trace_trees(entries)


def test_a_part_of_a_tree_stands_at_the_top() -> None:
    below = [entry for entry in three_levels() if entry.address.run_id != "root"]
    (top,) = trace_trees(below)
    assert (top.run_id, [child.run_id for child in top.children]) == ("a", ["b"])


def test_runs_that_name_each_other_as_parents_do_not_make_the_reader_hang() -> None:
    recording = Recording()
    recording.record("root", started("orchestrator"))
    for run_id, other in (("x", "y"), ("y", "x")):
        event = spawned(other, "coder")
        assert isinstance(event, ChildSpawned)
        recording.record(run_id, started("coder", 1), event, parent=other)
    assert [node.run_id for node in trace_trees(recording.entries)] == ["root"]


def test_every_kind_of_event_can_be_read() -> None:
    entries = entries_of(sample_events())
    (node,) = trace_trees(entries)
    assert node.agent == "critic"
    assert [warned.code for warned in node.warnings] == [
        entry.event.code for entry in entries if isinstance(entry.event, Warned)
    ]
