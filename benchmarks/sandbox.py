"""What a sandbox costs beside a bare subprocess: its start, a command in it, its memory. Of each backend that
works here; machines are measured only if their probe brings one to its ready line, and take long when emulated."""

import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from benchmarks.setting import Row, median
from xclaw.contracts.errors import XclawError
from xclaw.contracts.sandbox import Sandbox, SandboxBackend, SandboxCommand, SandboxPolicy, SandboxSpec
from xclaw.sandbox.building import backends
from xclaw.sandbox.choosing import probed
from xclaw.sandbox.settings import SandboxSettings
from xclaw.settings import load_settings

ROUNDS = 15
SLOW_ROUNDS = 3
SLOW_S = 1.0
"""A start that takes longer is measured fewer times."""
TRUE = ("/bin/sh", "-c", "true")


@asynccontextmanager
async def opened(backend: SandboxBackend) -> AsyncGenerator[Sandbox]:
    with tempfile.TemporaryDirectory() as root:
        workspace, inputs = Path(root, "workspace"), Path(root, "input")
        workspace.mkdir()
        inputs.mkdir()
        sandbox = await backend.start(SandboxSpec("0a1b2c", str(workspace), str(inputs), (), SandboxPolicy()))
        try:
            yield sandbox
        finally:
            await sandbox.close()


def bare_ms() -> float:
    started = time.perf_counter()
    subprocess.run(TRUE, check=True)
    return (time.perf_counter() - started) * 1000


async def command_ms(sandbox: Sandbox) -> float:
    started = time.perf_counter()
    ended = await sandbox.exec(SandboxCommand(TRUE, 60.0), bytearray().extend)
    if ended.code != 0:
        raise RuntimeError(f"the command failed: {ended}")
    return (time.perf_counter() - started) * 1000


async def cold_ms(backend: SandboxBackend) -> float:
    """From nothing to a command's end, and everything away again."""
    started = time.perf_counter()
    async with opened(backend) as sandbox:
        await command_ms(sandbox)
    return (time.perf_counter() - started) * 1000


def memory_kb(root: int) -> int:
    """Of all processes below one, what is shared in parts."""
    total = 0
    for pid in _below(root):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
    return total


def _below(root: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{root}/task").iterdir():
            for pid in map(int, (task / "children").read_text("ascii").split()):
                found += [pid, *_below(pid)]
    return found


async def measured(backend: SandboxBackend) -> list[Row]:
    name = f"sandbox {backend.name}"
    probe = await probed(backend)
    if not probe.works:
        return [Row(name, f"does not work here: {probe.detail[:80]}")]
    first = await cold_ms(backend)
    rounds = ROUNDS if first < SLOW_S * 1000 else SLOW_ROUNDS
    cold = [(await cold_ms(backend), bare_ms()) for _ in range(rounds)]
    before = memory_kb(_own_pid())
    async with opened(backend) as sandbox:
        await command_ms(sandbox)
        held = memory_kb(_own_pid()) - before
        warm = [(await command_ms(sandbox), bare_ms()) for _ in range(rounds)]
    return [
        _row(f"{name}: start, one command, end: ms", cold),
        _row(f"{name}: a command: ms", warm),
        Row(f"{name}: memory while idle: MB", f"{held / 1024:.1f}"),
    ]


def _own_pid() -> int:
    return int(Path("/proc/self").readlink().name)


def _row(name: str, pairs: list[tuple[float, float]]) -> Row:
    ours, bare = (median([pair[side] for pair in pairs]) for side in (0, 1))
    return Row(name, f"{ours:.1f}", f"{bare:.1f}", f"{ours / bare:.1f}x")


async def measure() -> list[Row]:
    rows: list[Row] = []
    images = load_settings(cwd=Path.cwd(), env=os.environ).sandbox.image_dir
    for backend in backends(SandboxSettings(image_dir=images)):
        try:
            rows += await measured(backend)
        except XclawError as error:
            rows.append(Row(f"sandbox {backend.name}", f"broke: {str(error)[:80]}"))
    return rows


def main() -> list[Row]:
    if sys.platform != "linux":
        return [Row("sandbox", "measured on Linux only")]
    return asyncio.run(measure())
