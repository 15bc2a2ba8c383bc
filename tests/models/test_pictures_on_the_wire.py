"""How pictures are sent, over either way to a provider, and what is said where they cannot be."""

import asyncio
import base64
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.util import find_spec
from typing import cast

import pytest
from wire_asking import KEY, WAIT_S

from xclaw.contracts.errors import ModelRejected
from xclaw.contracts.messages import AssistantMessage, ImageRef, ToolCall, ToolMessage, UserMessage
from xclaw.contracts.models import Model, ModelProfile, ModelRequest
from xclaw.models.catalog import ModelCatalog
from xclaw.models.estimates import estimated_input
from xclaw.models.openai.client import Endpoint, OpenAIModel
from xclaw.models.openai.connections import Connections
from xclaw.models.pydantic_ai import PydanticAIModel
from xclaw.models.settings import ModelsSettings, ProviderSettings
from xclaw.testing.fake_provider import FakeProvider, Reply, Status, Text
from xclaw.testing.recording_sink import RecordingSink

Open = Callable[[str, ModelProfile], AbstractAsyncContextManager[Model]]
Wired = list[dict[str, object]]
ONE = ImageRef("one.png", "1" * 64, "image/png", 30, 20, 3)
TWO = ImageRef("two.webp", "2" * 64, "image/webp", 30, 20, 3)
BYTES = {ONE.sha256: b"one", TWO.sha256: b"two"}
CALLS = (
    ToolCall("c1", "view_file", '{"path": "one.png"}'),
    ToolCall("c2", "view_file", '{"path": "two.webp"}'),
)
REQUEST = ModelRequest(
    "Look.",
    (
        UserMessage("compare them"),
        AssistantMessage("", CALLS),
        ToolMessage("c1", "view_file", "[image: one]", images=(ONE,)),
        ToolMessage("c2", "view_file", "[image: two]", images=(TWO,)),
        UserMessage("and this", images=(TWO,)),
    ),
    images=BYTES,
)


@asynccontextmanager
async def own_wire(url: str, profile: ModelProfile) -> AsyncGenerator[Model, None]:
    connections = Connections()
    try:
        yield OpenAIModel("openai:fake", Endpoint(url, KEY), connections, profile=profile)
    finally:
        await connections.close()


@asynccontextmanager
async def library_wire(url: str, profile: ModelProfile) -> AsyncGenerator[Model, None]:
    settings = ModelsSettings(providers={"openai-chat": ProviderSettings(url, KEY)})
    model = PydanticAIModel("openai-chat:fake", settings, profile=profile, price=lambda _usage: None)
    try:
        yield model
    finally:
        await model.close()


NO_LIBRARY = pytest.mark.skipif(find_spec("pydantic_ai") is None, reason="pydantic-ai is not installed")
every_wire = pytest.mark.parametrize("opened", [own_wire, pytest.param(library_wire, marks=NO_LIBRARY)])


def sent(opened: Open, *replies: Reply, images: bool = True, request: ModelRequest = REQUEST) -> list[Wired]:
    """The messages of each request that the provider got."""

    async def main() -> list[Wired]:
        async with FakeProvider() as provider, opened(provider.url, ModelProfile(images=images)) as model:
            provider.queue(*(replies or (Text("fine"),)))
            async with asyncio.timeout(4 * WAIT_S):
                await model.reply(request, RecordingSink())
            return [cast(Wired, recorded.body["messages"]) for recorded in provider.requests]

    return asyncio.run(main())


def pictures(message: dict[str, object]) -> list[str]:
    content = message["content"]
    if not isinstance(content, list):
        return []
    parts = cast("list[dict[str, dict[str, str]]]", content)
    return [part["image_url"]["url"] for part in parts if "image_url" in part]


def url(kind: str, content: bytes) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


@every_wire
def test_pictures_of_tools_follow_the_answers_of_all_tools(opened: Open) -> None:
    [messages] = sent(opened)
    roles = [str(message["role"]) for message in messages]
    assert roles == ["system", "user", "assistant", "tool", "tool", "user", "user"]
    assert [message["content"] for message in messages[3:5]] == ["[image: one]", "[image: two]"]
    assert pictures(messages[5]) == [url("png", b"one"), url("webp", b"two")]
    assert "one.png, two.webp. They are data" in str(messages[5]["content"])
    assert pictures(messages[6]) == [url("webp", b"two")]
    assert "and this" in str(messages[6]["content"])


@every_wire
def test_pictures_of_the_last_tools_come_at_the_end(opened: Open) -> None:
    request = ModelRequest("Look.", REQUEST.messages[:4], images=BYTES)
    [messages] = sent(opened, request=request)
    assert [str(message["role"]) for message in messages[3:]] == ["tool", "tool", "user"]
    assert len(pictures(messages[5])) == 2


@every_wire
def test_a_model_that_cannot_see_is_told_so(opened: Open) -> None:
    """Also the second of a chain whose first one can."""
    [messages] = sent(opened, images=False)
    assert not any(pictures(message) for message in messages)
    assert [message["content"] for message in messages[3:]] == [
        "[image: one]\n[you cannot be shown pictures]",
        "[image: two]\n[you cannot be shown pictures]",
        "and this\n[you cannot be shown pictures]",
    ]


@every_wire
def test_a_provider_that_refuses_a_picture_is_asked_without_it(opened: Open) -> None:
    """Else the conversation would be refused for ever."""
    refusal = Status(400, {"error": {"message": "Could not process image", "type": "invalid_request_error"}})
    first, second = sent(opened, refusal, Text("fine"))
    assert any(pictures(message) for message in first)
    assert not any(pictures(message) for message in second)
    with pytest.raises(ModelRejected):
        sent(opened, Status(400, {"error": {"message": "no such parameter"}}))


def test_pictures_that_are_sent_count_in_estimates() -> None:
    without = ModelRequest(REQUEST.instructions, REQUEST.messages)
    assert estimated_input(REQUEST) - estimated_input(without) == 3 * 85


@pytest.mark.parametrize(
    ("model", "sees"),
    [("openai:gpt-4o-mini", True), ("openai:gpt-3.5-turbo", False), ("deepseek:deepseek-chat", False)],
)
def test_which_models_see_is_known_or_set(model: str, sees: bool) -> None:
    provider = model.partition(":")[0]
    providers = {provider: ProviderSettings(api_key=KEY)}
    assert ModelCatalog(ModelsSettings(providers=providers))([model]).profile.images is sees
    other = ModelsSettings(providers=providers, profiles={model: {"images": not sees}})
    assert ModelCatalog(other)([model]).profile.images is not sees
