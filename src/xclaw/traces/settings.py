"""What the export of traces is told."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TracesSettings:
    """Without an endpoint nothing is exported. Headers do not show in the repr: they may be secrets."""

    otlp_endpoint: str = ""
    """The receiver's address for OTLP over HTTP; `/v1/traces` is added unless it ends so."""
    otlp_headers: str = field(default="", repr=False)
    """Sent with every export: `name=value,name=value`, values percent-encoded as OpenTelemetry has it."""
    include_content: bool = False
    """Export what was said too: prompts, answers, arguments and results of tools."""
    traceparent: str = ""
    """The W3C trace context to stand under; what is none is ignored, as that standard asks."""
    flush_timeout_s: float = 5.0
    """How long the end of the process waits for exports that are under way."""
