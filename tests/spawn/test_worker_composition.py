"""A worker of the whole app is wired as the app is: the same tools, the same settings, none of the keys."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from xclaw.app import App, open_app
from xclaw.contracts.agents import Agent
from xclaw.contracts.events import RunStarted, ToolCallEnded
from xclaw.contracts.models import ToolSpec
from xclaw.contracts.tools import ToolContext, ToolOutput
from xclaw.runtime.runs import RunRequest
from xclaw.settings import Overrides, Settings, load_settings

CALLS = [
    {"calls": [{"name": "scratchpad_write", "arguments": {"name": "plan", "text": "two letters"}}]},
    {"calls": [{"name": "scratchpad_read", "arguments": {"name": "plan"}}]},
    {"text": "Done."},
]


def settings_in(home: Path, rules: list[dict[str, object]]) -> Settings:
    (home / "rules.json").write_text(json.dumps(rules))
    env = {"XCLAW_HOME": str(home), "HOME": str(home)}
    chain = (f"script:{home / 'rules.json'}",)
    return load_settings(cwd=home, env=env, overrides=Overrides(models=chain))


async def events(app: App, agent: str) -> list[object]:
    async with asyncio.timeout(20):
        handle = await app.runs.start(RunRequest("go", "s", agent))
        await handle.result()
        return [entry.event for entry in await app.journal.read_tree(handle.root_id)]


def test_a_worker_has_the_tools_that_the_app_says_it_has(tmp_path: Path) -> None:
    """Each is asked for by name, so that one that is wired on one side only would be unknown there."""
    settings = settings_in(
        tmp_path,
        [
            {
                "agent": "forky",
                "replies": [
                    *CALLS[:2],
                    {"calls": [{"name": "nonsense", "arguments": {}}]},
                    {"text": "Done."},
                ],
            }
        ],
    )

    async def main() -> None:
        agent = Agent(
            "forky",
            "f",
            "You are forky.",
            isolation="forked",
            orchestrator=True,
            memory=True,
            source="python",
        )
        async with open_app(settings, agents=[agent]) as app:
            found = await events(app, "forky")
        started = next(event for event in found if isinstance(event, RunStarted))
        assert "scratchpad_read" in started.tools
        assert "remember" in started.tools
        assert "workflow" not in started.tools
        ends = [event for event in found if isinstance(event, ToolCallEnded)]
        assert [event.ok for event in ends] == [True, True, False]
        assert "two letters" in ends[1].content
        assert all(f"{name}" in ends[2].content for name in started.tools)

    asyncio.run(main())


class _Given:
    spec = ToolSpec("given", "Given in Python.", {"type": "object", "properties": {}})
    replayable = True
    timeout_s = None

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        return ToolOutput("given")


@pytest.mark.parametrize("isolation", ["local", "forked"])
def test_a_tool_of_this_process_alone_is_refused_to_a_forked_agent_that_names_it(
    tmp_path: Path, isolation: str
) -> None:
    settings = settings_in(tmp_path, [{"agent": "forky", "replies": [{"text": "Done."}]}])

    async def main() -> None:
        agent = Agent("forky", "f", "You are forky.", tools=("given",), isolation=isolation, source="python")  # pyright: ignore[reportArgumentType] - one of the kinds
        async with open_app(settings, agents=[agent], tools=[_Given()]) as app, asyncio.timeout(20):
            handle = await app.runs.start(RunRequest("go", "s", "forky"))
            result = await handle.result()
        if isolation == "local":
            assert result.outcome == "success"
        else:
            assert result.outcome == "error"
            assert "given exist in xclaw's own process only" in result.reason

    asyncio.run(main())


def test_a_script_is_taken_from_the_user_s_own_agents_only(tmp_path: Path) -> None:
    """A repository's file cannot name a program that is run."""
    text = "---\nname: {0}\ndescription: a script\nscript: [mine.py, --mode, debug]\n---\nAnswer.\n"
    project = tmp_path / "project"
    for directory, name in ((tmp_path / "home" / "agents", "own"), (project / ".xclaw" / "agents", "theirs")):
        directory.mkdir(parents=True)
        (directory / f"{name}.md").write_text(text.format(name))
        (directory / "mine.py").write_text("import sys; print('ran', *sys.argv[1:])")
    env = {"XCLAW_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
    (tmp_path / "rules.json").write_text("[]")
    (project / ".git").mkdir()
    chain = (f"script:{tmp_path / 'rules.json'}",)
    settings = load_settings(cwd=project, env=env, overrides=Overrides(models=chain))

    async def main() -> None:
        async with open_app(settings) as app, asyncio.timeout(30):
            own = await (await app.runs.start(RunRequest("go", "s", "own"))).result()
            assert (own.outcome, own.text) == ("success", "ran --mode debug")
            theirs = app.agents.get("theirs")
            assert theirs is not None
            assert theirs.script == ()
            assert any("may name programs" in warning for warning in app.warnings)

    asyncio.run(main())
