"""The shell tool in host mode, on real processes: bounded, silent, and nothing left afterwards."""

import asyncio
import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.workspaces_for_tools import Setup, make_setup
from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.tools import ToolOutput
from xclaw.runtime.sandboxing import RunSandbox
from xclaw.sandbox.host import HostSandboxes
from xclaw.tools.shell import ShellSettings, shell_tool
from xclaw.workspaces.local import LocalWorkspaces
from xclaw.workspaces.settings import WorkspaceSettings

SETTINGS = ShellSettings()


def run(setup: Setup, command: str, settings: ShellSettings = SETTINGS, **more: object) -> ToolOutput:
    async def main() -> ToolOutput:
        async with asyncio.timeout(20):
            return await shell_tool(settings).run({"command": command, **more}, setup.context)

    return asyncio.run(main())


def alive(setup: Setup, name: str) -> bool:
    """Whether the process that wrote its id to `name` is there and no zombie."""
    try:
        stat = Path(f"/proc/{int((setup.private / name).read_text())}/stat").read_bytes()
    except FileNotFoundError:
        return False
    return stat.rpartition(b")")[2].split()[0] not in (b"Z", b"X")


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        os.sched_yield()


def test_output_and_exit_code_are_a_receipt(tmp_path: Path) -> None:
    setup = make_setup(tmp_path)
    assert run(setup, "echo out; echo err >&2") == ToolOutput("out\nerr\n[exit code 0]", True, 0)
    assert run(setup, "echo no; exit 3") == ToolOutput("no\n[exit code 3]", False, 3)
    assert run(setup, "kill -9 $$").exit_code == 137
    assert run(setup, "no-such-program").exit_code == 127


def test_a_command_runs_in_the_private_directory(tmp_path: Path) -> None:
    setup = make_setup(tmp_path)
    run(setup, "pwd > here; echo $HOME >> here")
    assert (setup.private / "here").read_text() == f"{setup.private}\n{setup.private}\n"


def test_nothing_of_the_environment_is_inherited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("INNOCENT", "sk-secret")
    setup = make_setup(tmp_path, host=HostSandboxes(marks=(("A", "b"),)))
    output = run(setup, "env; cat /proc/self/environ")
    assert "sk-secret" not in output.content
    assert "A=b" in output.content


@pytest.mark.parametrize(
    "command",
    [
        "trap '' TERM; (sleep 61 & echo $! > child; sleep 61)",
        "trap '' TERM; sh -c 'sleep 61 & echo $! > child; sleep 61'; echo never",
        "nohup sleep 61 & echo $! > child; wait",
        "setsid sh -c 'echo $$ > child; exec sleep 61'",
        "(setsid sh -c 'echo $$ > child; exec sleep 61' &) ; sleep 61",
    ],
)
def test_a_time_out_ends_everything_the_command_started(tmp_path: Path, command: str) -> None:
    """X01: grandchildren, those that ignore TERM, and those in sessions of their own."""
    setup = make_setup(tmp_path)
    started = time.monotonic()
    output = run(setup, f"echo begun; {command}", timeout_s=1)
    assert 1 <= time.monotonic() - started < 3
    assert output.content.startswith("begun\n")
    assert "timed out after 1." in output.content
    assert "never" not in output.content
    assert (output.ok, output.exit_code) == (False, None)
    assert not alive(setup, "child")


def test_a_command_out_of_time_may_clean_up(tmp_path: Path) -> None:
    setup = make_setup(tmp_path, host=HostSandboxes(grace_s=5))
    command = "trap 'echo cleaned; exit' TERM; echo ready; while :; do sleep 0.01; done"
    assert "cleaned" in run(setup, command, timeout_s=0.3).content


@pytest.mark.parametrize(
    "command",
    [
        "sleep 62 & echo $! > child",
        "nohup sleep 62 > nohup.txt 2>&1 & echo $! > child",
        "setsid sh -c 'echo $$ > child; exec sleep 62' > /dev/null 2>&1 & while [ ! -s child ]; do :; done",
        "(sleep 62 & echo $! > child) &  while [ ! -s child ]; do :; done",
        "sh -c 'sleep 62 & echo $! > child; kill -9 $PPID'",
    ],
)
def test_a_background_process_neither_holds_the_call_nor_outlives_it(tmp_path: Path, command: str) -> None:
    """X02."""
    setup = make_setup(tmp_path)
    started = time.monotonic()
    output = run(setup, f"echo started; {command}", timeout_s=10)
    assert time.monotonic() - started < 2
    assert output.content.startswith("started\n")
    assert "left in the background" in output.content
    assert not alive(setup, "child")


def test_no_zombie_of_ours_stays(tmp_path: Path) -> None:
    """X01."""
    setup = make_setup(tmp_path)
    run(setup, "sleep 63 & sleep 63", timeout_s=0.2)
    run(setup, "true")
    with contextlib.suppress(ChildProcessError):  # there is no child at all
        assert os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


