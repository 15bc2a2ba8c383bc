"""Ids of exported traces and spans. They follow from the journal's ids: an export made again names the
same spans."""

import hashlib
import re
from dataclasses import dataclass

_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?")


@dataclass(frozen=True, slots=True)
class TraceParent:
    """A span of another program under which a root stands."""

    trace_id: int
    span_id: int


def parse_traceparent(text: str) -> TraceParent | None:
    """The W3C `traceparent` in `text`; None when there is no valid one."""
    found = _TRACEPARENT.fullmatch(text.strip())
    if found is None or found[1] == "ff" or (found[1] == "00" and found[4]):
        return None
    trace_id, span_id = int(found[2], 16), int(found[3], 16)
    return TraceParent(trace_id, span_id) if trace_id and span_id else None


def trace_id_of(root_id: str) -> int:
    """128 bits, never 0."""
    return _number(("trace", root_id), 16)


def run_span_id(run_id: str) -> int:
    """64 bits, never 0."""
    return _number(("run", run_id), 8)


def call_span_id(run_id: str, call_id: str) -> int:
    """Of a tool call."""
    return _number(("tool", run_id, call_id), 8)


def model_span_id(run_id: str, kind: str, seq: int) -> int:
    """Of a model call, by its kind and the entry that ended it; or began it, when it has no end."""
    return _number((kind, run_id, str(seq)), 8)


def _number(parts: tuple[str, ...], length: int) -> int:
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:length], "big") or 1
