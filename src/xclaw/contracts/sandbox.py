"""The Sandbox contract: where the commands of one run are executed, and what they may use (SPEC F3).

In host mode that is this machine as it is, under its own paths. In full mode there are, inside, `/workspace`,
which is the run's own and can be written, `/input`, which cannot, and `/tmp`. What comes out of a sandbox is a
stranger's: sizes, codes and texts are bounded by whoever reads them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from xclaw.contracts.errors import SandboxUnavailable

BackendName = Literal["host", "bubblewrap", "kvm", "tcg", "container"]
"""How commands are kept in. "host": by nothing. "tcg": a micro-VM whose processor is emulated, which is slow;
only ever by explicit choice."""

SandboxChoice = Literal["auto", "host", "bubblewrap", "kvm", "tcg", "container"]
STRONGEST_FIRST: tuple[BackendName, ...] = ("kvm", "bubblewrap", "container")
""" "auto": the first of these that works."""

WORKSPACE = "/workspace"
INPUT = "/input"
PROJECT = "/project"


@dataclass(frozen=True, slots=True)
class SandboxPolicy:
    """What the commands of one sandbox may use. What is not named here, they cannot reach."""

    network: tuple[str, ...] = ()
    """Hosts that may be reached, as "name" or "name:port"; empty: there is no network."""
    cpus: float = 1.0
    memory_bytes: int = 536_870_912
    """Of all its processes together."""
    processes: int = 128
    disk_bytes: int = 536_870_912
    """Of what commands add to /workspace and /tmp together."""
    output_bytes: int = 10_000_000
    """Of one command; what is beyond is read and dropped."""
    environment: tuple[tuple[str, str], ...] = ()
    """Beside PATH, HOME, LANG and what keeps programs from asking."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A host directory that can be read inside, at an absolute path."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """One sandbox that is wanted. Directories are of the host, and exist."""

    task_id: str
    workspace: str
    """At /workspace."""
    input: str
    """At /input, read-only. Files that are put there later are seen. Empty in host mode: there is none."""
    mounts: tuple[Mount, ...] = ()
    policy: SandboxPolicy = SandboxPolicy()


@dataclass(frozen=True, slots=True)
class SandboxCommand:
    argv: tuple[str, ...]
    timeout_s: float
    """By the host's clock. Then everything that it started is killed."""
    directory: str = WORKSPACE
    stdin: bytes = b""
    environment: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class SandboxExit:
    """How a command ended. When it has, nothing that it started is left."""

    ended: Literal["exited", "timeout", "memory", "disk"]
    """By itself, or killed because of that limit."""
    code: int | None
    """128 and the signal for what was killed by one; None when a limit ended it."""
    left_behind: int
    """Processes that it had put into the background; 0 where that cannot be told."""
    dropped_bytes: int
    duration_s: float


class Sandbox(Protocol):
    """One run's sandbox. One command at a time; a second waits.

    Methods raise `SandboxLost` once the sandbox itself is gone: crashed, killed or closed.
    """

    @property
    def backend(self) -> BackendName: ...

    async def exec(self, command: SandboxCommand, output: Callable[[bytes], None]) -> SandboxExit:
        """Run a command; `output` gets what it writes, both streams as they come, in bounded pieces.

        Cancelling it kills the command with everything it started. Raises `ToolFailed` for a command
        that cannot be started.
        """
        ...

    async def put(self, path: str, content: bytes) -> None:
        """Write a file, as the sandbox sees the path: nothing outside can be meant. Raises `ToolFailed`."""
        ...

    async def get(self, path: str, limit: int = 1_000_000) -> bytes:
        """At most `limit` bytes of a regular file, as the sandbox sees the path. Raises `ToolFailed`."""
        ...

    async def close(self) -> None:
        """End it with everything in it, at once, and wait until it is gone. The workspace stays. Safe to
        repeat; cancelling the wait does not stop it."""
        ...


@dataclass(frozen=True, slots=True)
class Probe:
    """Whether a backend works on this machine: found out by starting one, never by looking for a file."""

    backend: BackendName
    works: bool
    detail: str
    """What was found, or why it does not work and what to do."""


class SandboxBackend(Protocol):
    """One way to make sandboxes."""

    @property
    def name(self) -> BackendName: ...

    async def probe(self) -> Probe:
        """Start one and run something in it, in bounded time. Never raises."""
        ...

    async def start(self, spec: SandboxSpec) -> Sandbox:
        """Raises `SandboxUnavailable`. Cancelling it leaves nothing behind."""
        ...


class WarmSandbox(Protocol):
    """A sandbox that was started ahead of the run that will have it, and has nothing of any run."""

    async def ping(self) -> bool:
        """Whether it still answers, in bounded time. Never raises."""
        ...

    async def take(self, spec: SandboxSpec) -> Sandbox:
        """Make it the run's own: from then on it is ended through what is answered. Raises `SandboxLost`
        when it is gone. Cancelling it leaves nothing behind."""
        ...

    async def close(self) -> None:
        """As of a `Sandbox`."""
        ...


@runtime_checkable
class WarmBackend(SandboxBackend, Protocol):
    """A backend that can start sandboxes before it is known for which run."""

    async def warm(self, policy: SandboxPolicy) -> WarmSandbox:
        """Raises `SandboxUnavailable`. Cancelling it leaves nothing behind."""
        ...


class Sandboxes(Protocol):
    """Hands out sandboxes: one for each run that needs one."""

    async def ready(self) -> Probe | None:
        """What sandboxes are made by, before anything depends on it; None in host mode. Raises
        `SandboxUnavailable`."""
        ...

    async def open(self, spec: SandboxSpec) -> Sandbox:
        """Waits when as many are open as may be. Raises `SandboxUnavailable` when what was asked for does
        not work here: never something weaker instead. Closing the sandbox gives its place back."""
        ...

    async def close(self) -> None:
        """End all of them."""
        ...


async def no_sandbox() -> Sandbox:
    """Of a tool that is called outside of any run."""
    raise SandboxUnavailable("commands are executed in a run's sandbox, and this call belongs to no run")
