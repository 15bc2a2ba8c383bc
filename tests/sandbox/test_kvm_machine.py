"""A machine that crashes, hangs, lies or floods ends its sandbox and nothing else (SPEC F3, K3)."""

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest

from sandbox.guests import DEAF, DYING, ENDLESS, FLOODING, SILENT, WELL_BEHAVED, guest
from xclaw.contracts.errors import SandboxLost, SandboxUnavailable
from xclaw.sandbox.kvm.guest_line import Failed
from xclaw.sandbox.kvm.machine import JobEnd, VirtualMachine, boot_machine

WAIT_S = 30.0
RUN: dict[str, object] = {"op": "run", "argv": ["true"], "directory": "/", "environment": {}, "limit": 1_000}


def with_machine(body: str, use: Callable[[VirtualMachine], Coroutine[None, None, None]]) -> None:
    async def main() -> None:
        with guest(body) as wanted:
            async with asyncio.timeout(WAIT_S * 2):
                machine = await boot_machine(wanted, WAIT_S)
                qemu, keeper = machine.qemu_pid, machine.keeper_pid
                try:
                    await use(machine)
                finally:
                    await machine.close()
            for pid in (qemu, keeper):
                ended(pid, at_once=True)

    asyncio.run(main())


def ignored(_content: bytes) -> None:
    """Output that is not looked at."""


def test_a_job_is_run_and_ended() -> None:
    """So that the tests below can fail."""

    async def use(machine: VirtualMachine) -> None:
        end = await machine.run(RUN, ignored, 1_000, WAIT_S, b"x" * 100_000)
        assert isinstance(end, JobEnd)
        assert (end.ended.code, end.over) == (0, "")

    with_machine(WELL_BEHAVED, use)


def test_a_machine_that_is_killed_ends_its_command_with_the_reason() -> None:
    async def use(machine: VirtualMachine) -> None:
        os.kill(machine.qemu_pid, signal.SIGKILL)
        with pytest.raises(SandboxLost, match="killed by signal 9"):
            await machine.run(RUN, ignored, 1_000, WAIT_S)
        with pytest.raises(SandboxLost, match="killed by signal 9"):
            await machine.run(RUN, ignored, 1_000, WAIT_S)

    with_machine(DEAF, use)


def test_a_keeper_that_is_killed_takes_its_machine_along() -> None:
    async def use(machine: VirtualMachine) -> None:
        os.kill(machine.keeper_pid, signal.SIGKILL)
        with pytest.raises(SandboxLost):
            await machine.run(RUN, ignored, 1_000, WAIT_S)
        await machine.close()
        await asyncio.to_thread(ended, machine.qemu_pid)

    with_machine(DEAF, use)


def ended(pid: int, *, at_once: bool = False) -> None:
    """Wait until a process is gone; nobody need have asked for its exit code."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([descriptor], [], [], 0 if at_once else WAIT_S)[0]
    finally:
        os.close(descriptor)


def test_a_machine_that_does_not_kill_is_ended() -> None:
    """It also claims the end of a job that is not its own, which is nothing."""

    async def use(machine: VirtualMachine) -> None:
        with pytest.raises(SandboxLost, match="did not kill a command"):
            await machine.run(RUN, ignored, 1_000, 0.1)

    with_machine(DEAF, use)


@pytest.mark.parametrize(("body", "reason"), [(FLOODING, "more than it was asked"), (ENDLESS, "too long")])
def test_a_guest_that_floods_is_given_up(body: str, reason: str) -> None:
    async def use(machine: VirtualMachine) -> None:
        with pytest.raises(SandboxLost, match=f"misbehaved.*{reason}"):
            await machine.run(RUN, ignored, 1_000, WAIT_S)

    with_machine(body, use)


def test_a_machine_that_is_never_ready_says_so_and_is_gone() -> None:
    async def main() -> None:
        match = r"not ready within 2 s.*here we stand"
        with guest(SILENT) as wanted, pytest.raises(SandboxUnavailable, match=match):
            await boot_machine(wanted, 2.0)

    asyncio.run(main())


def test_a_machine_that_ends_at_once_says_what_it_said() -> None:
    async def main() -> None:
        match = r"QEMU ended with 3.*no such machine"
        with guest(DYING) as wanted, pytest.raises(SandboxUnavailable, match=match):
            await boot_machine(wanted, WAIT_S)

    asyncio.run(main())


def test_cancelling_a_boot_leaves_nothing() -> None:
    async def main() -> None:
        with guest(SILENT) as wanted:
            booting = asyncio.create_task(boot_machine(wanted, WAIT_S))
            async with asyncio.timeout(WAIT_S):
                while not running(wanted.program):
                    await asyncio.wait([booting], timeout=0.05)
                booting.cancel()
                await asyncio.wait([booting])
            assert booting.cancelled()
            assert running(wanted.program) == []

    asyncio.run(main())


def running(program: str) -> list[str]:
    """Processes that run a script."""
    found: list[str] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if program.encode() in words:
                found.append(entry.name)
    return found


PARENT = """
import asyncio, json, sys
from xclaw.sandbox.kvm.machine import Wanted, boot_machine
async def main():
    wanted = Wanted("tcg", sys.argv[1], sys.argv[2], 1 << 28, 1, 1 << 28, 70_000)
    machines = [await boot_machine(wanted, 30.0) for _ in range(2)]
    print(json.dumps([pid for one in machines for pid in (one.keeper_pid, one.qemu_pid)]), flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


def test_everything_is_gone_with_xclaw_after_kill_9() -> None:
    """K3."""
    source = str(Path(__file__).parents[2] / "src")
    with (
        guest(WELL_BEHAVED) as wanted,
        subprocess.Popen(
            [sys.executable, "-c", PARENT, wanted.program, wanted.image],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": source},
        ) as parent,
    ):
        assert parent.stdout is not None
        pids = json.loads(parent.stdout.readline())
        parent.kill()
        assert len(pids) == 4
        for pid in pids:
            ended(pid)


def test_a_job_that_a_guest_refuses_is_told_as_its_words() -> None:
    async def use(machine: VirtualMachine) -> None:
        end = await machine.run({**RUN, "op": "what"}, ignored, 0, WAIT_S)
        assert end == Failed(1, "no such thing")

    with_machine(
        'say({"ready": 1})\nfor order in orders(): say({"id": order["id"], "failed": "no such\\nthing"})', use
    )
