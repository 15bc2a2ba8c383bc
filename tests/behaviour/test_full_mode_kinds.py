"""Full mode for every kind of sub-agent: forked workers, members of teams, coordinators and their checks."""

import asyncio
import os
import signal
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from behaviour.coordinated import (
    EXPLORER,
    QUESTIONS,
    answers,
    checking,
    coordinator,
    phases,
    planned,
    reported,
    worker,
)
from behaviour.full import GO_ON, call, full, handing_out, keepers, outputs, settings_of, shell, with_app
from behaviour.full import worker as full_worker
from behaviour.harness import Script, ask, settings_for, write_script
from xclaw.app import App
from xclaw.contracts.events import ChildEnded, PhaseChanged, RunStarted, ToolCallEnded
from xclaw.patterns.coordinator.settings import CoordinatorSettings
from xclaw.runtime.permissions import PermissionSettings
from xclaw.runtime.runs import RunRequest

TASK = "Write the module app.py with the constant X and deliver it."
FORKED = "---\nname: forker\ndescription: Works elsewhere.\nisolation: forked\n---\nYou write modules.\n"


def _with_forker(home: Path) -> None:
    agents = home / "agents"
    agents.mkdir(parents=True)
    (agents / "forker.md").write_text(FORKED)


def test_a_forked_worker_has_a_sandbox_of_its_own(tmp_path: Path) -> None:
    """F3, G3: built in the worker's process, without keys or the environment."""
    _with_forker(tmp_path)
    script = [
        handing_out(("forker", TASK)),
        full_worker(
            "forker",
            shell("pwd; echo 'X = 1' > app.py; env | grep -c XCLAW; cat /proc/*/environ | grep -c OPENAI"),
            call("deliver", path="app.py", from_file="app.py"),
        ),
    ]

    async def scenario(app: App) -> None:
        seen = await ask(app, "go")
        forker = next(event for event in seen.events(RunStarted) if event.agent == "forker")
        assert forker.sandbox == "bubblewrap"
        (said,) = outputs(seen)
        assert said.content.startswith("/workspace\n0\n0\n")
        (ended,) = seen.events(ChildEnded)
        assert list(ended.result.pointers) == ["app.py"]
        assert Path(ended.result.pointers["app.py"].path).read_text() == "X = 1\n"

    with_app(settings_of(tmp_path, script), scenario)


def test_what_a_forked_worker_hands_out_is_sandboxed_too(tmp_path: Path) -> None:
    """F3, G3: the runtime checks that such a run is what it would have made of it, paths and all."""
    agents = tmp_path / "agents"
    agents.mkdir(parents=True)
    tools = "tools: delegate, deliver, shell"
    (agents / "forker.md").write_text(FORKED.replace("isolation: forked", f"isolation: forked\n{tools}"))
    script: Script = [
        handing_out(("forker", TASK)),
        full_worker(
            "forker",
            call("deliver", path="given.txt", content="given"),
            call(
                "delegate",
                agent="reviewer",
                task="Review the file that you are given.",
                inputs=["{{pointer:given.txt}}"],
            ),
            shell("ls /input"),
        ),
        full_worker(
            "reviewer", shell("cat /input/given.txt"), call("deliver", path="review.md", content="good")
        ),
    ]

    async def scenario(app: App) -> None:
        seen = await ask(app, "go")
        reviewer = next(event for event in seen.events(RunStarted) if event.agent == "reviewer")
        assert "[Input artifacts: /input/given.txt]" in reviewer.input
        assert reviewer.sandbox == "bubblewrap"
        read, listed = outputs(seen)
        assert read.content == "given\n[exit code 0]"
        assert listed.content == "review.md\n[exit code 0]"
        assert [event.result.outcome for event in seen.events(ChildEnded)] == ["success", "success"]

    with_app(settings_of(tmp_path, script), scenario)


def test_the_sandbox_of_a_forked_worker_dies_with_it(tmp_path: Path) -> None:
    """F3, G3: after `kill -9` of the worker in the middle of a command."""
    _with_forker(tmp_path)
    script = [
        handing_out(("forker", TASK)),
        full_worker("forker", shell("echo > begun; setsid sleep 60; sleep 60")),
    ]

    async def scenario(app: App) -> None:
        handle = await app.runs.start(RunRequest("go", "s"))
        agents = tmp_path / "workspace" / "agents"
        while not list(agents.glob("forker/*/begun")):  # noqa: ASYNC110 - a file of another process is waited for
            await asyncio.sleep(0)
        (worker_pid,) = _workers()
        started = keepers(worker_pid)
        assert len(started) == 1
        ends = [os.pidfd_open(pid) for pid in started]
        os.kill(worker_pid, signal.SIGKILL)
        assert (await handle.result()).succeeded
        await _all_ended(ends)
        entries = await app.journal.read_tree(handle.root_id)
        (ended,) = [entry.event for entry in entries if isinstance(entry.event, ChildEnded)]
        assert "killed by SIGKILL" in ended.result.reason

    with_app(settings_of(tmp_path, script), scenario)


