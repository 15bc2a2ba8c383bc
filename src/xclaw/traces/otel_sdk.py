"""Span records through OpenTelemetry's own SDK and exporter, the extra `xclaw[otel]`.

Imported on first use only. That library reads its own environment variables: the name of the service,
certificates, compression, time-out.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from xclaw.contracts.events import Entry
from xclaw.traces import otel_names as names
from xclaw.traces.otel_ids import TraceParent
from xclaw.traces.otel_spans import SpanRecord, span_records

BATCH_SPANS = 200
BATCH_CHARACTERS = 2_000_000
"""Receivers refuse requests that are too large; many at 4 MB."""

logger = logging.getLogger(__name__)
_EXPORTER_LOGGER = logging.getLogger(OTLPSpanExporter.__module__)


class SpanSender:
    """Sends spans to one receiver. Blocks; for one thread at a time."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._exporter = OTLPSpanExporter(endpoint=url, headers=dict(headers))
        defaults = Resource({names.SERVICE_NAME: names.SCOPE})
        self._resource = defaults.merge(OTELResourceDetector().detect())
        self._scope = InstrumentationScope(names.SCOPE)
        self._failing = False
        self._hurried = False
        self._closed = False

    def send_trees(
        self, entries: Sequence[Entry], *, include_content: bool, parent: TraceParent | None
    ) -> tuple[int, str]:
        """How many spans the entries are, and why they could not be sent, empty when they were."""
        records = span_records(entries, include_content=include_content, parent=parent)
        return len(records), self._send(records)

    def _send(self, records: Sequence[SpanRecord]) -> str:
        """Stops at the first failure."""
        for batch in _batches(records):
            spans = [self._span(record) for record in batch]
            words = _ExporterWords(self._on_failure)
            _EXPORTER_LOGGER.addFilter(words)
            try:
                self._failing = False
                result = self._exporter.export(spans)
            except Exception as error:  # older exporters raise what their HTTP library raises
                logger.debug("the exporter failed", exc_info=True)
                return str(error) or type(error).__name__
            finally:
                _EXPORTER_LOGGER.removeFilter(words)
            if result is not SpanExportResult.SUCCESS:
                return words.first or "the export failed"
        return ""

    def hurry(self) -> None:
        """Send what there is, but try nothing a second time. Callable from any thread."""
        self._hurried = True
        if self._failing:
            self.close()

    def close(self) -> None:
        """Give up what is being sent. Callable from any thread."""
        if not self._closed:
            self._closed = True
            self._exporter.shutdown()

    def _on_failure(self) -> None:
        self._failing = True
        if self._hurried:
            self.close()

    def _span(self, record: SpanRecord) -> ReadableSpan:
        parent = None
        if record.parent_id is not None:
            parent = _context(record.trace_id, record.parent_id, is_remote=record.parent_is_remote)
        status = Status(StatusCode.ERROR, record.error or None) if record.failed else Status()
        return ReadableSpan(
            record.name,
            context=_context(record.trace_id, record.span_id, is_remote=False),
            parent=parent,
            resource=self._resource,
            attributes=record.attributes,
            kind=SpanKind.CLIENT if record.calls_out else SpanKind.INTERNAL,
            status=status,
            start_time=record.start_ns,
            end_time=record.end_ns,
            instrumentation_scope=self._scope,
        )


class _ExporterWords(logging.Filter):
    """Keeps what the exporter logs in this thread from the log: the caller says it, once."""

    def __init__(self, on_words: Callable[[], None]) -> None:
        super().__init__()
        self._thread = threading.get_ident()
        self._on_words = on_words
        self.first = ""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.thread != self._thread:
            return True
        self.first = self.first or record.getMessage()
        self._on_words()
        return False


def _context(trace_id: int, span_id: int, *, is_remote: bool) -> SpanContext:
    return SpanContext(trace_id, span_id, is_remote, TraceFlags(TraceFlags.SAMPLED))


def _batches(records: Sequence[SpanRecord]) -> Iterator[list[SpanRecord]]:
    batch: list[SpanRecord] = []
    room = BATCH_CHARACTERS
    for record in records:
        size = sum(len(value) for value in record.attributes.values() if isinstance(value, str))
        if batch and (len(batch) == BATCH_SPANS or size > room):
            yield batch
            batch, room = [], BATCH_CHARACTERS
        batch.append(record)
        room -= size
    if batch:
        yield batch
