"""What the tests of this room share: a request, and one call of a model at a fake provider."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, settings

from xclaw.contracts.errors import ModelError
from xclaw.contracts.messages import UserMessage
from xclaw.contracts.models import ModelReply, ModelRequest
from xclaw.models.openai.client import Endpoint, OpenAIModel
from xclaw.models.openai.connections import Connections
from xclaw.testing.fake_provider import DONE, FakeProvider, Raw, Reply, sse
from xclaw.testing.recording_sink import RecordingSink

KEY = "sk-test-0123456789"
REQUEST = ModelRequest("Be brief.", (UserMessage("hi"),))
WAIT_S = 5.0
STEADY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""For properties: a busy machine is no failure."""


def run(main: Callable[[], Coroutine[None, None, None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(20):
            await main()

    asyncio.run(bounded())


@asynccontextmanager
async def opened(url: str, **changes: float) -> AsyncGenerator[OpenAIModel, None]:
    connections = Connections()
    try:
        yield OpenAIModel("openai:fake", replace(Endpoint(url, KEY), **changes), connections)
    finally:
        await connections.close()


async def asked(*replies: Reply, request: ModelRequest = REQUEST) -> tuple[ModelReply, RecordingSink]:
    """The answer to `request` when the provider gives these replies."""
    sink = RecordingSink()
    async with FakeProvider() as provider, opened(provider.url) as model, asyncio.timeout(WAIT_S):
        provider.queue(*replies)
        reply = await model.reply(request, sink)
    assert sink.text == reply.message.text
    return reply, sink


async def refused(*replies: Reply, request: ModelRequest = REQUEST, **changes: float) -> ModelError:
    """The error instead of an answer; what was streamed is what the error takes back."""
    sink = RecordingSink()
    async with FakeProvider() as provider, opened(provider.url, **changes) as model, asyncio.timeout(WAIT_S):
        provider.queue(*replies)
        with pytest.raises(ModelError) as caught:
            await model.reply(request, sink)
    assert caught.value.partial == sink.text
    return caught.value


def stream(*chunks: object, done: bool = True) -> Raw:
    """A stream of these chunks as they are."""
    return Raw(*(sse(chunk) for chunk in chunks), *([DONE] if done else []))


def choice(delta: object = None, finish: object = None) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


STOP = choice({}, "stop")
