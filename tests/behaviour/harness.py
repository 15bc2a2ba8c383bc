"""Runs the whole runtime in a temporary home, on scripted models or against a fake provider."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar, cast

import yaml

from xclaw.app import App, open_app
from xclaw.contracts.agents import Limits
from xclaw.contracts.events import Entry, Event, TextDelta
from xclaw.contracts.results import Result
from xclaw.runtime.runs import RunHandle, RunRequest
from xclaw.runtime.settings import RuntimeSettings
from xclaw.settings import Overrides, Settings, load_settings
from xclaw.testing import FakeProvider

Script = list[dict[str, object]]
E = TypeVar("E", bound=Event)


@dataclass
class Seen:
    """What a run said and did."""

    result: Result
    entries: list[Entry] = field(default_factory=list[Entry])

    def events(self, kind: type[E]) -> list[E]:
        return [entry.event for entry in self.entries if isinstance(entry.event, kind)]

    @property
    def text(self) -> str:
        """Streamed text of all runs, in order."""
        return "".join(e.event.text for e in self.entries if isinstance(e.event, TextDelta))


def settings_for(
    home: Path, *models: str, env: Mapping[str, str] | None = None, **runtime: object
) -> Settings:
    home.mkdir(parents=True, exist_ok=True)
    settings = load_settings(
        cwd=home,
        env={"XCLAW_HOME": str(home), "HOME": str(home), **(env or {})},
        overrides=Overrides(models=models or None),
    )
    bounds = replace(settings.runtime, **runtime)  # pyright: ignore[reportArgumentType] - test shorthand
    assert isinstance(bounds, RuntimeSettings)
    return replace(settings, runtime=bounds)


def write_script(home: Path, script: Script, name: str = "script.yaml") -> str:
    """Write a script file; answers its model string."""
    home.mkdir(parents=True, exist_ok=True)
    path = home / name
    path.write_text(yaml.safe_dump(script, allow_unicode=True), encoding="utf-8")
    return f"script:{path}"


async def follow(handle: RunHandle) -> Seen:
    entries: list[Entry] = []
    handle.subscribe(entries.append)
    result = await handle.result()
    return Seen(result, entries)


async def ask(app: App, text: str, session: str = "s", **fields: object) -> Seen:
    """One message, to its end."""
    request = RunRequest(text, session, **fields)  # pyright: ignore[reportArgumentType] - test shorthand
    return await follow(await app.runs.start(request))


def run_script(home: Path, script: Script, text: str = "go", **runtime: object) -> Seen:
    """One request on a scripted model."""

    async def main() -> Seen:
        async with (
            asyncio.timeout(20),
            open_app(settings_for(home, write_script(home, script), env=None, **runtime)) as app,
        ):
            return await ask(app, text)

    return asyncio.run(main())


@asynccontextmanager
async def provided(
    home: Path, *, window: int | None = None, **runtime: object
) -> AsyncGenerator[tuple[App, FakeProvider]]:
    """An app whose only model is a fake provider's, over real HTTP. `window`: its context, in tokens."""
    async with FakeProvider() as provider:
        env = {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": provider.url}
        settings = settings_for(home, "openai:fake", env=env, **runtime)
        profiles = {"openai:fake": {"context_tokens": window}} if window else {}
        settings = replace(settings, models=replace(settings.models, backoff_s=0.001, profiles=profiles))
        async with open_app(settings) as app:
            yield app, provider


def against_provider(
    home: Path,
    scenario: Callable[[App, FakeProvider], Awaitable[None]],
    *,
    window: int | None = None,
    **runtime: object,
) -> None:
    async def main() -> None:
        async with asyncio.timeout(20), provided(home, window=window, **runtime) as (app, provider):
            await scenario(app, provider)

    asyncio.run(main())


__all__ = [
    "Limits",
    "Script",
    "Seen",
    "against_provider",
    "ask",
    "follow",
    "provided",
    "run_script",
    "settings_for",
    "write_script",
]


def messages_of(body: Mapping[str, object]) -> list[dict[str, object]]:
    """What a request to a provider said."""
    return cast("list[dict[str, object]]", body["messages"])