def test_runs_that_wait_for_one_another_share_the_places_there_are(tmp_path: Path) -> None:
    """F3, K3: with one place for a lead and those below it, nobody waits for ever."""
    agents = tmp_path / "agents"
    agents.mkdir(parents=True)
    (agents / "lead.md").write_text(
        "---\nname: lead\ndescription: Leads.\ntools: shell, delegate, deliver\n---\nYou lead.\n"
    )
    part = call("delegate", agent="coder", task="Write the module part.py with the constant Y.")
    script: Script = [
        handing_out(("lead", TASK)),
        full_worker("lead", shell("echo mine > file"), part, shell("cat file; ls /input")),
        full_worker("coder", shell("ls; echo x"), call("deliver", path="part.py", content="Y = 1\n")),
    ]

    async def scenario(app: App) -> None:
        seen = await ask(app, "go")
        contents = [event.content for event in outputs(seen)]
        assert contents == ["[exit code 0]", "x\n[exit code 0]", "mine\npart.py\n[exit code 0]"]

    with_app(settings_of(tmp_path, script, max_open=1), scenario)


def test_members_of_a_team_each_have_a_sandbox(tmp_path: Path) -> None:
    """F3, G5."""
    goal = "Each of you writes a file about the number seven and delivers it."
    team = call("create_team", name="pair", strategy="parallel", agents=["coder", "writer"], goal=goal)
    script: Script = [
        {"agent": "orchestrator", "replies": [team, GO_ON]},
        *(
            {
                "agent": agent,
                "replies": [
                    shell("ls; echo mine > file; cat file"),
                    call("deliver", path=f"{agent}.md", from_file="file"),
                    {"text": "ready"},
                ],
            }
            for agent in ("coder", "writer")
        ),
    ]

    async def scenario(app: App) -> None:
        seen = await ask(app, "go")
        contents = [event.content for event in outputs(seen)]
        assert contents == ["mine\n[exit code 0]"] * 2, [
            event.content for event in seen.events(ToolCallEnded)
        ]
        assert all(
            event.input.startswith("[Task workspace: /workspace]\n\n")
            for event in seen.events(RunStarted)
            if event.depth
        )

    with_app(settings_of(tmp_path, script), scenario)


def test_a_coordinator_verifies_in_sandboxes(tmp_path: Path) -> None:
    """F3, H1: what was delivered is laid out, checked by exit codes, and a failure sends it back."""
    check = "python3 -c 'import app; assert app.X == 2' || (grep -q 2 app.py && ! command -v python3)"
    plan = [planned("app")]
    script = [
        coordinator(
            call("research", tasks=QUESTIONS),
            call("write_plan", plan=plan),
            call("implement"),
            checking(check),
            call(
                "write_plan",
                plan=[planned("app2", writes=["app.py"], task="Correct the module app.py: X is 2.")],
            ),
            call("implement"),
            checking(check),
            {"text": "All done."},
        ),
        EXPLORER,
        worker(
            "coder", call("deliver", path="app.py", content="X = 1\n"), reported(), when="module app.py with"
        ),
        worker(
            "coder",
            shell("echo 'X = 2' > app.py"),
            call("deliver", path="app.py", from_file="app.py"),
            reported(),
            when="Correct",
        ),
        worker("verifier", shell(check), reported()),
    ]
    settings = full(settings_for(tmp_path, write_script(tmp_path, script)))
    settings = replace(
        settings,
        coordinator=CoordinatorSettings(mode=True),
        permissions=PermissionSettings(unattended="deny"),
    )

    async def scenario(app: App) -> None:
        seen = await ask(app, "Rework the package.", agent="coordinator")
        verdicts = [event.verdict for event in seen.events(PhaseChanged) if event.verdict]
        assert verdicts == ["failed", "passed"], [event.content for event in answers(seen, "verify")]
        assert ("verification", 2) in phases(seen)
        assert seen.result.outcome == "success"
        codes = [event.exit_code for event in outputs(seen)]
        assert codes.count(0) == 2

    with_app(settings, scenario)


def _workers() -> set[int]:
    """Processes of forked workers below this one."""
    own = os.getpid()
    parents = {int(entry.name): _parent(entry) for entry in Path("/proc").iterdir() if entry.name.isdigit()}
    below = {
        pid
        for pid, parent in parents.items()
        if parent in {p for p, above in parents.items() if above == own}
    }
    return {pid for pid in below if b"xclaw.worker" in _line(pid)}


def _parent(entry: Path) -> int:
    try:
        return int((entry / "stat").read_bytes().rpartition(b")")[2].split()[1])
    except (OSError, IndexError):
        return 0


def _line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


async def _all_ended(descriptors: Iterable[int]) -> None:
    for descriptor in descriptors:
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(descriptor, ended.set)
        async with asyncio.timeout(10):
            await ended.wait()
        loop.remove_reader(descriptor)
        os.close(descriptor)
