"""Backends for tests of the pool: what they are told is noted, and they do as a test says."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from xclaw.contracts.errors import SandboxLost, SandboxUnavailable
from xclaw.contracts.sandbox import (
    BackendName,
    Probe,
    Sandbox,
    SandboxBackend,
    SandboxCommand,
    SandboxExit,
    SandboxPolicy,
    SandboxSpec,
)
from xclaw.sandbox.pool import SandboxPool
from xclaw.sandbox.settings import SandboxSettings

NOTHING = SandboxCommand(("true",), 5)


def unheard(_: bytes) -> None:
    """Output that nobody wants."""


@dataclass(eq=False)
class NotedSandbox:
    """Implements `Sandbox` and `WarmSandbox`."""

    number: int
    spec: SandboxSpec | None = None
    commands: int = 0
    is_closed: bool = False
    is_dead: bool = False
    answers: bool = True
    going_on: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while a command waits for `may_end`."""
    may_end: asyncio.Event | None = None
    may_close: asyncio.Event | None = None

    @property
    def backend(self) -> BackendName:
        return "kvm"

    async def exec(self, command: SandboxCommand, output: Callable[[bytes], None]) -> SandboxExit:
        if self.is_closed or self.is_dead:
            raise SandboxLost("it is gone")
        self.commands += 1
        if self.may_end is not None:
            self.going_on.set()
            await self.may_end.wait()
        return SandboxExit("exited", 0, 0, 0, 0.0)

    async def put(self, path: str, content: bytes) -> None:
        await self.exec(NOTHING, unheard)

    async def get(self, path: str, limit: int = 1_000_000) -> bytes:
        await self.exec(NOTHING, unheard)
        return b""

    async def close(self) -> None:
        if self.may_close is not None:
            await self.may_close.wait()
        self.is_closed = True

    async def ping(self) -> bool:
        return self.answers and not self.is_dead

    async def take(self, spec: SandboxSpec) -> Sandbox:
        if self.is_dead:
            raise SandboxLost("it is gone")
        self.spec = spec
        return self


class NotedBackend:
    """Implements `SandboxBackend`."""

    def __init__(self) -> None:
        self.made: list[NotedSandbox] = []
        self.fails = False
        self.may_start: asyncio.Event | None = None

    @property
    def name(self) -> BackendName:
        return "kvm"

    @property
    def open(self) -> list[NotedSandbox]:
        return [sandbox for sandbox in self.made if not sandbox.is_closed]

    async def probe(self) -> Probe:
        return Probe("kvm", True, "noted")

    async def start(self, spec: SandboxSpec) -> Sandbox:
        sandbox = await self.make()
        sandbox.spec = spec
        return sandbox

    async def make(self) -> NotedSandbox:
        if self.may_start is not None:
            await self.may_start.wait()
        if self.fails:
            raise SandboxUnavailable("there is none today")
        sandbox = NotedSandbox(len(self.made))
        self.made.append(sandbox)
        return sandbox


class WarmNotedBackend(NotedBackend):
    """Implements `WarmBackend`."""

    def __init__(self) -> None:
        super().__init__()
        self.warmed: list[NotedSandbox] = []

    async def warm(self, policy: SandboxPolicy) -> NotedSandbox:
        sandbox = await self.make()
        self.warmed.append(sandbox)
        return sandbox


def pool_of(backend: SandboxBackend, **settings: float) -> SandboxPool:
    async def chosen() -> SandboxBackend:
        return backend

    return SandboxPool(chosen, SandboxSettings(**settings))  # pyright: ignore[reportArgumentType] - test shorthand


def spec_of(number: int = 0, directory: str = "/nowhere") -> SandboxSpec:
    return SandboxSpec(f"{number:06x}", f"{directory}/workspace", f"{directory}/input")


async def settled() -> None:
    """Let everything that can go on without waiting do so."""
    for _ in range(20):
        await asyncio.sleep(0)
