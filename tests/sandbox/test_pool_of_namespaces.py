"""The pool over real sandboxes: some killed, everything told, nothing left."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from sandbox.pool_backends import pool_of
from sandbox.traces_of_sandboxes import Made, WatchedBubblewrap, left_of, made_of
from xclaw.contracts.errors import SandboxLost
from xclaw.contracts.sandbox import SandboxCommand, SandboxSpec
from xclaw.sandbox.settings import SandboxSettings

TASKS = 100


def test_a_hundred_tasks_with_one_sandbox_in_ten_killed(tmp_path: Path) -> None:
    """K3: none is lost, none hangs, each ends with a stated result, nothing is left over."""
    backend = WatchedBubblewrap(SandboxSettings())
    ends: dict[int, str] = {}

    async def task(number: int) -> None:
        spec = _spec(tmp_path / str(number), number)
        sandbox = await pool.open(spec)
        said = bytearray()

        def hear(data: bytes) -> None:
            said.extend(data)
            if number % 10 == 0 and b"begun" in said:
                os.kill(backend.by_task[spec.task_id], signal.SIGKILL)

        waits = "exec sleep 60" if number % 10 == 0 else "true"
        command = f"echo {number} > number; echo begun; {waits}"
        try:
            ended = await sandbox.exec(SandboxCommand(("/bin/sh", "-c", command), 50), hear)
            ends[number] = f"{ended.ended} {ended.code}"
        except SandboxLost as lost:
            ends[number] = f"lost: {lost}"
        finally:
            await sandbox.close()

    async def main() -> None:
        async with asyncio.timeout(90), asyncio.TaskGroup() as group:
            for number in range(TASKS):
                group.create_task(task(number))
        await pool.close()

    pool = pool_of(backend, max_open=8)
    asyncio.run(main())
    assert len(ends) == TASKS
    for number, end in ends.items():
        assert end.startswith("lost: The sandbox is gone" if number % 10 == 0 else "exited 0"), end
        assert (tmp_path / str(number) / "workspace" / "number").read_text() == f"{number}\n"
    assert len(backend.made) >= TASKS
    assert left_of(backend.made) == []


PARENT = """
import asyncio, json, sys
from pathlib import Path
from sandbox.pool_backends import pool_of, spec_of
from sandbox.traces_of_sandboxes import WatchedBubblewrap
from xclaw.contracts.sandbox import SandboxCommand
from xclaw.sandbox.settings import SandboxSettings

async def main():
    backend = WatchedBubblewrap(SandboxSettings())
    pool = pool_of(backend)
    begun = asyncio.Event()
    sandboxes = []
    for number in range(3):
        place = Path(sys.argv[1], str(number))
        (place / "workspace").mkdir(parents=True)
        (place / "input").mkdir()
        sandboxes.append(await pool.open(spec_of(number, str(place))))
    command = SandboxCommand(("/bin/sh", "-c", "setsid sleep 600 & echo begun; sleep 600"), 600)
    running = asyncio.create_task(sandboxes[0].exec(command, lambda _: begun.set()))
    await begun.wait()
    print(json.dumps([made.pid for made in backend.made]), flush=True)
    await running

asyncio.run(main())
"""


def test_everything_is_gone_with_its_parent_after_kill_9(tmp_path: Path) -> None:
    """K3: with a command in one, and two that are idle."""
    tests = str(Path(__file__).parents[1])
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": tests},
    ) as parent:
        assert parent.stdout is not None
        made = [made_of(pid) for pid in json.loads(parent.stdout.readline())]
        assert len(made) == 3
        parent.kill()
    for one in made:
        _gone(one)
    left = [line for line in left_of(made) if not line.startswith("/")]
    assert left == []
    # What is on the disk is removed with the next start.
    asyncio.run(_started_once(tmp_path / "next"))
    assert left_of(made) == []


def _gone(made: Made) -> None:
    """Wait until the keeper has ended, which ends everything in it first."""
    try:
        descriptor = os.pidfd_open(made.pid)
    except ProcessLookupError:
        return
    try:
        asyncio.run(_readable(descriptor))
    finally:
        os.close(descriptor)


async def _readable(descriptor: int) -> None:
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(descriptor, ended.set)
    async with asyncio.timeout(10):
        await ended.wait()


async def _started_once(place: Path) -> None:
    pool = pool_of(WatchedBubblewrap(SandboxSettings()))
    await (await pool.open(_spec(place, 1))).close()
    await pool.close()


def _spec(place: Path, number: int) -> SandboxSpec:
    for name in ("workspace", "input"):
        (place / name).mkdir(parents=True)
    return SandboxSpec(f"{number:06x}", str(place / "workspace"), str(place / "input"))
