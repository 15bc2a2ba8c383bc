"""Images and virtual machines for tests: an image that survives runs, machines that tests share."""

import asyncio
import os
import signal
import tempfile
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from functools import cache
from pathlib import Path

import pytest

from xclaw.contracts.errors import SandboxUnavailable
from xclaw.contracts.sandbox import Sandbox, SandboxPolicy, SandboxSpec
from xclaw.sandbox.kvm.backend import KvmBackend
from xclaw.sandbox.kvm.build import build_image
from xclaw.sandbox.kvm.image import Image
from xclaw.sandbox.kvm.sandbox import MachineSandbox
from xclaw.sandbox.settings import SandboxSettings
from xclaw.testing.sandbox_harness import POLICY, Opened, OpenSandbox

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "xclaw" / "test-sandbox"
SETTINGS = SandboxSettings(image_dir=str(CACHE), boot_timeout_s=100.0)
BUILDING_S = 900
"""Of a test that may have to build the image first."""


@cache
def _image() -> Image | str:
    try:
        return build_image(CACHE, lambda _line: None)
    except SandboxUnavailable as error:
        return str(error)


def image() -> Image:
    """Built on first use; a test that needs it is skipped, with the reason, where none can be built."""
    found = _image()
    if isinstance(found, str):
        pytest.skip(f"tcg: no image of a virtual machine: {found}")
    return found


def emulated() -> KvmBackend:
    """Virtual machines without the processor's help: the only kind that works on any machine."""
    image()
    return KvmBackend(SETTINGS, "tcg")


@asynccontextmanager
async def started(
    policy: SandboxPolicy = POLICY, backend: KvmBackend | None = None
) -> AsyncGenerator[Opened]:
    """A machine with directories of its own; emulated, if no backend is given."""
    with tempfile.TemporaryDirectory(prefix="xclaw-test-") as directory:
        workspace, inputs = Path(directory, "workspace"), Path(directory, "input")
        workspace.mkdir()
        inputs.mkdir()
        spec = SandboxSpec("0a1b2c", str(workspace), str(inputs), policy=policy)
        sandbox = await (backend or emulated()).start(spec)
        try:
            yield Opened(sandbox, workspace, inputs, _killer(sandbox))
        finally:
            await sandbox.close()


def _killer(sandbox: Sandbox) -> Callable[[], None]:
    assert isinstance(sandbox, MachineSandbox)
    return lambda: os.kill(sandbox.machine.qemu_pid, signal.SIGKILL)


class SharedMachine:
    """One machine for several tests, in a loop that outlives each of them."""

    def __init__(self, runner: asyncio.Runner, opened: Opened) -> None:
        self.runner = runner
        self.opened = opened

    def open(self, policy: SandboxPolicy) -> AbstractAsyncContextManager[Opened]:
        """As an `OpenSandbox`: nothing is closed when a test is through with it."""
        assert policy == POLICY

        @asynccontextmanager
        async def same() -> AsyncGenerator[Opened]:
            yield self.opened

        return same()


@contextmanager
def shared_machine() -> Generator[SharedMachine]:
    with asyncio.Runner() as runner:
        context = started()
        opened = runner.run(context.__aenter__())
        try:
            yield SharedMachine(runner, opened)
        finally:
            runner.run(context.__aexit__(None, None, None))


open_machine: OpenSandbox = started
