"""What keeps nothing in: commands run on this machine as xclaw's own user, in host mode and by the backend
`host`. They are bounded in time and output, and none outlives its call."""

import asyncio
import os
import posixpath
import shutil
import stat
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from xclaw.contracts.errors import SandboxLost, ToolFailed
from xclaw.contracts.sandbox import (
    INPUT,
    WORKSPACE,
    BackendName,
    Probe,
    Sandbox,
    SandboxCommand,
    SandboxExit,
    SandboxPolicy,
    SandboxSpec,
)
from xclaw.sandbox.environment import Pairs, environment_inside
from xclaw.sandbox.files import absolute_inside
from xclaw.sandbox.host_processes import HostCommand, run_on_host
from xclaw.sandbox.specs import checked_command, checked_spec

GRACE_S = 0.5
"""Seconds between asking a command that is out of time to end and killing it."""
_EVERYTHING = SandboxPolicy(output_bytes=sys.maxsize)
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class HostBackend:
    """Implements `SandboxBackend`. Only ever by explicit choice."""

    def __init__(self, marks: Pairs = ()) -> None:
        """`marks` are variables of all commands, by which others find what a killed process left."""
        self._marks = marks

    @property
    def name(self) -> BackendName:
        return "host"

    async def probe(self) -> Probe:
        return Probe("host", True, "no isolation: commands reach whatever xclaw's own user reaches")

    async def start(self, spec: SandboxSpec) -> Sandbox:
        checked_spec(spec)
        return HostSandbox(spec, self._marks)


class HostSandboxes:
    """Implements `Sandboxes`, for host mode: there are as many as are wanted, and nothing to start or to end.
    All output of a command is passed on, so that whoever bounds it has its end, too."""

    def __init__(self, marks: Pairs = (), grace_s: float = GRACE_S) -> None:
        self._marks = marks
        self._grace_s = grace_s

    async def ready(self) -> None:
        return None

    async def open(self, spec: SandboxSpec) -> Sandbox:
        return HostSandbox(replace(spec, policy=_EVERYTHING), self._marks, self._grace_s)

    async def close(self) -> None:
        """There is nothing to end: a command is ended with its run."""


class HostSandbox:
    """Implements `Sandbox`. /workspace and /input are names for the host's directories in `directory`, `put`
    and `get`; commands themselves see the host's paths."""

    def __init__(self, spec: SandboxSpec, marks: Pairs = (), grace_s: float = GRACE_S) -> None:
        self._spec = spec
        self._marks = marks
        self._grace_s = grace_s
        self._places = {WORKSPACE: spec.workspace}
        if spec.input:
            self._places[INPUT] = spec.input
        self._places.update((mount.target, mount.source) for mount in spec.mounts)
        self._turn = asyncio.Lock()
        self._running: asyncio.Task[SandboxExit] | None = None
        self._is_closed = False

    @property
    def backend(self) -> BackendName:
        return "host"

    async def exec(self, command: SandboxCommand, output: Callable[[bytes], None]) -> SandboxExit:
        checked_command(command)
        root, parts = self._place(command.directory)
        directory = str(Path(root, *parts))
        environment = environment_inside(self._spec.policy.environment, home=self._spec.workspace)
        environment.update((*command.environment, *self._marks))
        _check_program(command.argv, environment["PATH"])
        order = HostCommand(
            argv=command.argv,
            directory=directory,
            environment=environment,
            stdin=command.stdin,
            timeout_s=command.timeout_s,
            grace_s=self._grace_s,
            output_bytes=self._spec.policy.output_bytes,
        )
        async with self._turn:
            self._check_open()
            self._running = asyncio.get_running_loop().create_task(run_on_host(order, output))
            try:
                return await self._running
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is None or not task.cancelling():  # it was `close` that ended the command
                    self._check_open()
                raise

    async def put(self, path: str, content: bytes) -> None:
        async with self._turn:
            self._check_open()
            root, parts = self._place(path)
            if root != self._spec.workspace:
                raise ToolFailed(f"{path} could not be written: only {WORKSPACE} can be")
            await asyncio.to_thread(_write, root, parts, content)

    async def get(self, path: str, limit: int = 1_000_000) -> bytes:
        async with self._turn:
            self._check_open()
            root, parts = self._place(path)
            return await asyncio.to_thread(_read, root, parts, limit)

    async def close(self) -> None:
        self._is_closed = True
        if self._running is not None and not self._running.done():
            self._running.cancel()
            await asyncio.wait([self._running])

    def _check_open(self) -> None:
        if self._is_closed:
            raise SandboxLost("The sandbox is gone: it was closed.")

    def _place(self, path: str) -> tuple[str, list[str]]:
        """The host directory that a path is below of, and the names below it. Raises `ToolFailed`."""
        absolute = posixpath.normpath(absolute_inside(path))
        for target, source in self._places.items():
            if absolute == target or absolute.startswith(f"{target}/"):
                return source, [name for name in absolute[len(target) :].split("/") if name]
        raise ToolFailed(f"{path} is not below {', '.join(self._places)}")


def _check_program(argv: tuple[str, ...], path: str) -> None:
    if "/" not in argv[0] and shutil.which(argv[0], path=path) is None:
        raise ToolFailed(f"the command could not be started: there is no program {argv[0][:200]}")


def _write(root: str, parts: list[str], content: bytes) -> None:
    try:
        with os.fdopen(_opened(root, parts, _WRITE), "wb") as file:
            file.write(content)
    except OSError as error:
        raise ToolFailed(f"{'/'.join(parts)} could not be written: {error.strerror}") from error


def _read(root: str, parts: list[str], limit: int) -> bytes:
    try:
        with os.fdopen(_opened(root, parts, _READ), "rb") as file:
            return file.read(limit)
    except OSError as error:
        raise ToolFailed(f"{'/'.join(parts)} could not be read: {error.strerror}") from error


def _opened(root: str, parts: list[str], flags: int) -> int:
    """A regular file below a directory, reached without following any link. Directories are made for writing.
    Raises `OSError`, `ToolFailed`."""
    if not parts:
        raise ToolFailed("that is a directory")
    within = os.open(root, _DIRECTORY & ~os.O_NOFOLLOW)
    try:
        for name in parts[:-1]:
            if flags == _WRITE:
                _make(name, within)
            inner = os.open(name, _DIRECTORY, dir_fd=within)
            os.close(within)
            within = inner
        descriptor = os.open(parts[-1], flags, 0o666, dir_fd=within)
    finally:
        os.close(within)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ToolFailed(f"{'/'.join(parts)} is no regular file")
    return descriptor


def _make(name: str, within: int) -> None:
    try:
        os.mkdir(name, dir_fd=within)
    except FileExistsError:
        return
