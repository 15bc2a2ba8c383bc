"""Full mode (SPEC F3): commands of workers run in a sandbox, and its paths are the only ones that they know."""

import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from behaviour.full import (
    GO_ON,
    call,
    handing_out,
    keepers,
    outputs,
    run_full,
    sandboxed,
    settings_of,
    shell,
    together,
    with_app,
    worker,
)
from behaviour.harness import ask, follow
from xclaw.app import App, open_app
from xclaw.contracts.errors import SandboxUnavailable, UsageError
from xclaw.contracts.events import (
    ArtifactDelivered,
    ChildEnded,
    RunEnded,
    RunStarted,
    ToolCallEnded,
    TurnStarted,
)
from xclaw.runtime.permissions import PermissionSettings
from xclaw.runtime.runs import RunRequest

TASK = "Write the module app.py with the constant X and deliver it."


def test_a_worker_works_in_workspace_and_delivers_by_name(tmp_path: Path) -> None:
    """F3, D6: the seed's full mode. The orchestrator gets a pointer that it can read."""
    seen = run_full(
        tmp_path,
        [
            {
                "agent": "orchestrator",
                "replies": [
                    call("delegate", agent="coder", task=TASK),
                    call("view_file", path="{{pointer:app.py}}"),
                    GO_ON,
                ],
            },
            worker(
                "coder",
                shell("pwd; echo 'X = 1' > /workspace/app.py; ls"),
                call("view_file", path="/workspace/app.py"),
                call("write_file", path="notes/plan.md", content="first X"),
                shell("cat notes/plan.md; echo more >> notes/plan.md && stat -c %U notes notes/plan.md"),
                call("deliver", path="app.py", from_file="/workspace/app.py"),
            ),
        ],
    )
    assert seen.result.outcome == "success"
    coder = next(event for event in seen.events(RunStarted) if event.agent == "coder")
    assert coder.input == f"[Task workspace: /workspace]\n\n{TASK}"
    assert "shell" in coder.tools
    assert "You work in a sandbox" in coder.instructions
    assert str(tmp_path) not in coder.instructions + coder.input
    first, second = outputs(seen)
    assert (first.content, first.exit_code) == ("/workspace\napp.py\n[exit code 0]", 0)
    assert second.content == "first Xsandbox\nsandbox\n[exit code 0]"
    viewed = [event.content for event in outputs(seen, "view_file")]
    assert len(viewed) == 2
    assert all("X = 1" in content for content in viewed)
    (delivered,) = seen.events(ArtifactDelivered)
    assert Path(delivered.pointer.path).is_relative_to(tmp_path / "workspace" / "shared")
    assert Path(delivered.pointer.path).read_text() == "X = 1\n"


def test_what_was_handed_on_lies_in_input_and_cannot_be_changed(tmp_path: Path) -> None:
    """F3, E3: under the names that it was delivered by, those of the same name apart."""
    deliver = call("deliver", path="app.py", content="X = 1\n")
    seen = run_full(
        tmp_path,
        [
            {
                "agent": "orchestrator",
                "replies": [
                    call("delegate", agent="coder", task=TASK),
                    call("delegate", agent="optimizer", task="Write the module app.py with the constant Y."),
                    call(
                        "delegate",
                        agent="reviewer",
                        task="Review the two modules that you are given.",
                        inputs=["{{pointer:app.py}}"],
                    ),
                    GO_ON,
                ],
            },
            worker("coder", deliver),
            worker("optimizer", call("deliver", path="app.py", content="Y = 2\n")),
            worker(
                "reviewer",
                shell("cat /input/app.py; echo harm > /input/app.py; rm -f /input/app.py; ls /input"),
                call("list_dir", path="/input"),
                call("view_file", path="/input/app.py"),
                call("write_file", path="/input/app.py", content="harm"),
                call("view_file", path="/etc/passwd"),
            ),
        ],
    )
    reviewer = next(event for event in seen.events(RunStarted) if event.agent == "reviewer")
    assert "[Input artifacts: /input/app.py]" in reviewer.input
    (said,) = outputs(seen)
    assert said.content.startswith("Y = 2\n")
    assert "Read-only file system" in said.content
    assert said.content.endswith("app.py\n[exit code 0]")
    (listed,) = outputs(seen, "list_dir")
    assert listed.content == "app.py (6 bytes)"
    viewed, refused = outputs(seen, "view_file")
    assert viewed.content.startswith("Y = 2")
    assert "There are /workspace" in refused.content
    (written,) = outputs(seen, "write_file")
    assert not written.ok
    for event in seen.events(ArtifactDelivered):
        assert Path(event.pointer.path).read_text() in ("X = 1\n", "Y = 2\n")


