"""What those sandboxes have in common whose every use is a command, the putting and getting of files, too."""

import asyncio
from abc import ABC, abstractmethod

from xclaw.contracts.sandbox import BackendName, SandboxCommand, SandboxExit, SandboxPolicy
from xclaw.sandbox.files import get_file, put_file
from xclaw.sandbox.output import Output
from xclaw.sandbox.specs import checked_command


class CommandedSandbox(ABC):
    """Implements `Sandbox`, but for how a command is run, and for the end."""

    def __init__(self, backend: BackendName, policy: SandboxPolicy) -> None:
        self._backend: BackendName = backend
        self._policy = policy
        self._turn = asyncio.Lock()

    @property
    def backend(self) -> BackendName:
        return self._backend

    async def exec(self, command: SandboxCommand, output: Output) -> SandboxExit:
        return await self._run(command, output, self._policy.output_bytes)

    async def put(self, path: str, content: bytes) -> None:
        await put_file(self._run, path, content, self._policy.disk_bytes)

    async def get(self, path: str, limit: int = 1_000_000) -> bytes:
        return await get_file(self._run, path, limit)

    async def _run(self, command: SandboxCommand, output: Output, limit: int) -> SandboxExit:
        checked_command(command)
        async with self._turn:
            return await self._run_alone(command, output, limit)

    @abstractmethod
    async def _run_alone(self, command: SandboxCommand, output: Output, limit: int) -> SandboxExit:
        """Run a command that was checked, while no other runs; `limit` bounds what is passed on of its output."""
