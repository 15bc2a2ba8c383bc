"""Figures for Prometheus: what is counted, under which names, and that labels stay few."""

from collections.abc import Iterable

import pytest
from prometheus_client.parser import text_string_to_metric_families

from xclaw.contracts.agents import Limits
from xclaw.contracts.events import (
    Address,
    AttemptFailed,
    Compacted,
    Entry,
    Event,
    ModelAnswered,
    RunEnded,
    RunStarted,
    TextDelta,
    ToolCallEnded,
)
from xclaw.contracts.messages import AssistantMessage
from xclaw.contracts.results import Result
from xclaw.contracts.routing import Route
from xclaw.contracts.usage import Spend, Usage
from xclaw.gateway.metrics import MAX_OPEN_RUNS, Metrics
from xclaw.testing.sample_events import sample_events


def entry(event: Event, run_id: str = "r1") -> Entry:
    return Entry(Address(run_id, "r1", "", "s"), 1, 0.0, event, 1)


def started(agent: str = "coder", *, depth: int = 0, route: Route | None = None) -> RunStarted:
    return RunStarted(
        agent=agent,
        input="",
        caller="user",
        depth=depth,
        instructions="",
        tools=("view_file", "deliver"),
        models=("openai:m",),
        dialect="native",
        limits=Limits(),
        route=route,
    )


def answered(model: str = "openai:m") -> ModelAnswered:
    return ModelAnswered(1, AssistantMessage("hi"), Usage(10, 2), 0.5, model, "stop", 1.5, 0.3)


def ended(duration_s: float = 7.0) -> RunEnded:
    return RunEnded(Result("success", duration_s=duration_s), "success", 1)


def samples(metrics: Metrics) -> dict[str, float]:
    """Every figure, as a scraper reads it."""
    families = text_string_to_metric_families(metrics.render().decode())
    return {
        f"{sample.name}{sorted(sample.labels.items())}": sample.value
        for family in families
        for sample in family.samples
    }


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return samples(metrics).get(f"{name}{sorted(labels.items())}")


def counted(events: Iterable[Event]) -> Metrics:
    metrics = Metrics("1.2")
    for event in events:
        metrics.observe(entry(event))
    return metrics


def test_a_run_with_its_calls_is_counted() -> None:
    metrics = counted(
        [
            started(route=Route("coder", "rule", "because")),
            TextDelta("hi"),
            answered(),
            answered(),
            AttemptFailed(1, "openai:m", "503", 503, Usage(3, 0), None, "", None),
            ToolCallEnded("c1", "view_file", True, "", 0.1),
            ToolCallEnded("c2", "view_file", False, "", 0.1),
            Compacted(1, "", 10, 5, Usage(100, 20), 0.25),
            ended(),
        ]
    )
    assert value(metrics, "xclaw_runs_started_total", agent="coder", by="rule") == 1
    assert value(metrics, "xclaw_runs_ended_total", agent="coder", outcome="success") == 1
    assert value(metrics, "xclaw_tokens_total", model="openai:m", direction="input") == 23
    assert value(metrics, "xclaw_tokens_total", model="openai:m", direction="output") == 4
    assert value(metrics, "xclaw_tokens_total", model="compaction", direction="input") == 100
    assert value(metrics, "xclaw_cost_usd_total", model="openai:m") == 1.0
    assert value(metrics, "xclaw_cost_usd_total", model="compaction") == 0.25
    assert value(metrics, "xclaw_unpriced_calls_total", model="openai:m") == 1
    assert value(metrics, "xclaw_model_calls_total", model="openai:m", outcome="answered") == 2
    assert value(metrics, "xclaw_model_calls_total", model="openai:m", outcome="failed") == 1
    assert value(metrics, "xclaw_tool_calls_total", tool="view_file", ok="true") == 1
    assert value(metrics, "xclaw_tool_calls_total", tool="view_file", ok="false") == 1
    assert value(metrics, "xclaw_first_token_seconds_count") == 2
    assert value(metrics, "xclaw_first_token_seconds_bucket", le="0.25") == 0
    assert value(metrics, "xclaw_first_token_seconds_bucket", le="0.5") == 2
    assert value(metrics, "xclaw_run_seconds_sum") == 7.0
    assert value(metrics, "xclaw_build_info", version="1.2") == 1