def test_a_hostile_worker_gets_nothing_of_what_is_around_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F3, F2: neither by commands, nor by links that commands leave for the file tools."""
    secret = "the-secret-of-the-parent"
    monkeypatch.setenv("OPENAI_API_KEY", secret)
    (tmp_path / "config").write_text(secret)
    other = tmp_path / "workspace" / "agents" / "reviewer" / "abcdef"
    other.mkdir(parents=True)
    (other / "private.txt").write_text(secret)
    links = {
        "config": tmp_path / "config",
        "other": other,
        "root": "/",
        "up": "../../..",
        "env": "/proc/self/environ",
    }
    making = "; ".join(f"ln -s '{target}' {name}" for name, target in links.items())
    seen = run_full(
        tmp_path,
        [
            handing_out(("coder", TASK)),
            worker(
                "coder",
                shell(
                    f"cat '{tmp_path}/config' '{other}/private.txt' /proc/*/environ; env; ls -R '{tmp_path}'"
                ),
                shell(
                    f"{making}; ln -s /workspace/inside good; echo mine > inside; ln '{tmp_path}/config' hard"
                ),
                together(
                    call("view_file", path="config"),
                    call("view_file", path="other/private.txt"),
                    call("view_file", path=f"root{tmp_path}/config"),
                    call("view_file", path="up/reviewer/abcdef/private.txt"),
                    call("view_file", path="env"),
                    call("list_dir", path="root"),
                    call("deliver", path="stolen.txt", from_file="config"),
                    call("write_file", path="other/planted.txt", content="x"),
                    call("view_file", path=str(other / "private.txt")),
                ),
                call("view_file", path="good"),
            ),
        ],
    )
    calls = [event for event in seen.events(ToolCallEnded) if event.name != "delegate"]
    assert len(calls) == 12
    assert all(secret not in event.content for event in calls)
    assert [event.ok for event in calls[2:-1]] == [False] * 9
    assert calls[-1].content.startswith("mine")
    assert seen.events(ArtifactDelivered) == []
    assert not (other / "planted.txt").exists()


def test_limits_are_told_in_words(tmp_path: Path) -> None:
    """F3, K3."""
    seen = run_full(
        tmp_path,
        [
            handing_out(("coder", TASK)),
            worker(
                "coder",
                shell("sleep 60", timeout_s=0.3),
                shell("head -c 400000000 /dev/zero | tail -c 300000000 | wc -c"),
                shell("head -c 200000000 /dev/zero > big; sleep 5"),
                shell("rm -f big; sleep 60 & echo still here"),
            ),
        ],
        memory_bytes=64_000_000,
        disk_bytes=50_000_000,
    )
    late, memory, disk, after = outputs(seen)
    assert "timed out after 0." in late.content
    assert memory.exit_code != 0
    assert "over 64 MB of memory" in memory.content
    assert "over 50 MB on disk" in disk.content or "File size limit" in disk.content
    assert not disk.ok
    assert after.content.startswith("still here")
    assert "1 processes it left in the background were ended" in after.content


def test_a_sandbox_that_is_killed_ends_its_run_and_keeps_what_was_delivered(tmp_path: Path) -> None:
    """F3, K3: the parent is told why, and goes on."""
    script = [
        handing_out(("coder", TASK)),
        worker(
            "coder", call("deliver", path="app.py", content="X = 1\n"), shell("echo begun"), shell("sleep 60")
        ),
    ]

    async def scenario(app: App) -> None:
        handle = await app.runs.start(RunRequest("go", "s"))
        seen: list[ToolCallEnded] = []

        def watch(entry: object) -> None:
            event = getattr(entry, "event", None)
            if isinstance(event, ToolCallEnded) and event.name == "shell":
                seen.append(event)
                for pid in keepers():
                    os.kill(pid, signal.SIGKILL)

        handle.subscribe(watch)
        result = await handle.result()
        assert result.succeeded
        assert len(seen) == 1
        entries = await app.journal.read_tree(handle.root_id)
        (ended,) = [entry.event for entry in entries if isinstance(entry.event, ChildEnded)]
        assert ended.result.outcome == "error"
        assert "sandbox is gone" in ended.result.reason
        assert list(ended.result.pointers) == ["app.py"]

    with_app(settings_of(tmp_path, script), scenario)


def test_what_was_asked_for_and_does_not_work_is_refused_before_any_model_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F3: never something weaker in its place."""

    async def scenario(app: App) -> None:
        with pytest.raises(SandboxUnavailable, match="bubblewrap"):
            await app.runs.start(RunRequest("go", "s"))
        assert await app.journal.runs() == []

    monkeypatch.setenv("PATH", str(tmp_path))
    with_app(settings_of(tmp_path, [handing_out(("coder", TASK))]), scenario)


