"""The chat-completions adapter against the suite that every adapter of that wire passes."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from xclaw.models.openai.client import Endpoint, OpenAIModel
from xclaw.models.openai.connections import Connections
from xclaw.testing.fake_provider import FakeProvider
from xclaw.testing.model_conformance import MODEL_CHECKS, ModelCheck


@asynccontextmanager
async def open_model(url: str) -> AsyncGenerator[OpenAIModel, None]:
    connections = Connections()
    try:
        yield OpenAIModel("openai:fake", Endpoint(url, "sk-test-key"), connections)
    finally:
        await connections.close()


@pytest.mark.parametrize("check", MODEL_CHECKS, ids=lambda check: check.__name__)
def test_the_adapter_conforms(check: ModelCheck) -> None:
    async def main() -> None:
        async with FakeProvider() as provider:
            await check(open_model, provider)

    asyncio.run(main())
