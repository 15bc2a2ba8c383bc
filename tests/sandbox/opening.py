"""Sandboxes of the backends that work here, for tests."""

import os
import signal
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from xclaw.contracts.sandbox import Mount, Sandbox, SandboxBackend, SandboxPolicy, SandboxSpec
from xclaw.sandbox.bubblewrap.backend import BubblewrapBackend
from xclaw.sandbox.bubblewrap.sandbox import BubblewrapSandbox
from xclaw.sandbox.host import HostBackend
from xclaw.sandbox.settings import SandboxSettings
from xclaw.testing.sandbox_harness import Opened, OpenSandbox

BACKENDS: dict[str, SandboxBackend] = {
    "host": HostBackend(),
    "bubblewrap": BubblewrapBackend(SandboxSettings()),
}


def opener(backend: SandboxBackend, mounts: tuple[Mount, ...] = ()) -> OpenSandbox:
    """Opens sandboxes of a backend in directories of their own, and takes everything away again."""

    @asynccontextmanager
    async def opened(policy: SandboxPolicy) -> AsyncGenerator[Opened]:
        with tempfile.TemporaryDirectory(prefix="xclaw-test-") as directory:
            workspace, inputs = Path(directory, "workspace"), Path(directory, "input")
            workspace.mkdir()
            inputs.mkdir()
            spec = SandboxSpec("0a1b2c", str(workspace), str(inputs), mounts, policy)
            sandbox = await backend.start(spec)
            try:
                yield Opened(sandbox, workspace, inputs, killer(sandbox))
            finally:
                await sandbox.close()

    def call(policy: SandboxPolicy) -> AbstractAsyncContextManager[Opened]:
        return opened(policy)

    return call


def killer(sandbox: Sandbox) -> Callable[[], None] | None:
    if isinstance(sandbox, BubblewrapSandbox):
        return lambda: os.kill(sandbox.pid, signal.SIGKILL)
    return None
