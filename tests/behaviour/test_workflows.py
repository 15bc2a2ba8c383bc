"""Workflow scripts in whole trees: asked for with a quote, journaled, found again after a crash (SPEC K6)."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from approving import asked, done, opened, say
from harness import Script, Seen, ask, follow, settings_for, write_script

from xclaw.app import App, open_app
from xclaw.cli.workflow import workflow_agent
from xclaw.contracts.approvals import Answer
from xclaw.contracts.errors import UsageError
from xclaw.contracts.events import ApprovalAsked, ChildSpawned, RunStarted, ToolCallEnded
from xclaw.contracts.workflows import WorkflowNoted
from xclaw.patterns.workflows.file_model import message_for
from xclaw.runtime.runs import RunRequest

CODER: Script = [{"agent": "coder", "replies": [done("x")]}]
TWO = "parallel([agent('coder', f'Write about {t} in one line.')['said'] for t in ['alpha', 'beta']])"


def orchestrated(script: str, **more: object) -> Script:
    call: dict[str, object] = {"name": "workflow", "arguments": {"script": script, **more}}
    return [{"agent": "orchestrator", "replies": [{"calls": [call]}, {"text": "all done"}]}, *CODER]


def workflow_result(seen: Seen) -> ToolCallEnded:
    return next(event for event in seen.events(ToolCallEnded) if event.name == "workflow")


async def file_run(app: App, script: str, **arguments: object) -> Seen:
    return await ask(app, message_for(script, arguments), agent="workflow")


def test_an_orchestrator_runs_a_workflow_once_a_person_has_seen_the_quote(tmp_path: Path) -> None:
    """J1: `acts`; who answers is told how many agents, which, for how much, and sees the script."""

    async def main() -> None:
        async with asyncio.timeout(30), opened(tmp_path, orchestrated(TWO)) as app:
            handle = await app.runs.start(
                RunRequest("go", "s", limits=replace(RunRequest("", "").limits, max_tokens=90_000))
            )
            watching = asyncio.create_task(follow(handle))
            (approval,) = await asked(app)
            assert approval.tool == "workflow"
            assert "at most 2 agents (counted in the script): coder" in approval.why
            assert "the run has left" in approval.why
            assert "parallel([" in approval.arguments
            assert (
                len(
                    [
                        row
                        for row in await app.journal.read_tree(handle.root_id)
                        if isinstance(row.event, ChildSpawned)
                    ]
                )
                == 0
            )
            await say(app, approval)
            seen = await watching
        assert seen.result.text == "all done"
        assert '"result": ["x", "x"]' in workflow_result(seen).content
        children = seen.events(ChildSpawned)
        assert {child.task.mode for child in children} == {"workflow"}
        assert len([event for event in seen.events(RunStarted) if event.agent == "coder"]) == 2

    asyncio.run(main())


def test_a_script_that_cannot_run_is_never_asked_about(tmp_path: Path) -> None:
    async def main() -> None:
        async with asyncio.timeout(30), opened(tmp_path, orchestrated("import os")) as app:
            seen = await ask(app, "go")
        assert "line 1: os cannot be imported" in workflow_result(seen).content
        assert seen.events(ApprovalAsked) == []

    asyncio.run(main())


def test_nobody_there_is_a_denial(tmp_path: Path) -> None:
    async def main() -> None:
        async with asyncio.timeout(30), opened(tmp_path, orchestrated(TWO), unattended="deny") as app:
            seen = await ask(app, "go")
        assert "nobody is there to be asked" in workflow_result(seen).content
        assert seen.events(ChildSpawned) == []

    asyncio.run(main())


def test_an_answer_may_be_another_script(tmp_path: Path) -> None:
    async def main() -> None:
        async with asyncio.timeout(30), opened(tmp_path, orchestrated(TWO)) as app:
            handle = await app.runs.start(RunRequest("go", "s"))
            watching = asyncio.create_task(follow(handle))
            (approval,) = await asked(app)
            with pytest.raises(UsageError, match="script"):
                await app.runs.approvals.answer(
                    approval.approval_id, Answer("edit", arguments={"quote": {}}), by="owner"
                )
            await say(app, approval, "edit", arguments={"script": "'nothing to do'"})
            seen = await watching
        assert '"result": "nothing to do"' in workflow_result(seen).content
        assert seen.events(ChildSpawned) == []

    asyncio.run(main())


def test_more_agents_than_a_run_may_have_children_are_possible(tmp_path: Path) -> None:
    """The quote bounds a workflow, not the width of a run that a model steers by hand."""
    many = "len(parallel([agent('coder', f'Write about topic {n}.') for n in range(20)]))"

    async def main() -> None:
        async with asyncio.timeout(60), opened(tmp_path, orchestrated(many), allow=("workflow",)) as app:
            seen = await ask(app, "go")
        assert '"result": "20"' in workflow_result(seen).content

    asyncio.run(main())


def test_a_file_is_a_run_of_its_own_and_an_edited_one_takes_what_it_can(tmp_path: Path) -> None:
    """Resume by content, over two generations; another conversation's run is nobody's business."""

    async def main() -> None:
        agents = [workflow_agent()]
        async with asyncio.timeout(60), opened(tmp_path, CODER, agents, allow=("workflow",)) as app:
            first = await file_run(app, TWO)
            assert first.result.text == '[\n  "x",\n  "x"\n]'
            second = await file_run(app, TWO.replace("beta", "gamma"), resume=_root(first))
            third = await file_run(app, TWO.replace("alpha", "delta"), resume=_root(second))
            assert [len(seen.events(ChildSpawned)) for seen in (first, second, third)] == [2, 1, 1]
            assert [event.text for event in third.events(WorkflowNoted)] == [
                "coder: Write about beta in one line."
            ]
            foreign = await ask(app, message_for(TWO, {"resume": _root(first)}), "other", agent="workflow")
            assert foreign.result.outcome == "error"
            assert "no run" in foreign.result.reason
            assert foreign.events(ChildSpawned) == []

    asyncio.run(main())


def test_a_workflow_that_fails_is_a_run_that_fails(tmp_path: Path) -> None:
    async def main() -> None:
        agents = [workflow_agent()]
        async with asyncio.timeout(30), opened(tmp_path, CODER, agents, allow=("workflow",)) as app:
            seen = await file_run(app, "1 / 0")
        assert seen.result.outcome == "error"
        assert "line 1: ZeroDivisionError" in seen.result.reason

    asyncio.run(main())


SLOW = """
import asyncio, sys
from dataclasses import replace
sys.path[:0] = {paths!r}
from harness import settings_for
from xclaw.app import open_app
from xclaw.cli.workflow import workflow_agent
from xclaw.runtime.runs import RunRequest
from xclaw.contracts.events import ChildEnded
from pathlib import Path

