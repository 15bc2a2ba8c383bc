"""The local kind: a sub-agent is a task of this process, with its own context variables."""

import asyncio
from contextlib import suppress

from xclaw.contracts.results import Result
from xclaw.contracts.spawn import Birth, Drive

CANCEL_GRACE_S = 5.0
"""How long a cancelled child may take to end before it is reported as late."""


class LocalChild:
    """A `Child` that is an asyncio task. The task ends with a `Result`, also when it is cancelled."""

    def __init__(self, birth: Birth, task: asyncio.Task[Result], begun: asyncio.Event) -> None:
        self._birth = birth
        self._task = task
        self._begun = begun

    @property
    def run_id(self) -> str:
        return self._birth.run_id

    @property
    def session_id(self) -> str:
        return self._birth.session_id

    @property
    def task_id(self) -> str:
        return self._birth.task_id

    async def result(self) -> Result:
        await asyncio.wait([self._task])
        if self._task.cancelled():
            return Result("cancelled", reason="cancelled before it started")
        error = self._task.exception()
        if error is not None:
            return Result("error", reason=f"the sub-agent crashed: {type(error).__name__}: {error}")
        return self._task.result()

    async def cancel(self, reason: str) -> Result:
        """Waits at most `CANCEL_GRACE_S` for its end; a child that does not end is said to be late."""
        # A task that is cancelled before its first step never takes it, and could not record its end.
        await self._begun.wait()
        self._task.cancel(reason)
        await asyncio.wait([self._task], timeout=CANCEL_GRACE_S)
        if not self._task.done():
            return Result("cancelled", reason=f"late: it has not ended {CANCEL_GRACE_S} s after: {reason}")
        return await self.result()


class LocalLauncher:
    """Starts children as tasks. Owns the references that keep them alive, nothing else."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Result]] = set()

    def launch(self, birth: Birth, drive: Drive) -> LocalChild:
        begun = asyncio.Event()

        async def run() -> Result:
            begun.set()
            return await drive()

        task = asyncio.get_running_loop().create_task(run(), name=f"run {birth.run_id}")
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        return LocalChild(birth, task, begun)

    def _forget(self, task: asyncio.Task[Result]) -> None:
        self._tasks.discard(task)
        with suppress(asyncio.CancelledError):
            task.exception()
