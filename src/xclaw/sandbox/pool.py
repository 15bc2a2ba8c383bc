"""A bounded number of sandboxes, some of them warm: one for each run, and never one that a run has had."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace

from xclaw.contracts.errors import SandboxLost, SandboxUnavailable
from xclaw.contracts.sandbox import (
    Probe,
    Sandbox,
    SandboxBackend,
    SandboxSpec,
    WarmBackend,
    WarmSandbox,
)
from xclaw.sandbox.choosing import probed
from xclaw.sandbox.lease import Lease
from xclaw.sandbox.settings import SandboxSettings

logger = logging.getLogger(__name__)

MAX_AGE_S = 600.0
"""A warm sandbox that is older is thrown away: what it believes of the world may not be so any more."""
CLOSE_S = 15.0
"""How long the end of everything may take. What is not gone by then is ended with this process."""
START_MARGIN_S = 10.0
"""What a start may take beyond the time that its backend allows itself."""
CLOSED = "xclaw is shutting down"


@dataclass(frozen=True, slots=True)
class _Warm:
    sandbox: WarmSandbox
    since: float


class SandboxPool:
    """Implements `Sandboxes`.

    At most `max_open` exist beside `pool_size` warm ones. Who wants a further one waits, first come, first
    served. A run whose sandbox nothing is running in gives its place to one that waits, and gets a new one
    at its next command: its /workspace is as it was, its /tmp empty. So nobody can wait for ever for places
    of runs that wait themselves.

    A sandbox that a run has had is thrown away: nobody can prove that it is clean.
    """

    def __init__(self, choose: Callable[[], Awaitable[SandboxBackend]], settings: SandboxSettings) -> None:
        """`choose` answers the backend, or raises `SandboxUnavailable`; it is asked until it has answered."""
        self._choose = choose
        self._settings = settings
        self._policy = settings.policy()
        self._free = settings.max_open
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._leases: dict[Lease, None] = {}
        """The longest unused first."""
        self._parking = 0
        self._asking = asyncio.Lock()
        self._backend: SandboxBackend | None = None
        self._warm: deque[_Warm] = deque()
        self._warmers: set[asyncio.Task[None]] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    async def ready(self) -> Probe:
        backend = await self._chosen()
        self._warm_up(backend)
        return await probed(backend)

    async def open(self, spec: SandboxSpec) -> Sandbox:
        """The policy is the settings', whatever `spec` says. Raises `SandboxLost` once the pool is closed."""
        backend = await self._chosen()
        lease = Lease(self, backend.name, replace(spec, policy=self._policy))
        await lease.begin()
        return lease

    async def close(self) -> None:
        """In bounded time."""
        self._closed = True
        waiting, self._waiting = self._waiting, deque()
        for waiter in waiting:
            if not waiter.done():
                waiter.set_exception(SandboxLost(CLOSED))
        for warmer in self._warmers:
            warmer.cancel()
        for lease in list(self._leases):
            lease.end()
        while self._warm:
            self._later(self._warm.popleft().sandbox.close())
        loop = asyncio.get_running_loop()
        until = loop.time() + CLOSE_S
        while self._tasks and loop.time() < until:
            await asyncio.wait(set(self._tasks), timeout=until - loop.time())
        for task in self._tasks:
            logger.warning("a sandbox had not ended after %.0f s", CLOSE_S)
            task.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=1.0)

    async def started(self, lease: Lease) -> Sandbox:
        """A sandbox for a lease that has none, once there is a place for it."""
        await self._place()
        try:
            if self._closed:
                raise SandboxLost(CLOSED)
            sandbox = await self._taken_or_made(await self._chosen(), lease.spec)
        except BaseException:
            self._give_place()
            raise
        self._leases[lease] = None
        return sandbox

    def used(self, lease: Lease) -> None:
        """Nothing runs in it any more."""
        if lease in self._leases:
            self._leases[lease] = self._leases.pop(lease)
            if len(self._waiting) > self._parking:
                self._park(lease)

    def retire(self, lease: Lease, sandbox: Sandbox) -> asyncio.Task[None]:
        """End a sandbox that a run had, and give its place to the next."""
        self._leases.pop(lease, None)
        return self._later(self._retired(sandbox))

    async def _chosen(self) -> SandboxBackend:
        async with self._asking:  # a probe that goes on is not begun a second time
            if self._backend is None:
                self._backend = await self._choose()
            return self._backend

    async def _retired(self, sandbox: Sandbox) -> None:
        try:
            await sandbox.close()
        finally:
            self._give_place()

    async def _place(self) -> None:
        if self._closed:
            raise SandboxLost(CLOSED)
        if self._free and not self._waiting:
            self._free -= 1
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        idle = next((lease for lease in self._leases if lease.is_idle), None)
        if idle is not None and len(self._waiting) > self._parking:
            self._park(idle)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self._give_place()  # it was given at the same moment
            elif waiter in self._waiting:
                self._waiting.remove(waiter)
            raise

    def _give_place(self) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        self._free += 1

    def _park(self, lease: Lease) -> None:
        """End the sandbox of a run that goes on, for one that waits."""
        sandbox = lease.give_up()
        if sandbox is not None:
            self._parking += 1
            self._leases.pop(lease, None)
            lease.ended = self._later(self._parked(sandbox))

    async def _parked(self, sandbox: Sandbox) -> None:
        try:
            await sandbox.close()
        finally:
            self._parking -= 1
            self._give_place()

    async def _taken_or_made(self, backend: SandboxBackend, spec: SandboxSpec) -> Sandbox:
        while self._warm:
            warm = self._warm.popleft()
            self._warm_up(backend)
            sandbox = await self._taken(warm, spec)
            if sandbox is not None:
                return sandbox
        limit = self._settings.boot_timeout_s + START_MARGIN_S
        try:
            async with asyncio.timeout(limit):
                return await backend.start(spec)
        except TimeoutError:
            raise SandboxUnavailable(
                f"a sandbox of the kind {backend.name} was not ready after {limit:g} s; raise "
                "`sandbox.boot_timeout_s`, or see `xclaw doctor`"
            ) from None

    async def _taken(self, warm: _Warm, spec: SandboxSpec) -> Sandbox | None:
        """The warm sandbox as the run's own; None when it is no good, and on its way out."""
        taken: Sandbox | None = None
        try:
            young = asyncio.get_running_loop().time() - warm.since < MAX_AGE_S
            if young and await warm.sandbox.ping():
                taken = await warm.sandbox.take(spec)
        except SandboxLost:
            pass
        finally:
            if taken is None:
                self._later(warm.sandbox.close())
        return taken

    def _warm_up(self, backend: SandboxBackend) -> None:
        """Have as many warm ones made as are missing, in the background."""
        if self._closed or not isinstance(backend, WarmBackend):
            return
        for _ in range(self._settings.pool_size - len(self._warm) - len(self._warmers)):
            warmer = self._later(self._warmed(backend))
            self._warmers.add(warmer)
            warmer.add_done_callback(self._warmers.discard)

    async def _warmed(self, backend: WarmBackend) -> None:
        try:
            sandbox = await backend.warm(self._policy)
        except SandboxUnavailable as failure:  # the run that needs one is told, if it is so then, too
            logger.warning("no sandbox could be warmed: %s", failure)
            return
        if self._closed:
            await sandbox.close()
        else:
            self._warm.append(_Warm(sandbox, asyncio.get_running_loop().time()))

    def _later(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            logger.error("a sandbox could not be ended", exc_info=task.exception())
