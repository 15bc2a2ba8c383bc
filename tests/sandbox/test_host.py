"""What keeps nothing in: host mode, and the backend `host`."""

import asyncio
from pathlib import Path

import pytest

from xclaw.contracts.errors import SandboxLost
from xclaw.contracts.sandbox import SandboxCommand, Sandboxes, SandboxPolicy, SandboxSpec
from xclaw.sandbox.host import HostSandboxes
from xclaw.sandbox.settings import SandboxSettings
from xclaw.spawn.leftovers import MARK
from xclaw.toolbox import build_sandboxes

KINDS = pytest.mark.parametrize(
    "settings", [None, SandboxSettings(backend="host")], ids=["host mode", "host"]
)


def said(sandboxes: Sandboxes, root: Path, command: SandboxCommand) -> bytes:
    """What a command in a sandbox of the directory `root` writes."""
    inputs = root / "input"
    inputs.mkdir(exist_ok=True)
    output = bytearray()

    async def main() -> None:
        async with asyncio.timeout(20):
            sandbox = await sandboxes.open(SandboxSpec("0a1b2c", str(root), str(inputs)))
            await sandbox.exec(command, output.extend)
            await sandbox.close()
            with pytest.raises(SandboxLost):
                await sandbox.exec(command, output.extend)
            await sandboxes.close()

    asyncio.run(main())
    return bytes(output)


@KINDS
def test_its_commands_are_found_when_whoever_started_them_was_killed(
    tmp_path: Path, settings: SandboxSettings | None
) -> None:
    """By a mark in their environment, which no command takes off."""
    command = SandboxCommand(("env",), 10.0, environment=((MARK, "another"), ("A", "b")))
    lines = said(build_sandboxes(settings, "p1-abc"), tmp_path, command).splitlines()
    assert f"{MARK}=p1-abc".encode() in lines
    assert b"A=b" in lines


@KINDS
def test_its_paths_are_those_of_this_machine(tmp_path: Path, settings: SandboxSettings | None) -> None:
    command = SandboxCommand(("/bin/sh", "-c", "pwd; echo $HOME"), 10.0)
    assert said(build_sandboxes(settings, ""), tmp_path, command).decode().split() == [str(tmp_path)] * 2


def test_in_host_mode_output_has_no_end_but_its_own(tmp_path: Path) -> None:
    """K3: whoever bounds it keeps its end, too."""
    size = SandboxPolicy().output_bytes + 1
    command = SandboxCommand(("/bin/sh", "-c", f"head -c {size} /dev/zero; echo end"), 20.0)
    output = said(HostSandboxes(), tmp_path, command)
    assert len(output) == size + 4
    assert output.endswith(b"end\n")


def test_host_mode_needs_no_directories_but_the_run_s_own(tmp_path: Path) -> None:
    """SPEC F3: nothing is made, tried or kept for a run; /input is no place there."""

    async def main() -> None:
        sandboxes = HostSandboxes()
        assert await sandboxes.ready() is None
        sandbox = await sandboxes.open(SandboxSpec("0a1b2c", str(tmp_path), ""))
        output = bytearray()
        await sandbox.exec(SandboxCommand(("ls", "-A"), 10.0), output.extend)
        assert bytes(output) == b""
        await sandbox.close()

    asyncio.run(main())
