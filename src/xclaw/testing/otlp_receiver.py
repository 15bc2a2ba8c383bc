"""A receiver of OpenTelemetry traces over HTTP, which decodes what it gets with the official classes.

Needs the extra `xclaw[otel]`.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

Value = str | int | float | bool | tuple[str, ...]


@dataclass(frozen=True)
class Received:
    """One span as it came over the wire: ids in hex, times in Unix seconds."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    kind: int
    start: float
    end: float
    failed: bool
    message: str
    attributes: Mapping[str, Value]

    def __getitem__(self, attribute: str) -> Value:
        return self.attributes[attribute]

    def number(self, attribute: str) -> int:
        """An attribute that is a number, 0 when it is not there."""
        return cast("int", self.attributes.get(attribute, 0))


@dataclass
class Receiver:
    """What came in. Every request is answered with `status`, once `hold` is set, if there is one."""

    url: str = ""
    status: int = 200
    hold: asyncio.Event | None = None
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    spans: list[Received] = field(default_factory=list[Received])
    bodies: list[bytes] = field(default_factory=list[bytes])
    headers: list[Mapping[str, str]] = field(default_factory=list[Mapping[str, str]])
    services: set[str] = field(default_factory=set[str])

    def named(self, name: str) -> list[Received]:
        """The spans of this name, in the order in which they came."""
        return [span for span in self.spans if span.name == name]

    def one(self, name: str) -> Received:
        """The only span of this name; raises `ValueError` when there is none, or several."""
        (span,) = self.named(name)
        return span

    async def handle(self, request: web.Request) -> web.Response:
        """Take one request of an exporter."""
        body = await request.read()
        self.bodies.append(body)
        self.headers.append(request.headers)
        self.arrived.set()
        if self.hold is not None:
            await self.hold.wait()
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.services |= {
                pair.value.string_value for pair in resource.resource.attributes if pair.key == "service.name"
            }
            self.spans.extend(_received(span) for scope in resource.scope_spans for span in scope.spans)
        return web.Response(status=self.status)


@asynccontextmanager
async def receiving(status: int = 200) -> AsyncGenerator[Receiver]:
    """A receiver at its `url`, for as long as the block lasts."""
    receiver = Receiver(status=status)
    app = web.Application(client_max_size=64_000_000)
    app.router.add_post("/v1/traces", receiver.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield receiver
    finally:
        if receiver.hold is not None:
            receiver.hold.set()
        await runner.cleanup()


def _received(span: Span) -> Received:
    return Received(
        span.name,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        span.kind,
        span.start_time_unix_nano / 1e9,
        span.end_time_unix_nano / 1e9,
        span.status.code == Status.STATUS_CODE_ERROR,
        span.status.message,
        {pair.key: _value(pair.value) for pair in span.attributes},
    )


def _value(value: AnyValue) -> Value:
    match value.WhichOneof("value"):
        case "string_value":
            return value.string_value
        case "int_value":
            return value.int_value
        case "double_value":
            return value.double_value
        case "bool_value":
            return value.bool_value
        case "array_value":
            return tuple(item.string_value for item in value.array_value.values)
        case other:
            raise ValueError(f"an attribute of kind {other} was not expected")
