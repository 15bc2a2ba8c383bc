"""Other wires, through pydantic-ai's own OpenAI model against the fake provider. See conftest.py."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from wire_asking import KEY, REQUEST, run

from xclaw.contracts.errors import AllModelsFailed, UsageError
from xclaw.contracts.models import Model, ModelProfile
from xclaw.models.catalog import ModelCatalog
from xclaw.models.pydantic_ai import PydanticAIModel
from xclaw.models.settings import ModelsSettings, ProviderSettings
from xclaw.testing.fake_provider import FakeProvider, Status
from xclaw.testing.model_conformance import MODEL_CHECKS, ModelCheck
from xclaw.testing.recording_sink import RecordingSink


def opened(url: str) -> PydanticAIModel:
    settings = ModelsSettings(providers={"openai-chat": ProviderSettings(url, KEY)})
    return PydanticAIModel("openai-chat:fake", settings, profile=ModelProfile(), price=lambda _usage: None)


@asynccontextmanager
async def factory(url: str) -> AsyncGenerator[Model, None]:
    model = opened(url)
    try:
        yield model
    finally:
        await model.close()


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    """Importing the library takes seconds, which are not part of any check."""
    opened("http://127.0.0.1:9/v1")


@pytest.mark.parametrize("check", MODEL_CHECKS, ids=lambda check: check.__name__)
def test_the_other_wires_conform(check: ModelCheck) -> None:
    async def main() -> None:
        async with FakeProvider() as provider:
            await check(factory, provider)

    asyncio.run(main())


def test_retries_are_the_chains_alone() -> None:
    async def main() -> None:
        async with FakeProvider() as provider:
            provider.answer_with(lambda _body: Status(503))
            settings = ModelsSettings(
                providers={"openai-chat": ProviderSettings(provider.url, KEY)}, retries=0
            )
            models = ModelCatalog(settings)
            with pytest.raises(AllModelsFailed, match="HTTP 503"):
                await models(["openai-chat:fake"]).reply(REQUEST, RecordingSink())
            await models.close()
            assert len(provider.requests) == 1

    run(main)


def test_a_setting_that_the_library_refuses_is_a_usage_error_without_the_key() -> None:
    settings = ModelsSettings(providers={"cohere": ProviderSettings("http://h/v1", KEY)})
    with pytest.raises(UsageError, match="cohere:x") as caught:
        PydanticAIModel("cohere:x", settings, profile=ModelProfile(), price=lambda _usage: None)
    assert KEY not in str(caught.value)
