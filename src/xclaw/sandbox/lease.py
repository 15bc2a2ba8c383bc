"""What a run has of the pool: its sandbox, whichever one is behind it."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Protocol

from xclaw.contracts.errors import SandboxLost
from xclaw.contracts.sandbox import BackendName, Sandbox, SandboxCommand, SandboxExit, SandboxSpec


class Places(Protocol):
    """Who gives sandboxes out."""

    async def started(self, lease: "Lease") -> Sandbox:
        """A sandbox for a lease that has none, once there is a place for it."""
        ...

    def used(self, lease: "Lease") -> None:
        """Nothing runs in it any more."""
        ...

    def retire(self, lease: "Lease", sandbox: Sandbox) -> asyncio.Task[None]:
        """End a sandbox that a run had, and give its place to the next."""
        ...


class Lease:
    """Implements `Sandbox`. While nothing runs in it, the one behind it may be given up for another run."""

    def __init__(self, places: Places, backend: BackendName, spec: SandboxSpec) -> None:
        self.spec = spec
        self._places = places
        self._backend: BackendName = backend
        self._turn = asyncio.Lock()
        self._sandbox: Sandbox | None = None
        self._running = False
        self._was_used = False
        self.ended: asyncio.Task[None] | None = None
        """The end of the last sandbox that was behind it."""
        self._is_over = False

    @property
    def backend(self) -> BackendName:
        return self._backend

    @property
    def is_idle(self) -> bool:
        """It has been used and nothing runs in it: one that was just given out is about to be used."""
        return self._sandbox is not None and self._was_used and not self._running

    async def begin(self) -> None:
        async with self._turn:
            await self._start()

    async def exec(self, command: SandboxCommand, output: Callable[[bytes], None]) -> SandboxExit:
        async with self._in_use() as sandbox:
            return await sandbox.exec(command, output)

    async def put(self, path: str, content: bytes) -> None:
        async with self._in_use() as sandbox:
            await sandbox.put(path, content)

    async def get(self, path: str, limit: int = 1_000_000) -> bytes:
        async with self._in_use() as sandbox:
            return await sandbox.get(path, limit)

    async def close(self) -> None:
        self.end()
        if self.ended is not None:
            await asyncio.shield(self.ended)

    def end(self) -> None:
        """Begin to end it."""
        self._is_over = True
        sandbox = self.give_up()
        if sandbox is not None:
            self.ended = self._places.retire(self, sandbox)

    def give_up(self) -> Sandbox | None:
        """The sandbox behind it, which is the caller's to end."""
        sandbox, self._sandbox = self._sandbox, None
        return sandbox

    async def _start(self) -> Sandbox:
        sandbox = await self._places.started(self)
        if self._is_over:
            await asyncio.shield(self._places.retire(self, sandbox))
            raise SandboxLost("it was closed")
        self._sandbox = sandbox
        return sandbox

    @asynccontextmanager
    async def _in_use(self) -> AsyncGenerator[Sandbox]:
        async with self._turn:
            if self._is_over:
                raise SandboxLost("it was closed")
            sandbox = self._sandbox or await self._start()
            self._running = self._was_used = True
            try:
                yield sandbox
            except SandboxLost:
                self.end()
                raise
            finally:
                self._running = False
                self._places.used(self)
