"""The sandbox of each run (SPEC F3): started at the first call that needs it, gone when the run has ended."""

import asyncio
import logging
from typing import cast

from xclaw.contracts.errors import SandboxLost, SandboxUnavailable, UsageError
from xclaw.contracts.events import RunStarted
from xclaw.contracts.sandbox import STRONGEST_FIRST, BackendName, Mount, Sandbox, Sandboxes, SandboxSpec
from xclaw.contracts.workspaces import Workspace

logger = logging.getLogger(__name__)

CLOSE_S = 20.0
"""How long a run's end waits for its sandbox. What is not gone by then goes on ending by itself."""
UNCONTAINED = ("", "host")
"""What keeps commands in where nothing does: host mode, and what only calls itself a sandbox."""


class RunSandbox:
    """One run's. Its `open` is what tools are given.

    The run's files are laid out anew at each call, so that commands see what it was granted meanwhile.
    """

    def __init__(
        self, sandboxes: Sandboxes, workspace: Workspace, task_id: str, mounts: tuple[Mount, ...] = ()
    ) -> None:
        self._mounts = mounts
        self._sandboxes = sandboxes
        self._workspace = workspace
        self._task_id = task_id
        self._opening = asyncio.Lock()
        self._sandbox: Sandbox | None = None
        self._closed = False

    async def open(self) -> Sandbox:
        """Raises `SandboxUnavailable`, and `SandboxLost` once the run has ended. Cancelling it leaves nothing
        behind."""
        async with self._opening:
            if self._closed:
                raise SandboxLost("the run has ended, and its sandbox with it")
            await asyncio.to_thread(self._workspace.prepare)
            if self._sandbox is None:
                workspace = self._workspace
                spec = SandboxSpec(self._task_id, workspace.private_dir, workspace.input_dir, self._mounts)
                self._sandbox = await self._sandboxes.open(spec)
            return self._sandbox

    async def close(self) -> None:
        """In bounded time. Safe to repeat. Never raises: whatever is wrong with the sandbox, the run has its
        ending."""
        self._closed = True
        try:
            async with asyncio.timeout(CLOSE_S):
                async with self._opening:
                    sandbox, self._sandbox = self._sandbox, None
                if sandbox is not None:
                    await sandbox.close()
            if self._workspace.input_dir:
                await asyncio.to_thread(self._workspace.release)
        except Exception:
            logger.exception("the sandbox of task %s did not end as it should", self._task_id)


async def backend_of(sandboxes: Sandboxes) -> BackendName | None:
    """What the commands of a new tree are kept in by; None in host mode. Raises `SandboxUnavailable`."""
    probe = await sandboxes.ready()
    return probe.backend if probe is not None else None


def refuse_weaker(started: RunStarted, backend: BackendName | None) -> None:
    """Raise `UsageError` where a tree that is taken up would be kept in by less than it began with, or by
    something else altogether: its paths would mean other files."""
    began, now = started.sandbox, backend or ""
    if began == now or (began and now and _rank(now) < _rank(began)):
        return
    if not began:
        raise UsageError("the run was begun in host mode; take it up with `--mode host`")
    if not now:
        raise UsageError(f"the run was begun in a sandbox ({began}); take it up with `--mode full`")
    raise SandboxUnavailable(
        f"the run was begun in a sandbox of the kind {began}, and here is {now}, which is weaker; take it up with "
        f"`--sandbox {began}`"
    )


def _rank(backend: str) -> int:
    names = [*STRONGEST_FIRST, "tcg", "host"]
    return names.index(cast("BackendName", backend)) if backend in names else len(names)


def lost_sandbox(failure: BaseException) -> SandboxLost | SandboxUnavailable | None:
    """What became of a run's sandbox, alone or among the failures of calls that ran at once."""
    if isinstance(failure, SandboxLost | SandboxUnavailable):
        return failure
    if isinstance(failure, BaseExceptionGroup):
        parts = cast("BaseExceptionGroup[BaseException]", failure).exceptions
        return next((found for part in parts if (found := lost_sandbox(part))), None)
    return None
