"""The main job end to end on scripted models (SPEC C3, D1, D6, E1, E5)."""

import asyncio
from pathlib import Path

import pytest
from harness import Script, Seen, ask, run_script, settings_for, write_script

from xclaw.app import open_app
from xclaw.contracts.agents import Agent
from xclaw.contracts.errors import UsageError
from xclaw.contracts.events import (
    ArtifactDelivered,
    ChildEnded,
    ChildSpawned,
    RunStarted,
    ToolCallEnded,
    Warned,
)
from xclaw.tools.functions import tool

SPLIT: Script = [
    {
        "agent": "orchestrator",
        "replies": [
            {
                "calls": [
                    {"name": "delegate", "arguments": {"agent": "coder", "task": "Write slug.py with slugify()."}},
                    {"name": "delegate", "arguments": {"agent": "writer", "task": "Write a README for slugify()."}},
                ]
            },
            {"text": "Both files are delivered."},
        ],
    },
    {
        "agent": "coder",
        "replies": [
            {"calls": [{"name": "deliver", "arguments": {"path": "{{delivery_dir}}/slug.py", "content": "def slugify(): ..."}}]},
            {"text": {"status": "success", "summary_data": {"exports": ["slugify"]}, "artifact_pointers": {"code": "{{pointer:slug.py}}"}}},
        ],
    },
    {
        "agent": "writer",
        "replies": [
            {"calls": [{"name": "deliver", "arguments": {"path": "README.md", "content": "# slugify"}}]},
            {"text": {"status": "success", "summary_data": {"sections": 1}, "artifact_pointers": {"readme": "{{pointer:README.md}}"}}},
        ],
    },
]  # fmt: skip


def test_an_orchestrator_splits_a_request_and_two_workers_deliver_files(tmp_path: Path) -> None:
    seen = run_script(tmp_path, SPLIT, "Write slugify with a README")
    assert (seen.result.outcome, seen.result.text) == ("success", "Both files are delivered.")
    assert {e.agent for e in seen.events(RunStarted)} == {"orchestrator", "coder", "writer"}
    delivered = [e.pointer for e in seen.events(ArtifactDelivered)]
    assert sorted(Path(p.path).name for p in delivered) == ["README.md", "slug.py"]
    assert all(Path(p.path).read_bytes() for p in delivered)
    spawned = seen.events(ChildSpawned)
    assert all(e.child_session_id == f"s:{e.task.agent}:{e.task_id}" for e in spawned)
    assert [e.result.succeeded for e in seen.events(ChildEnded)] == [True, True]


def test_delegates_of_one_turn_that_need_one_another_get_a_hint(tmp_path: Path) -> None:
    """The fan-out hint sees all delegates of a turn; it is a note, never a refusal."""
    tasks = [
        "Write the module parse.py with parse(text).",
        "Review the code from the first task for errors and list them.",
    ]
    calls = [{"name": "delegate", "arguments": {"agent": "coder", "task": task}} for task in tasks]
    done = {"status": "success", "summary_data": {"done": True}, "artifact_pointers": {}}
    script: Script = [
        {"agent": "orchestrator", "replies": [{"calls": calls}, {"text": "Done."}]},
        {"agent": "coder", "replies": [{"text": done}]},
    ]
    seen = run_script(tmp_path, script, "Write a parser and have it reviewed")
    assert [e.code for e in seen.events(Warned)].count("fan_out") == 1
    assert sum("starts at the same time" in e.content for e in seen.events(ToolCallEnded)) == 1
    assert seen.result.succeeded


def test_an_agent_and_a_tool_given_in_python_work_like_the_built_in_ones(tmp_path: Path) -> None:
    """C1: agents are defined in Python or in files; tools are functions."""

    @tool(replayable=True)
    def population(city: str) -> str:
        """Look a city's population up.

        Args:
            city: Its name.
        """
        return f"{city}: 3,700,000"

    counter = Agent("counter", "Knows cities.", "You know cities.", tools=("population",))
    done = {"status": "success", "summary_data": {"population": 3_700_000}, "artifact_pointers": {}}
    task = {"agent": "counter", "task": "Look up how many people live in Berlin."}
    script: Script = [
        {"agent": "orchestrator", "replies": [{"calls": [{"name": "delegate", "arguments": task}]}, {"text": "3.7m"}]},
        {"agent": "counter", "replies": [{"calls": [{"name": "population", "arguments": {"city": "Berlin"}}]}, {"text": done}]},
    ]  # fmt: skip

    async def main() -> Seen:
        settings = settings_for(tmp_path, write_script(tmp_path, script))
        async with asyncio.timeout(20), open_app(settings, agents=[counter], tools=[population]) as app:
            return await ask(app, "How many people live in Berlin?")

    seen = asyncio.run(main())
    assert [e.content for e in seen.events(ToolCallEnded) if e.name == "population"] == ["Berlin: 3,700,000"]
    assert seen.result.text == "3.7m"


def test_an_agent_that_asks_for_more_isolation_than_there_is_is_not_run(tmp_path: Path) -> None:
    """Running it in this process instead would be a silent loss of isolation."""
    apart = Agent("apart", "Works apart.", "Work.", isolation="remote")
    task = {"agent": "apart", "task": "Compute the sum of 1 and 2."}
    script: Script = [
        {"agent": "orchestrator", "replies": [{"calls": [{"name": "delegate", "arguments": task}]}, {"text": "No."}]}
    ]  # fmt: skip

    async def main() -> Seen:
        settings = settings_for(tmp_path, write_script(tmp_path, script))
        async with asyncio.timeout(20), open_app(settings, agents=[apart]) as app:
            with pytest.raises(UsageError, match="isolation: remote"):
                await ask(app, "go", agent="apart")
            return await ask(app, "go")

    seen = asyncio.run(main())
    [refused] = seen.events(ToolCallEnded)
    assert "isolation: remote" in refused.content
    assert not seen.events(ChildSpawned)


@pytest.mark.parametrize(
    ("worker", "outcome"),
    [
        ({"status": "error", "summary_data": {"why": "no"}, "artifact_pointers": {}}, "completed_unverified"),
        ({"status": "success", "summary_data": {"a": 1}, "artifact_pointers": {}}, "completed_unverified"),
    ],
)
def test_a_root_whose_workers_brought_nothing_is_no_plain_success(
    tmp_path: Path, worker: dict[str, object], outcome: str
) -> None:
    """Success is verified: work was handed out for a file and there is none, or every worker failed."""
    task = {"agent": "coder", "task": "Write the file slug.py with slugify(text)."}
    script: Script = [
        {"agent": "orchestrator", "replies": [{"calls": [{"name": "delegate", "arguments": task}]}, {"text": "Done!"}]},
        {"agent": "coder", "replies": [{"text": worker}]},
    ]  # fmt: skip
    seen = run_script(tmp_path, script, "Write the file slug.py")
    assert seen.result.outcome == outcome
    assert seen.result.reason
