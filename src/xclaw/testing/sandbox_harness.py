"""What the checks of sandboxes stand on: an opened sandbox, and a command whose word proves that it ran inside."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

from xclaw.contracts.errors import SandboxLost, ToolFailed
from xclaw.contracts.sandbox import Sandbox, SandboxCommand, SandboxExit, SandboxPolicy

POLICY = SandboxPolicy(
    cpus=2.0,
    memory_bytes=200_000_000,
    processes=40,
    disk_bytes=30_000_000,
    output_bytes=200_000,
    environment=(("TEAM", "blue"),),
)
WAIT_S = 60.0
"""Whatever a check waits for comes within this many seconds, also on a busy machine."""


@dataclass(frozen=True, slots=True)
class Opened:
    """One sandbox and the host's side of it."""

    sandbox: Sandbox
    workspace: Path
    input: Path
    kill: Callable[[], None] | None = None
    """Kills what the sandbox consists of, as `kill -9` would; None where there is nothing of that kind."""

    @property
    def is_isolated(self) -> bool:
        return self.sandbox.backend != "host"


@dataclass(frozen=True, slots=True)
class Said:
    exit: SandboxExit
    output: bytes

    @property
    def text(self) -> str:
        return self.output.decode("utf-8", "replace")


OpenSandbox = Callable[[SandboxPolicy], AbstractAsyncContextManager[Opened]]
SandboxCheck = Callable[[OpenSandbox], Coroutine[None, None, None]]


async def run_inside(sandbox: Sandbox, script: str, *, timeout_s: float = WAIT_S, stdin: bytes = b"") -> Said:
    """Run a shell script. What it said comes without the word that shows that it ran, which must be there."""
    first, second = secrets.token_hex(8), secrets.token_hex(8)
    output = bytearray()
    line = f"printf '%s%s\\n' {first} {second}; {script}"
    command = SandboxCommand(("/bin/sh", "-c", line), timeout_s, stdin=stdin)
    async with asyncio.timeout(WAIT_S + timeout_s):
        ended = await sandbox.exec(command, output.extend)
    word = f"{first}{second}\n".encode()
    assert output.startswith(word), f"the command never ran inside: {bytes(output[:300])!r}, {ended}"
    return Said(ended, bytes(output[len(word) :]))


async def refused(work: Awaitable[object]) -> str:
    """The text of the `ToolFailed` that must come."""
    try:
        async with asyncio.timeout(WAIT_S):
            await work
    except ToolFailed as error:
        return str(error)
    raise AssertionError("it was not refused")


async def lost(work: Awaitable[object]) -> None:
    """`SandboxLost` must come."""
    try:
        async with asyncio.timeout(WAIT_S):
            await work
    except SandboxLost:
        return
    raise AssertionError("the loss of the sandbox was not told")