@pytest.mark.parametrize(
    ("event", "by"),
    [
        (started(route=Route("coder", "mention", "")), "mention"),
        (started(), "client"),
        (started(depth=1), "agent"),
    ],
)
def test_what_a_run_came_from_is_told(event: RunStarted, by: str) -> None:
    assert value(counted([event]), "xclaw_runs_started_total", agent="coder", by=by) == 1


def test_what_the_router_spent_is_counted() -> None:
    spend = Spend(Usage(7, 1), 0.125, 0, 1)
    metrics = counted([started(route=Route("coder", "model", "", spend=spend))])
    assert value(metrics, "xclaw_tokens_total", model="router", direction="input") == 7
    assert value(metrics, "xclaw_cost_usd_total", model="router") == 0.125


def test_every_event_can_be_observed_and_every_name_is_documented_form() -> None:
    metrics = counted(sample_events())
    names = {name.partition("[")[0] for name in samples(metrics)}
    assert names
    assert all(name.startswith("xclaw_") for name in names)
    assert not [name for name in names if name.endswith("_created")]


def test_labels_stay_few_whatever_names_come() -> None:
    metrics = Metrics("1")
    metrics.observe(entry(started()))
    for number in range(300):
        metrics.observe(entry(started(f"agent{number}"), f"r{number}"))
        metrics.observe(entry(answered(f"model{number}")))
        metrics.observe(entry(ToolCallEnded("c", f"invented{number}", False, "", 0.1)))
        metrics.message(f"channel{number}", "queue")
    lines = metrics.render().decode().splitlines()
    for name in ("xclaw_runs_started_total{", "xclaw_model_calls_total{", "xclaw_messages_total{"):
        assert len([line for line in lines if line.startswith(name)]) == 101
    assert value(metrics, "xclaw_runs_started_total", agent="other", by="client") == 201
    # A name that a model invented is no tool: it must not push a real one out.
    assert value(metrics, "xclaw_tool_calls_total", tool="other", ok="false") == 300
    metrics.observe(entry(ToolCallEnded("c", "deliver", True, "", 0.1)))
    assert value(metrics, "xclaw_tool_calls_total", tool="deliver", ok="true") == 1


def test_names_that_would_break_the_format_are_escaped() -> None:
    metrics = Metrics("1")
    for agent in ('a"} 1\nxclaw_evil 1', "a\\", "代码"):
        metrics.observe(entry(started(agent)))
        assert value(metrics, "xclaw_runs_started_total", agent=agent, by="client") == 1


def test_a_run_that_began_elsewhere_and_ones_that_never_end_are_no_burden() -> None:
    metrics = Metrics("1")
    metrics.observe(entry(ended(), "unknown"))
    assert value(metrics, "xclaw_runs_ended_total", agent="other", outcome="success") == 1
    for number in range(MAX_OPEN_RUNS + 1):
        metrics.observe(entry(started(), f"r{number}"))
    metrics.observe(entry(ended(), "r0"))
    metrics.observe(entry(ended(), "r1"))
    assert value(metrics, "xclaw_runs_ended_total", agent="other", outcome="success") == 2
    assert value(metrics, "xclaw_runs_ended_total", agent="coder", outcome="success") == 1


def test_clients_and_messages_are_counted() -> None:
    metrics = Metrics("1")
    with metrics.client("web"), metrics.client("web"), metrics.client("cli"):
        assert value(metrics, "xclaw_clients", channel="web") == 2
    metrics.message("web", "steer")
    metrics.client_dropped()
    assert value(metrics, "xclaw_clients", channel="web") == 0
    assert value(metrics, "xclaw_messages_total", channel="web", manner="steer") == 1
    assert value(metrics, "xclaw_slow_clients_total") == 1


def test_two_gateways_in_one_process_do_not_share_figures() -> None:
    one, other = Metrics("1"), Metrics("1")
    one.client_dropped()
    assert value(other, "xclaw_slow_clients_total") == 0
    assert one.media_type.startswith("text/plain; version=0.0.4")
