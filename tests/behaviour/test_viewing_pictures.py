"""A picture from a tool to the provider through the whole runtime, and what is stored of it."""

import asyncio
import base64
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from harness import ask, settings_for
from wire import DIALECTS, Body, act, messages, refused_by_providers

from tools.pictures import png
from xclaw.app import App, open_app
from xclaw.contracts.events import ToolCallEnded
from xclaw.testing import FakeProvider
from xclaw.testing.fake_provider import Reply, Text

PICTURE = png(300, 200)
ENCODED = base64.b64encode(PICTURE).decode()


@asynccontextmanager
async def provided(home: Path, dialect: str, *, images: bool) -> AsyncGenerator[tuple[App, FakeProvider]]:
    async with FakeProvider() as provider:
        env = {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": provider.url}
        settings = settings_for(home, "openai:fake", env=env, dialect=dialect)
        profiles = {"openai:fake": {"images": images}}
        async with open_app(replace(settings, models=replace(settings.models, profiles=profiles))) as app:
            yield app, provider


def shown(body: Body) -> list[str]:
    """Data URLs of a request, each with the role that sends it."""
    return [
        f"{message['role']} {part['image_url']['url']}"
        for message in messages(body)
        if isinstance(message["content"], list)
        for part in cast("list[dict[str, dict[str, str]]]", message["content"])
        if "image_url" in part
    ]


def replies(dialect: str) -> list[Reply]:
    deliver = {"path": "plot.png", "content": ENCODED, "encoding": "base64"}
    return [
        act(dialect, ("deliver", deliver)),
        act(dialect, ("view_file", {"path": "plot.png"})),
        Text("It is black."),
    ]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_model_that_sees_is_shown_what_it_views(tmp_path: Path, dialect: str) -> None:
    bodies: list[Body] = []

    async def main() -> None:
        async with asyncio.timeout(20), provided(tmp_path, dialect, images=True) as (app, provider):
            provider.queue(*replies(dialect), Text("Nothing."))
            seen = await ask(app, "look at it")
            assert seen.result.text == "It is black."
            [viewed] = [event for event in seen.events(ToolCallEnded) if event.name == "view_file"]
            assert viewed.content == f"[image: png, 300 x 200 pixels, {len(PICTURE)} bytes: plot.png]"
            assert [image.path for image in viewed.images] == ["plot.png"]
            await ask(app, "what else was there?")
            bodies.extend(recorded.body for recorded in provider.requests)

    asyncio.run(main())
    assert not [problem for body in bodies for problem in refused_by_providers(body)]
    assert [shown(body) for body in bodies[:3]] == [[], [], [f"user data:image/png;base64,{ENCODED}"]]
    assert shown(bodies[3]) == shown(bodies[2]), "the next turn of the conversation shows it again"
    for path in (path for path in tmp_path.rglob("*.db*") if path.is_file()):
        assert PICTURE not in path.read_bytes()


def test_a_model_that_does_not_see_is_told_what_there_is(tmp_path: Path) -> None:
    async def main() -> None:
        async with asyncio.timeout(20), provided(tmp_path, "native", images=False) as (app, provider):
            provider.queue(*replies("native"))
            seen = await ask(app, "look at it")
            [viewed] = [event for event in seen.events(ToolCallEnded) if event.name == "view_file"]
            assert viewed.content.endswith("bytes: plot.png]\n[you cannot be shown pictures]")
            assert viewed.images == ()
            assert shown(provider.requests[-1].body) == []

    asyncio.run(main())
