"""The shell tool in a sandbox (SPEC F3): the same receipts, and limits in words."""

import asyncio
import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.workspaces_for_tools import Setup, make_setup
from xclaw.contracts.errors import SandboxLost, ToolFailed
from xclaw.contracts.sandbox import BackendName, Sandbox, SandboxCommand, SandboxExit, SandboxPolicy
from xclaw.contracts.tools import ToolOutput
from xclaw.tools.shell import ShellSettings, shell_tool

SETTINGS = ShellSettings(
    effect="writes",
    policy=SandboxPolicy(memory_bytes=512_000_000, disk_bytes=1_500_000_000),
    output_bytes=1_000,
)


class ToldSandbox:
    """Does as a test says, and notes what it was asked."""

    def __init__(self, ended: SandboxExit | SandboxLost, *says: bytes) -> None:
        self._ended = ended
        self._says = says
        self.asked: list[SandboxCommand] = []

    @property
    def backend(self) -> BackendName:
        return "bubblewrap"

    async def exec(self, command: SandboxCommand, output: Callable[[bytes], None]) -> SandboxExit:
        self.asked.append(command)
        for piece in self._says:
            output(piece)
        if isinstance(self._ended, SandboxLost):
            raise self._ended
        return self._ended

    async def put(self, path: str, content: bytes) -> None:
        raise AssertionError("a command needs no file")

    async def get(self, path: str, limit: int = 1_000_000) -> bytes:
        raise AssertionError("a command needs no file")

    async def close(self) -> None:
        raise AssertionError("the sandbox is the run's")


def run(root: Path, sandbox: Sandbox, command: str = "true", **more: object) -> ToolOutput:
    setup: Setup = make_setup(root, mode="full")

    async def opened() -> Sandbox:
        return sandbox

    context = dataclasses.replace(setup.context, sandbox=opened)
    return asyncio.run(shell_tool(SETTINGS).run({"command": command, **more}, context))


@pytest.mark.parametrize(
    ("ended", "wanted", "code"),
    [
        (SandboxExit("exited", 0, 0, 0, 0.1), "out\n[exit code 0]", 0),
        (SandboxExit("exited", 3, 0, 0, 0.1), "out\n[exit code 3]", 3),
        (SandboxExit("exited", 0, 2, 0, 0.1), "2 processes it left in the background", 0),
        (SandboxExit("exited", 0, 0, 12, 0.1), "[12 further bytes of output were dropped]\n[exit code 0]", 0),
        (SandboxExit("timeout", None, 0, 0, 1.25), "[timed out after 1.2 s: killed, with everything", None),
        (SandboxExit("memory", None, 0, 0, 0.1), "[over 512 MB of memory: killed, with everything", None),
        (SandboxExit("disk", None, 0, 0, 0.1), "[over 1,500 MB on disk, or too many files, in", None),
    ],
)
def test_what_came_of_a_command_is_a_receipt(
    tmp_path: Path, ended: SandboxExit, wanted: str, code: int | None
) -> None:
    """F3, K3: as it is on the host."""
    output = run(tmp_path, ToldSandbox(ended, b"out", b"\n"))
    assert output.content.startswith("out\n")
    assert wanted in output.content
    assert (output.exit_code, output.ok) == (code, code == 0)


def test_the_command_goes_in_as_it_is_with_a_bounded_time(tmp_path: Path) -> None:
    sandbox = ToldSandbox(SandboxExit("exited", 0, 0, 0, 0.1))
    command = "echo \"$HOME\" 'a b'; $(x)"
    run(tmp_path, sandbox, command)
    run(tmp_path, sandbox, command, timeout_s=1e9)
    assert [asked.argv[-1] for asked in sandbox.asked] == [command, command]
    assert [asked.timeout_s for asked in sandbox.asked] == [60.0, 600.0]


def test_a_flood_of_output_is_cut_in_the_middle(tmp_path: Path) -> None:
    pieces = [b"first\n", *([b"y\n" * 1_000] * 1_000), b"last\n"]
    output = run(tmp_path, ToldSandbox(SandboxExit("exited", 0, 0, 0, 0.1), *pieces))
    assert output.content.startswith("first\ny\n")
    assert output.content.endswith("y\nlast\n[exit code 0]")
    assert len(output.content) < 1_200


def test_a_sandbox_that_is_lost_is_no_failure_of_the_command(tmp_path: Path) -> None:
    """F3: it ends the run."""
    with pytest.raises(SandboxLost):
        run(tmp_path, ToldSandbox(SandboxLost("killed")))


@pytest.mark.parametrize("command", ["a\0b", "echo \ud800"])
def test_what_no_command_can_be_is_refused(tmp_path: Path, command: str) -> None:
    with pytest.raises(ToolFailed):
        run(tmp_path, ToldSandbox(SandboxExit("exited", 0, 0, 0, 0.1)), command)


def test_its_effect_is_the_run_s_own_files_only_where_it_is_kept_in() -> None:
    """J1: elsewhere it acts, and is asked for."""
    assert shell_tool(SETTINGS).spec.effect == "writes"
    assert shell_tool(ShellSettings()).spec.effect == "acts"