@pytest.mark.parametrize("stream", ["", " >&2"])
def test_output_that_is_no_utf_8_is_kept_as_far_as_it_goes(tmp_path: Path, stream: str) -> None:
    """X03."""
    command = r"printf '\xb3\xc9\xb9\xa6 ok \xff\x00 \xe4\xbd\xa0'" + stream + "; exit 3"
    output = run(make_setup(tmp_path), command)
    assert " ok " in output.content
    assert "你" in output.content
    assert "\0" not in output.content
    assert output.content.encode("utf-8")
    assert output.exit_code == 3


@pytest.mark.parametrize(
    ("command", "fails"),
    [
        ("cat", False),
        ("read x; echo got:$x", False),
        ("sh -c 'read x </dev/tty'", True),
        ("python3 -c 'input()'", True),
        ("less /etc/passwd </dev/tty", True),
        ("git init -q . && touch a && git add a && git -c user.name=a -c user.email=a@b commit", True),
    ],
)
def test_nothing_can_ask_the_user(tmp_path: Path, command: str, fails: bool) -> None:
    """X04."""
    started = time.monotonic()
    output = run(make_setup(tmp_path), command, timeout_s=10)
    assert time.monotonic() - started < 3
    assert output.ok is not fails


def test_a_flood_of_output_is_cut_in_the_middle(tmp_path: Path) -> None:
    settings = ShellSettings(output_bytes=1000)
    output = run(make_setup(tmp_path), "echo first; yes | head -c 30000000; echo last", settings)
    assert output.content.startswith("first\ny\n")
    assert output.content.endswith("y\nlast\n[exit code 0]")
    assert "bytes left out]" in output.content
    assert len(output.content) < 1200


@pytest.mark.parametrize("command", ["a\0b", "echo \ud800", "x" * 200_000])
def test_what_no_command_can_be_is_refused(tmp_path: Path, command: str) -> None:
    with pytest.raises(ToolFailed):
        run(make_setup(tmp_path), command)


@pytest.mark.parametrize("timeout_s", [0, -1, float("nan")])
def test_a_time_out_that_is_none_is_refused(tmp_path: Path, timeout_s: float) -> None:
    with pytest.raises(ToolFailed, match="timeout_s"):
        run(make_setup(tmp_path), "true", timeout_s=timeout_s)


def test_the_longest_time_is_bounded(tmp_path: Path) -> None:
    settings = ShellSettings(max_timeout_s=0.2)
    assert run(make_setup(tmp_path), "sleep 64", settings, timeout_s=1e9).exit_code is None


def test_cancelling_ends_the_command_and_what_it_started(tmp_path: Path) -> None:
    setup = make_setup(tmp_path)
    os.mkfifo(setup.private / "ready")

    async def main() -> None:
        tool = shell_tool(SETTINGS)
        arguments = {"command": "trap '' TERM; sleep 65 & echo $! > child; echo > ready; sleep 65"}
        call = asyncio.create_task(tool.run(arguments, setup.context))
        async with asyncio.timeout(5):
            await asyncio.to_thread((setup.private / "ready").read_bytes)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call

    asyncio.run(main())
    assert not alive(setup, "child")


PARENT = """
import asyncio, sys
from pathlib import Path
from tools.workspaces_for_tools import make_setup
from xclaw.tools.shell import ShellSettings, shell_tool
setup = make_setup(Path(sys.argv[1]))
command = "trap '' TERM; (sleep 66 & echo $! > child; echo > ready; sleep 66)"
asyncio.run(shell_tool(ShellSettings()).run({"command": command}, setup.context))
"""


def test_a_command_dies_with_its_parent(tmp_path: Path) -> None:
    """After `kill -9` of the process that ran it."""
    setup = make_setup(tmp_path)
    tests = str(Path(__file__).parents[1])
    with subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path)], env={"PYTHONPATH": tests}) as parent:
        try:
            until((setup.private / "ready").exists)
            assert alive(setup, "child")
        finally:
            parent.send_signal(signal.SIGKILL)
    until(lambda: not alive(setup, "child"))


def test_descriptors_do_not_pile_up(tmp_path: Path) -> None:
    setup = make_setup(tmp_path)

    async def main() -> None:
        tool = shell_tool(SETTINGS)
        await tool.run({"command": "true"}, setup.context)
        before = len(list(Path("/proc/self/fd").iterdir()))
        async with asyncio.TaskGroup() as group:
            for _ in range(5):
                group.create_task(tool.run({"command": "echo x"}, setup.context))
        with pytest.raises(ToolFailed):
            await tool.run({"command": "\0"}, setup.context)
        assert len(list(Path("/proc/self/fd").iterdir())) == before

    asyncio.run(main())


def test_a_command_is_never_run_again_by_itself() -> None:
    assert not shell_tool(SETTINGS).replayable


def test_the_first_command_of_a_run_finds_its_directories(tmp_path: Path) -> None:
    settings = WorkspaceSettings(str(tmp_path), durable=False)
    workspace = LocalWorkspaces(settings).open("coder", "def456", "run-2")
    setup = make_setup(tmp_path)
    sandbox = RunSandbox(HostSandboxes(), workspace, "def456")
    setup.context = dataclasses.replace(setup.context, workspace=workspace, sandbox=sandbox.open)
    assert run(setup, f"pwd && ls {workspace.delivery_dir}").content.startswith(workspace.private_dir)
