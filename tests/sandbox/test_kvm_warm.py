"""Machines that are started ahead of their run (SPEC F3, K3), emulated."""

import asyncio
import os
import signal
from collections.abc import Coroutine
from pathlib import Path

import pytest

from sandbox.machines import BUILDING_S, emulated
from sandbox.pool_backends import pool_of
from xclaw.contracts.errors import SandboxLost, SandboxUnavailable
from xclaw.contracts.sandbox import Mount, SandboxPolicy, SandboxSpec
from xclaw.sandbox.kvm.sandbox import MachineSandbox, WarmMachine
from xclaw.testing.sandbox_harness import POLICY, run_inside

pytestmark = [pytest.mark.timeout(BUILDING_S), pytest.mark.xdist_group("warm machine")]
WAIT_S = 200.0


def spec(place: Path, *mounts: Mount, policy: SandboxPolicy = POLICY) -> SandboxSpec:
    for name in ("workspace", "input"):
        (place / name).mkdir(parents=True)
    return SandboxSpec("0a1b2c", str(place / "workspace"), str(place / "input"), mounts, policy)


def test_a_warm_machine_gets_the_directories_of_its_run_and_no_others(tmp_path: Path) -> None:
    """They were not known when it was started: what lies in them is there, what is written comes out."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "source.py").write_text("print()")

    async def main() -> None:
        machine = await emulated().warm(POLICY)
        try:
            assert await machine.ping()
            wanted = spec(tmp_path / "run", Mount(str(project), "/project"))
            (Path(wanted.workspace) / "before").write_text("was there")
            sandbox = await machine.take(wanted)
            (Path(wanted.input) / "later").write_text("came later")
            said = await run_inside(
                sandbox,
                "cat before /input/later /project/source.py; echo new >made; touch /project/x; ls /; id -u",
            )
            assert said.text.startswith("was therecame laterprint()")
            assert "Read-only file system" in said.text
            assert said.text.split()[-1] != "0"
            assert (Path(wanted.workspace) / "made").read_text() == "new\n"
            assert not (project / "x").exists()
        finally:
            await machine.close()
        assert not await machine.ping()

    asyncio.run(_in_time(main()))


def test_a_pool_of_machines_loses_a_killed_one_and_goes_on(tmp_path: Path) -> None:
    """K3: its run is told; the next gets another; none is left at the end."""
    backend = emulated()
    made: list[int] = []

    async def main() -> None:
        pool = pool_of(backend, max_open=1)
        for number in range(2):
            sandbox = await pool.open(spec(tmp_path / str(number)))
            said = await run_inside(sandbox, "echo here")
            assert said.text == "here\n"
            qemu = _youngest_machine()
            made.append(qemu)
            if number == 0:
                os.kill(qemu, signal.SIGKILL)
                with pytest.raises(SandboxLost):
                    await run_inside(sandbox, "echo there")
            await sandbox.close()
        await pool.close()

    asyncio.run(_in_time(main()))
    assert len(set(made)) == 2
    assert [pid for pid in made if Path(f"/proc/{pid}/exe").exists()] == []


def _youngest_machine() -> int:
    """The process of QEMU that is below this one."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (entry / "comm").exists():
            try:
                is_machine = (entry / "comm").read_text().startswith("qemu-system")
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                above = int(Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if is_machine and above == os.getpid():
                found.append(int(entry.name))
    return max(found)


def test_a_network_is_refused_and_not_left_out(tmp_path: Path) -> None:
    policy = SandboxPolicy(network=("example.org",))
    with pytest.raises(SandboxUnavailable, match=r"no network at all.*example\.org"):
        asyncio.run(_in_time(_started(spec(tmp_path / "run", policy=policy))))


async def _started(wanted: SandboxSpec) -> None:
    sandbox = await emulated().start(wanted)
    assert isinstance(sandbox, MachineSandbox)


def test_directories_that_are_none_are_refused_and_the_machine_is_gone(tmp_path: Path) -> None:
    async def main() -> None:
        machine: WarmMachine = await emulated().warm(POLICY)
        wanted = spec(tmp_path / "run", Mount(str(tmp_path / "none"), "/project"))
        with pytest.raises(SandboxUnavailable, match="none"):
            await machine.take(wanted)
        await machine.close()

    asyncio.run(_in_time(main()))


async def _in_time(work: Coroutine[None, None, None]) -> None:
    async with asyncio.timeout(WAIT_S):
        await work
