"""Whoever is killed, nothing of a sandbox stays: no process, no directory, no control group (SPEC F3, F4)."""

import asyncio
import os
import secrets
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import cast

import pytest

from sandbox.opening import opener
from xclaw.contracts.errors import SandboxLost
from xclaw.contracts.sandbox import SandboxCommand
from xclaw.sandbox.bubblewrap.backend import BubblewrapBackend
from xclaw.sandbox.bubblewrap.sandbox import BubblewrapSandbox
from xclaw.sandbox.linux.held import descendants
from xclaw.sandbox.linux.home import PREFIX, sweep
from xclaw.sandbox.settings import SandboxSettings
from xclaw.testing.sandbox_harness import POLICY, Opened, run_inside

BACKEND = BubblewrapBackend(SandboxSettings())
BUSY = "setsid sleep 1000 & (sleep 1000 & sleep 1000) & echo up; sleep 1000"
OWNER = """
import asyncio, sys
from pathlib import Path
from xclaw.contracts.sandbox import SandboxCommand, SandboxSpec
from xclaw.sandbox.bubblewrap.backend import BubblewrapBackend
from xclaw.sandbox.settings import SandboxSettings

async def main():
    spec = SandboxSpec("0a1b2c", sys.argv[1], sys.argv[1])
    sandbox = await BubblewrapBackend(SandboxSettings()).start(spec)
    print(sandbox.pid, sandbox.home, flush=True)
    await sandbox.exec(SandboxCommand(("/bin/sh", "-c", sys.argv[2]), 1000), lambda piece: print(piece.decode(), flush=True))

asyncio.run(main())
"""


def groups_of(home: Path) -> list[Path]:
    with suppress(FileNotFoundError):
        return [Path(line) for line in (home / "groups").read_text().splitlines()]
    return []


def await_ends(pids: Iterable[int], within_s: float = 10.0) -> None:
    """Until all those processes are gone; fails when one is not."""
    for pid in pids:
        try:
            watched = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        ready, _, _ = select.select([watched], [], [], within_s)
        os.close(watched)
        assert ready, f"{pid} is still there: {Path(f'/proc/{pid}/cmdline').read_bytes()!r}"


def assert_nothing_of(home: Path, groups: list[Path]) -> None:
    assert not home.exists()
    assert [group for group in groups if group.exists()] == []


async def busy(opened: Opened) -> tuple[BubblewrapSandbox, "asyncio.Task[object]", list[int]]:
    """A sandbox at work, and the processes that it consists of."""
    sandbox = cast("BubblewrapSandbox", opened.sandbox)
    up = asyncio.Event()
    command = SandboxCommand(("/bin/sh", "-c", BUSY), 1000)
    running: asyncio.Task[object] = asyncio.create_task(sandbox.exec(command, lambda _piece: up.set()))
    await up.wait()
    processes = [sandbox.pid, *descendants(sandbox.pid)]
    assert len(processes) > 4
    return sandbox, running, processes


def test_a_killed_keeper_takes_everything_along() -> None:
    """SPEC F3."""

    async def main() -> None:
        async with asyncio.timeout(30), opener(BACKEND)(POLICY) as opened:
            sandbox, running, processes = await busy(opened)
            groups = groups_of(sandbox.home)
            os.kill(sandbox.pid, signal.SIGKILL)
            with pytest.raises(SandboxLost):
                await running
            await_ends(processes)
            assert_nothing_of(sandbox.home, groups)

    asyncio.run(main())


def test_a_keeper_that_is_stuck_is_given_up() -> None:
    """SPEC F3: a stopped process answers nothing, and cannot be asked to end."""

    async def main() -> None:
        async with asyncio.timeout(30), opener(BACKEND)(POLICY) as opened:
            sandbox, running, processes = await busy(opened)
            groups = groups_of(sandbox.home)
            os.kill(sandbox.pid, signal.SIGSTOP)
            running.cancel()
            await asyncio.wait([running])
            await sandbox.close()
            await_ends(processes)
            assert_nothing_of(sandbox.home, groups)
            with pytest.raises(SandboxLost):
                await sandbox.get("x")

    asyncio.run(main())


@pytest.mark.parametrize("index", [1, 2], ids=["bubblewrap", "first process inside"])
def test_a_command_killed_from_outside_ends_and_the_sandbox_goes_on(index: int) -> None:
    """SPEC F3."""

    async def main() -> None:
        async with asyncio.timeout(30), opener(BACKEND)(POLICY) as opened:
            sandbox, running, processes = await busy(opened)
            os.kill(processes[index], signal.SIGKILL)
            await asyncio.wait([running])
            await_ends(processes[1:])
            assert (await run_inside(sandbox, "echo on")).output == b"on\n"

    asyncio.run(main())


@pytest.mark.parametrize("also_keeper", [False, True], ids=["xclaw", "xclaw and the keeper"])
def test_killing_xclaw_leaves_nothing(also_keeper: bool, tmp_path: Path) -> None:
    """SPEC F3: what a sweep has to take away is files only."""
    with tempfile.TemporaryDirectory() as workspace:
        line = [sys.executable, "-c", OWNER, workspace, BUSY]
        owner = subprocess.Popen(line, stdout=subprocess.PIPE, text=True, cwd=tmp_path)
        assert owner.stdout is not None
        keeper, home = owner.stdout.readline().split()
        assert owner.stdout.readline() == "up\n"
        processes, groups = [int(keeper), *descendants(int(keeper))], groups_of(Path(home))
        assert len(processes) > 4
        for pid in (owner.pid, *([int(keeper)] if also_keeper else [])):
            os.kill(pid, signal.SIGKILL)
        owner.communicate()
        await_ends(processes)
        sweep()
        assert_nothing_of(Path(home), groups)


