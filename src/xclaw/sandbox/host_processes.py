"""Commands as processes of this machine, of which nothing is left when they end. Nothing keeps them in.

A command leads a new session without a terminal, so that nothing it starts can ask one. Its process
group is killed when it ends, times out or is cancelled; on Linux also what left the group, found by
session and by a marker in the environment. Should this process die without a word, a watcher in the
group sees its pipe close and kills the group: the pipe is its only tie, so `kill -9` counts too.
"""

import asyncio
import contextlib
import errno
import os
import secrets
import signal
import tempfile
import time
from asyncio.subprocess import Process
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path

from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.sandbox import SandboxExit
from xclaw.sandbox.output import BoundedOutput, Output

MARKER = "XCLAW_COMMAND"
"""Environment variable that tells the processes of one command."""

_LEADER = """
trap : TERM
exec 3<&2 2>/dev/null
{ read -r _ <&3; kill -KILL 0; } >/dev/null </dev/null &
exec 3<&-
(exec 2>&1; exec "$@")
code=$?
kill -KILL $!
wait $!
exit $code
"""
"""Starts the watcher, runs the command, and takes the watcher along, so that even where nobody reaps
orphans no zombie stays. It outlives a TERM, to give the command the time to end; so does a watcher
that has hardly begun, which is why that is killed."""
_PROCESSES = Path("/proc")
_KILL_ROUNDS = 5
_READ_BYTES = 65_536
_DRAIN_BYTES = 1 << 20
"""More than a pipe holds: what comes after it comes from a process that got away."""
_REAP_S = 5.0


@dataclass(frozen=True, slots=True)
class HostCommand:
    """A command and the bounds it runs in."""

    argv: tuple[str, ...]
    directory: str
    environment: Mapping[str, str]
    """The whole environment: nothing is inherited."""
    stdin: bytes
    timeout_s: float
    grace_s: float
    """Seconds between asking a command that is out of time to end and killing it."""
    output_bytes: int


async def run_on_host(command: HostCommand, output: Output) -> SandboxExit:
    """Run to the end of the command itself; what it left in the background is ended then.

    Cancelling kills everything at once. Raises `ToolFailed` when it cannot be started.
    """
    marker = secrets.token_hex(8)
    started = time.monotonic()
    bounded = BoundedOutput(output, command.output_bytes)
    (reading, writing), (watched, lifeline) = _pipes()
    try:
        process = await _start(command, marker, watched, writing)
        group = _Group(process.pid, marker)
        reader = _Reader(reading, bounded.add)
        try:
            exit_code = await _exit_code(process, command.timeout_s)
            if exit_code is None:
                await _ask_to_end(process, group, command.grace_s)
            await asyncio.to_thread(group.kill)
        finally:
            group.kill()
            reader.drain()
            await _reap(process)
    finally:
        os.close(reading)
        os.close(lifeline)
    return SandboxExit(
        ended="timeout" if exit_code is None else "exited",
        code=exit_code,
        left_behind=group.left_behind,
        dropped_bytes=bounded.dropped,
        duration_s=time.monotonic() - started,
    )


async def _start(command: HostCommand, marker: str, watched: int, writing: int) -> Process:
    """Start the leader of the command. Closes both descriptors."""
    try:
        with _readable(command.stdin) as content:
            return await asyncio.create_subprocess_exec(
                "/bin/sh",
                "-c",
                _LEADER,
                "xclaw",
                *command.argv,
                stdin=content,
                stdout=writing,
                stderr=watched,
                cwd=command.directory,
                env={**command.environment, MARKER: marker},
                start_new_session=True,
            )
    except ValueError as error:  # NUL, or what is no text
        raise ToolFailed("the command holds characters that no command can hold, such as NUL") from error
    except OSError as error:
        tip = "; write it to a file and run that" if error.errno == errno.E2BIG else ""
        raise ToolFailed(f"the command could not be started: {error.strerror}{tip}") from error
    finally:
        os.close(watched)
        os.close(writing)


@contextlib.contextmanager
def _readable(content: bytes) -> Generator[int]:
    """What a command reads from, as a descriptor or a stand-in for one."""
    if not content:
        yield asyncio.subprocess.DEVNULL
        return
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.seek(0)
        yield file.fileno()


async def _exit_code(process: Process, timeout_s: float) -> int | None:
    """As a shell gives it, 128 and the signal for what was killed; None when the time is over."""
    try:
        async with asyncio.timeout(timeout_s):
            code = await process.wait()
    except TimeoutError:
        return None
    return code if code >= 0 else 128 - code


async def _ask_to_end(process: Process, group: "_Group", grace_s: float) -> None:
    group.signal(signal.SIGTERM)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(grace_s):
            await process.wait()


async def _reap(process: Process) -> None:
    """Wait for a killed process; one that hangs in the kernel is left to it."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_REAP_S):
            await process.wait()


class _Group:
    """All processes of one command, in its group or escaped from it."""

    def __init__(self, leader: int, marker: str) -> None:
        self.left_behind = 0
        self._leader = leader
        self._marker = f"{MARKER}={marker}".encode()
        self._ended = False

    def signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._leader, number)

    def kill(self) -> None:
        """Kill what there is until nothing is left. Does nothing the second time: by then the ids
        may be another's."""
        if self._ended:
            return
        for attempt in range(_KILL_ROUNDS):
            found = self._members()
            if attempt == 0:
                self.left_behind = sum(not is_ours for is_ours in found.values())
                if found or not _PROCESSES.is_dir():
                    self.signal(signal.SIGKILL)
            if not found:
                break
            for process_id in found:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(process_id, signal.SIGKILL)
        self._ended = True

    def _members(self) -> dict[int, bool]:
        """Living processes of the command; true for leader and watcher. Empty without /proc."""
        if not _PROCESSES.is_dir():
            return {}
        found: dict[int, bool] = {}
        for entry in _PROCESSES.iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    if self._is_member(entry):
                        found[int(entry.name)] = _LEADER.encode() in (entry / "cmdline").read_bytes()
        return found

    def _is_member(self, entry: Path) -> bool:
        # The name in brackets may hold anything; the state and four numbers follow it.
        state, _, _, session = (entry / "stat").read_bytes().rpartition(b")")[2].split()[:4]
        if state in (b"Z", b"X"):
            return False
        if int(session) == self._leader:
            return True
        return self._marker in (entry / "environ").read_bytes().split(b"\0")


class _Reader:
    """Reads a pipe as it fills, so that no writer waits, whatever the writer's number or end."""

    def __init__(self, descriptor: int, output: Output) -> None:
        self._descriptor = descriptor
        self._output = output
        self._loop = asyncio.get_running_loop()
        os.set_blocking(descriptor, False)
        self._loop.add_reader(descriptor, self._read)

    def drain(self) -> None:
        """Take what is still in the pipe, without waiting for more; then stop."""
        taken = 0
        while taken < _DRAIN_BYTES and (count := self._read()):
            taken += count
        self._loop.remove_reader(self._descriptor)

    def _read(self) -> int:
        try:
            chunk = os.read(self._descriptor, _READ_BYTES)
        except BlockingIOError:
            return 0
        self._output(chunk)
        if not chunk:
            self._loop.remove_reader(self._descriptor)
        return len(chunk)


def _pipes() -> tuple[tuple[int, int], tuple[int, int]]:
    first = os.pipe()
    try:
        return first, os.pipe()
    except OSError:
        for descriptor in first:
            os.close(descriptor)
        raise