@pytest.mark.parametrize(
    ("rules", "command", "wanted"),
    [
        (PermissionSettings(deny=("shell(cat *)",), unattended="deny"), "cat /workspace/x", "forbids it"),
        (PermissionSettings(ask=("shell(git *)",), unattended="deny"), "git status", "nobody is there"),
        (PermissionSettings(mode="plan", unattended="deny"), "true", "lets nothing be changed"),
        (PermissionSettings(deny=("view_file(secret/**)",)), "", "forbids it"),
    ],
)
def test_rules_of_the_user_hold_in_a_sandbox_too(
    tmp_path: Path, rules: PermissionSettings, command: str, wanted: str
) -> None:
    """J1, F3: also about paths, whichever way they are written."""
    asked = shell(command) if command else call("view_file", path="link/x")
    script = [
        handing_out(("coder", TASK)),
        worker(
            "coder",
            call("write_file", path="secret/x", content="s"),
            shell("ln -s /workspace/secret link"),
            asked,
            call("view_file", path="/workspace/secret/x"),
        ),
    ]

    async def scenario(app: App) -> None:
        seen = await ask(app, "go")
        refused = [event for event in seen.events(ToolCallEnded) if event.refused]
        assert refused
        assert all(wanted in event.content for event in refused)
        assert len(refused) == (3 if rules.mode == "plan" else 1 if command else 2)

    with_app(replace(settings_of(tmp_path, script), permissions=rules), scenario)


def test_a_rule_that_denies_the_shell_takes_it_from_the_workers(tmp_path: Path) -> None:
    """J1."""
    script = [handing_out(("coder", TASK)), worker("coder", call("deliver", path="a.py", content="x"))]

    async def scenario(app: App) -> None:
        seen = await ask(app, "go")
        assert all("shell" not in event.tools for event in seen.events(RunStarted))

    settings = replace(settings_of(tmp_path, script), permissions=PermissionSettings(deny=("shell",)))
    with_app(settings, scenario)


@pytest.mark.parametrize("end", ["cancel", "time", "suspend", "close"])
def test_a_sandbox_ends_with_its_run_however_that_ends(tmp_path: Path, end: str) -> None:
    """F3, K3: a command that would go on for a minute."""
    script = [handing_out(("coder", TASK)), worker("coder", shell("echo > begun; setsid sleep 60; sleep 60"))]

    async def scenario(app: App) -> None:
        timeout_s = 2.0 if end == "time" else None
        handle = await app.runs.start(RunRequest("go", "s", worker_timeout_s=timeout_s))
        if end == "time":
            await handle.result()
        else:
            await _until_begun(tmp_path)
            if end == "cancel":
                await handle.cancel("enough")
            elif end == "suspend":
                await app.runs.suspend()
            else:
                return
        assert keepers() == set()

    with_app(settings_of(tmp_path, script), scenario)


def test_a_run_is_not_taken_up_with_less_around_it_than_it_began_with(tmp_path: Path) -> None:
    """F3: nor with something else, where its paths would mean other files."""
    script = [handing_out(("coder", TASK)), worker("coder", shell("echo > begun; sleep 60"))]
    settings = settings_of(tmp_path, script)
    host = replace(settings, workspace=replace(settings.workspace, mode="host"))

    async def begun() -> str:
        async with open_app(settings) as app:
            handle = await app.runs.start(RunRequest("go", "s"))
            await _until_begun(tmp_path)
            await app.runs.suspend()
            return handle.root_id

    async def main() -> None:
        root_id = await begun()
        async with open_app(host) as app:
            with pytest.raises(UsageError, match="begun in a sandbox"):
                await app.runs.resume(root_id)
        async with open_app(settings) as app:
            seen = await follow(await app.runs.resume(root_id))
            (ended,) = [event for event in seen.events(RunEnded) if event is not seen.entries[-1].event]
            assert ended.result.succeeded

    async def bounded() -> None:
        async with asyncio.timeout(40):
            await main()

    asyncio.run(bounded())
    assert keepers() == set()


def test_in_host_mode_nothing_has_changed(tmp_path: Path) -> None:
    script = [handing_out(("coder", TASK)), worker("coder")]

    async def scenario(app: App) -> None:
        seen = await ask(app, "go")
        coder = next(event for event in seen.events(RunStarted) if event.agent == "coder")
        assert coder.sandbox == ""
        assert "shell" not in coder.tools
        assert "[Shared delivery dir: " in coder.input
        assert seen.events(TurnStarted)
        assert not sandboxed(seen)

    settings = settings_of(tmp_path, script)
    with_app(replace(settings, workspace=replace(settings.workspace, mode="host")), scenario)


async def _until_begun(home: Path) -> None:
    """Until the command of a worker has written its file."""
    agents = home / "workspace" / "agents"
    while not list(agents.glob("coder/*/begun")):  # noqa: ASYNC110 - a file of another process is waited for
        await asyncio.sleep(0)