def test_a_stopped_keeper_whose_xclaw_was_killed_is_swept(tmp_path: Path) -> None:
    """SPEC F3."""
    with tempfile.TemporaryDirectory() as workspace:
        line = [sys.executable, "-c", OWNER, workspace, BUSY]
        owner = subprocess.Popen(line, stdout=subprocess.PIPE, text=True, cwd=tmp_path)
        assert owner.stdout is not None
        keeper, home = owner.stdout.readline().split()
        assert owner.stdout.readline() == "up\n"
        processes, groups = [int(keeper), *descendants(int(keeper))], groups_of(Path(home))
        os.kill(int(keeper), signal.SIGSTOP)
        owner.kill()
        owner.communicate()
        sweep()
        await_ends(processes)
        sweep()  # a group is empty a moment after its last process has ended
        assert_nothing_of(Path(home), groups)


def test_who_takes_the_output_may_fail() -> None:
    """SPEC F3: the command is ended, the failure is told, and the sandbox goes on."""

    class Unwelcome(Exception):
        pass

    def refuse(_piece: bytes) -> None:
        raise Unwelcome

    async def main() -> None:
        async with asyncio.timeout(30), opener(BACKEND)(POLICY) as opened:
            for _ in range(2):
                with pytest.raises(Unwelcome):
                    await opened.sandbox.exec(SandboxCommand(("/bin/sh", "-c", "yes"), 1000), refuse)
            assert (await run_inside(opened.sandbox, "echo on")).output == b"on\n"

    asyncio.run(main())


def test_a_sweep_leaves_living_sandboxes_alone() -> None:
    """SPEC F3."""

    async def main() -> None:
        async with asyncio.timeout(30), opener(BACKEND)(POLICY) as opened:
            sweep()
            assert (await run_inside(opened.sandbox, "echo kept >/tmp/x; cat /tmp/x")).output == b"kept\n"
            assert cast("BubblewrapSandbox", opened.sandbox).home.is_dir()

    asyncio.run(main())


def test_a_sweep_takes_what_lost_its_lock_long_ago_and_nothing_of_others() -> None:
    """SPEC F3: nobody can be at work on it any more; on one that is new somebody may be."""
    place = Path("/var/tmp") if os.access("/var/tmp", os.W_OK) else Path(tempfile.gettempdir())
    old, new, full = (place / f"xclaw-sandbox-{secrets.token_hex(8)}" for _ in range(3))
    notes = place / f"xclaw-sandbox-notes-{secrets.token_hex(4)}"
    try:
        for path in (old, new, full, notes):
            (path / "tmp" / "d").mkdir(parents=True)
        (full / "mine").touch()
        (notes / "lock").touch()
        for path in (old, full, notes):
            os.utime(path, (0, 0))
        sweep()
        assert not old.exists()
        assert [path for path in (new, full, notes) if not (path / "tmp" / "d").exists()] == []
    finally:
        for left in (old, new, full, notes):
            shutil.rmtree(left, ignore_errors=True)


def own_homes(place: Path) -> set[Path]:
    """Directories of sandboxes that this process has made."""
    found: set[Path] = set()
    for path in place.glob(f"{PREFIX}*"):
        with suppress(OSError):
            if (path / "lock").read_text() == str(os.getpid()):
                found.add(path)
    return found


def test_a_cancelled_start_leaves_nothing() -> None:
    """SPEC F3: at whatever moment."""

    async def main() -> None:
        async with opener(BACKEND)(POLICY) as opened:
            place = cast("BubblewrapSandbox", opened.sandbox).home.parent
        before = set(descendants(os.getpid()))
        for after_ms in range(0, 120, 6):
            opening = opener(BACKEND)(POLICY)
            try:
                async with asyncio.timeout(after_ms / 1000):
                    await opening.__aenter__()
            except TimeoutError:
                continue
            await opening.__aexit__(None, None, None)
        assert own_homes(place) == set()
        assert set(descendants(os.getpid())) <= before

    asyncio.run(main())


def test_what_commands_have_made_unremovable_is_removed() -> None:
    """SPEC F3: closed directories, deep ones, odd names, in /tmp."""

    async def main() -> None:
        async with asyncio.timeout(60), opener(BACKEND)(POLICY) as opened:
            script = (
                "cd /tmp; mkdir -p closed/in/side; chmod 0 closed/in/side closed/in closed; touch -- -rf '*' \"$(printf 'a\\nb')\"; "
                "i=0; while [ $i -lt 300 ]; do mkdir d; cd d; i=$((i+1)); done; mkfifo pipe; ln -s / root"
            )
            await run_inside(opened.sandbox, script)
            home = cast("BubblewrapSandbox", opened.sandbox).home
            await opened.sandbox.close()
            assert not home.exists()

    asyncio.run(main())
