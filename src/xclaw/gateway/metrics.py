"""Figures for Prometheus, counted from events. Every label has a bounded number of values."""

from collections import OrderedDict
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import Metric

from xclaw.contracts.events import (
    AttemptFailed,
    Compacted,
    Entry,
    ModelAnswered,
    RunEnded,
    RunStarted,
    ToolCallEnded,
)
from xclaw.contracts.usage import Spend, Usage

OTHER = "other"
MAX_VALUES = 100
"""Distinct values of one label; what comes later is `other`."""
MAX_OPEN_RUNS = 10_000
"""Runs whose agent is remembered until they end."""
COMPACTION = "compaction"
ROUTER = "router"
"""Stand for the models of calls whose events do not name one."""

_FIRST_TOKEN_S = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_RUN_S = (1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600)


class Metrics:
    """The gateway's figures, in a registry of their own. They begin at zero with every start.

    Used on the event loop only; nothing waits.
    """

    media_type = CONTENT_TYPE_PLAIN_0_0_4

    def __init__(self, version: str) -> None:
        self._registry = CollectorRegistry()
        self._runs = _RunFigures(self._registry)
        self._models = _ModelFigures(self._registry)
        self._clients = _ClientFigures(self._registry)
        Info("xclaw_build", "The running version.", registry=self._registry).info({"version": version})

    def observe(self, entry: Entry) -> None:
        """Count a new event. Not for events of the past: they would count again."""
        event = entry.event
        match event:
            case RunStarted():
                self._runs.started(entry.address.run_id, event)
                if event.route is not None:
                    self._models.spent(ROUTER, event.route.spend)
            case RunEnded():
                self._runs.ended(entry.address.run_id, event)
            case ModelAnswered():
                self._models.called(event.model, "answered", event.usage, event.cost_usd)
                self._models.first_token(event.first_token_s)
            case AttemptFailed():
                self._models.called(event.model, "failed", event.usage, event.cost_usd)
            case Compacted():
                self._models.called(COMPACTION, "answered", event.usage, event.cost_usd)
            case ToolCallEnded():
                self._runs.tool_ended(event)
            case _:
                return

    def message(self, channel: str, manner: str) -> None:
        """A message was accepted."""
        self._clients.messages.labels(self._clients.channel(channel), manner).inc()

    @contextmanager
    def client(self, channel: str) -> Generator[None]:
        """A client is connected as long as the block lasts."""
        gauge = self._clients.connected.labels(self._clients.channel(channel))
        gauge.inc()
        try:
            yield
        finally:
            gauge.dec()

    def client_dropped(self) -> None:
        """A client was dropped because it read too slowly."""
        self._clients.slow.inc()

    def render(self) -> bytes:
        """Everything in Prometheus' text format, whose type is `media_type`."""
        return generate_latest(_WithoutCreationTimes(self._registry))


class _RunFigures:
    def __init__(self, registry: CollectorRegistry) -> None:
        self._started = Counter("xclaw_runs_started", "Runs that began.", ("agent", "by"), registry=registry)
        self._ended = Counter("xclaw_runs_ended", "Runs that ended.", ("agent", "outcome"), registry=registry)
        self._tools = Counter("xclaw_tool_calls", "Calls of tools.", ("tool", "ok"), registry=registry)
        self._seconds = Histogram(
            "xclaw_run_seconds", "How long runs took.", buckets=_RUN_S, registry=registry
        )
        self._agents = _Values()
        self._tool_names = _Values()
        self._open: OrderedDict[str, str] = OrderedDict()

    def started(self, run_id: str, event: RunStarted) -> None:
        agent = self._agents.label(event.agent)
        for tool in event.tools:
            self._tool_names.label(tool)
        self._open[run_id] = agent
        if len(self._open) > MAX_OPEN_RUNS:
            self._open.popitem(last=False)
        self._started.labels(agent, _by(event)).inc()

    def ended(self, run_id: str, event: RunEnded) -> None:
        self._ended.labels(self._open.pop(run_id, OTHER), event.outcome).inc()
        self._seconds.observe(event.result.duration_s)

    def tool_ended(self, event: ToolCallEnded) -> None:
        # Models call tools that do not exist: such names must not use the values up.
        tool = self._tool_names.known(event.name)
        self._tools.labels(tool, "true" if event.ok else "false").inc()


class _ModelFigures:
    def __init__(self, registry: CollectorRegistry) -> None:
        self._calls = Counter(
            "xclaw_model_calls", "Calls of models.", ("model", "outcome"), registry=registry
        )
        self._tokens = Counter(
            "xclaw_tokens", "Tokens that calls used.", ("model", "direction"), registry=registry
        )
        self._cost = Counter(
            "xclaw_cost_usd", "Cost of priced calls, US dollars.", ("model",), registry=registry
        )
        self._unpriced = Counter(
            "xclaw_unpriced_calls", "Calls that cost something unknown.", ("model",), registry=registry
        )
        self._first_token = Histogram(
            "xclaw_first_token_seconds",
            "From asking a model to its first token.",
            buckets=_FIRST_TOKEN_S,
            registry=registry,
        )
        self._names = _Values()

    def called(
        self, model: str, outcome: Literal["answered", "failed"], usage: Usage, cost: float | None
    ) -> None:
        self._calls.labels(self._names.label(model), outcome).inc()
        unpriced = int(cost is None and usage.total_tokens > 0)
        self.spent(model, Spend(usage, cost or 0.0, unpriced))

    def spent(self, model: str, spend: Spend) -> None:
        model = self._names.label(model)
        for direction, count in (("input", spend.usage.input_tokens), ("output", spend.usage.output_tokens)):
            if count > 0:
                self._tokens.labels(model, direction).inc(count)
        if spend.known_usd > 0:
            self._cost.labels(model).inc(spend.known_usd)
        if spend.unpriced_calls:
            self._unpriced.labels(model).inc(spend.unpriced_calls)

    def first_token(self, seconds: float | None) -> None:
        if seconds is not None:
            self._first_token.observe(seconds)


class _ClientFigures:
    def __init__(self, registry: CollectorRegistry) -> None:
        self.connected = Gauge(
            "xclaw_clients", "Clients that are connected.", ("channel",), registry=registry
        )
        self.messages = Counter(
            "xclaw_messages", "Messages that were accepted.", ("channel", "manner"), registry=registry
        )
        self.slow = Counter(
            "xclaw_slow_clients", "Clients that were dropped, as they read too slowly.", registry=registry
        )
        self._channels = _Values()

    def channel(self, name: str) -> str:
        return self._channels.label(name)


class _Values:
    """The values that one label has had."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def label(self, value: str) -> str:
        """The value, or `other` when there are too many already."""
        if value not in self._seen and len(self._seen) < MAX_VALUES:
            self._seen.add(value)
        return self.known(value)

    def known(self, value: str) -> str:
        """The value if it was one before, else `other`."""
        return value if value in self._seen else OTHER


class _WithoutCreationTimes:
    """A registry without the times at which figures began, which double everything and say nothing here."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterable[Metric]:
        for metric in self._registry.collect():
            metric.samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
            yield metric


def _by(event: RunStarted) -> str:
    if event.route is not None:
        return event.route.by
    return "agent" if event.depth else "client"