async def main():
    settings = settings_for(Path({home!r}), {model!r})
    settings = replace(settings, permissions=replace(settings.permissions, allow=("workflow",)))
    async with open_app(settings, agents=[workflow_agent()]) as app:
        handle = await app.runs.start(RunRequest({script!r}, "s", agent="workflow"))
        ended = 0
        def see(entry):
            nonlocal ended
            ended += isinstance(entry.event, ChildEnded)
            if ended == 2:
                print(handle.root_id, flush=True)
                ended += 1
        handle.subscribe(see)
        await handle.result()
asyncio.run(main())
"""


def test_after_a_crash_finished_agents_are_not_asked_again(tmp_path: Path) -> None:
    """K6: the process is killed in the middle; the script runs again and finds what it had asked."""
    script = (
        "\n".join(f"r{n} = agent('coder', 'Write about topic {n} in one line.')" for n in range(6))
        + "\n[r['said'] for r in [r0, r1, r2, r3, r4, r5]]"
    )
    model = write_script(tmp_path, CODER)
    root = _killed_after_two(tmp_path, model, script)

    async def main() -> tuple[Seen, Sequence[str]]:
        settings = settings_for(tmp_path, model)
        settings = replace(settings, permissions=replace(settings.permissions, allow=("workflow",)))
        async with asyncio.timeout(30), open_app(settings) as app:
            seen = await follow(await app.runs.resume(root))
            tree = await app.journal.read_tree(root)
            return seen, [e.event.task.text for e in tree if isinstance(e.event, ChildSpawned)]

    seen, asked_for = asyncio.run(main())
    assert seen.result.outcome == "success"
    assert seen.result.text.count('"x"') == 6
    assert sorted(asked_for) == [f"Write about topic {n} in one line." for n in range(6)]
    assert len([event for event in seen.events(RunStarted) if event.agent == "coder"]) <= 4


def _killed_after_two(home: Path, model: str, script: str) -> str:
    here = Path(__file__).parent
    code = SLOW.format(paths=[str(here), str(here.parent)], home=str(home), model=model, script=script)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        root = process.stdout.readline().strip()
        os.kill(process.pid, signal.SIGKILL)
    assert root
    return root


def _root(seen: Seen) -> str:
    return seen.entries[0].address.root_id
