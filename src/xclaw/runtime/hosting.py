"""The runtime's side of a run whose loop goes on in a worker process.

The run itself stays here: its first event and its last, its account, its time, its place among the
workers. What goes on in the worker comes as events, is checked, and is journaled and shown as if it had
happened here. A worker that dies or misbehaves is an ending like any other, and leaves nothing open.
"""

import asyncio
import signal
from collections.abc import Coroutine, Sequence
from contextlib import suppress

from xclaw.contracts.errors import JournalError
from xclaw.contracts.events import Entry, MessageAdded
from xclaw.contracts.workers import WorkerEnd, WorkerKind, WorkerLink
from xclaw.loop.parts import Ending
from xclaw.runtime.assembly import Live
from xclaw.runtime.beginning import beginning, past, told
from xclaw.runtime.hosted_calls import HostedCalls
from xclaw.runtime.hosted_checks import Checks
from xclaw.runtime.hosted_runs import Misbehaved
from xclaw.runtime.hosted_tree import HostedTree
from xclaw.runtime.services import Services
from xclaw.runtime.shield import to_the_end
from xclaw.runtime.tree import Tree
from xclaw.runtime.wire import (
    Append,
    Ask,
    Committed,
    Delta,
    Drop,
    Ended,
    GivePlace,
    Line,
    Steer,
    Stop,
    Up,
    Want,
    WireError,
    decode_up,
    encode,
)

CANCEL_GRACE_S = 1.0
"""How long a worker may take to end by itself when it is cancelled."""
MAX_OPEN_CALLS = 256
MAX_OPEN_APPENDS = 1_000
"""Appends that are not durable yet; the worker is not heard until they are."""
MAX_BYTES = 1 << 30
"""Of everything that a worker says."""
LOG_CHARS = 1_500


class Hosting:
    """One run and its worker. Used once."""

    def __init__(self, services: Services, tree: Tree, live: Live, kind: WorkerKind) -> None:
        self._services = services
        self._tree = tree
        self._live = live
        self._kind = kind
        self._checks = Checks(services, tree, live.node)
        self._calls = HostedCalls(services, tree, self._checks, self._send)
        self._runs = HostedTree(services, tree, live, self._checks, self._stop_run)
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._link: WorkerLink | None = None
        self._fault = ""
        self._open_appends = 0
        self._committed = asyncio.Event()
        self._bytes = 0

    async def run(self) -> Ending:
        """The loop's ending. Cancelling it ends the worker, and raises once that is gone.

        Raises `JournalError` when the run's events cannot be made durable.
        """
        missing = [name for name in self._live.parts.tools if name not in self._kind.tools]
        if missing:
            return self._failed(
                f"the tools {', '.join(missing)} exist in xclaw's own process only: "
                "give the agent others, or `isolation: local`"
            )
        try:
            self._link = await self._started()
        except OSError as failure:
            return self._failed(f"no worker could be started: {failure}")
        ended: Ended | None = None
        try:
            await self._begin()
            ended = await self._listen()
        except (Misbehaved, ValueError) as failure:
            self._fault = self._fault or f"the worker was ended: {failure}"
        except asyncio.CancelledError as cancel:
            reason = self._tree.cancelled or (str(cancel.args[0]) if cancel.args else "its time is over")
            await to_the_end(self._stop(reason))
            raise
        finally:
            end = await to_the_end(self._finish(self._link))
        if ended is None:
            return self._failed(self._fault or _what_became(end), end.log)
        return await self._ending(ended)

    async def _started(self) -> WorkerLink:
        starting = asyncio.get_running_loop().create_task(_starting(self._kind))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            with suppress(OSError):
                await to_the_end(_ended(starting))
            raise

    async def _begin(self) -> None:
        """Tell the worker everything that there is to know, and have it go on from there."""
        node = self._live.node
        own, below = await past(self._services, self._tree, self._live)
        self._runs.recall(own, below)
        for line in told(own, below):
            self._send(line)
        self._send(beginning(self._services, self._tree, self._live, self._kind))
        if node.holds_slot:
            node.holds_slot = False
            self._calls.places = 1
        unread = self._live.children.unread()
        node.steer = self._steer
        for message in unread:
            self._steer(message)

    def _steer(self, message: MessageAdded) -> None:
        if message.message_id:
            self._checks.messages[message.message_id] = message
        self._send(Steer(message=message))

    def _stop_run(self, run_id: str, reason: str) -> None:
        self._send(Stop(run=run_id, reason=reason))

    def _send(self, line: Line) -> None:
        """Never raises: a worker that cannot be told is ended, and then heard no more."""
        link = self._link
        assert link is not None
        try:
            link.send(encode(line))
        except BrokenPipeError:
            return  # it has ended, and how is heard where it is listened to
        except ConnectionError as failure:
            if -1 not in self._tasks:
                self._fault = self._fault or f"the worker was ended: {failure}"
                self._spawn(-1, _end(link))

    async def _listen(self) -> Ended | None:
        """Until the worker has said its last; None when it ended without."""
        assert self._link is not None
        while line := await self._link.receive():
            self._bytes += len(line)
            if self._bytes > MAX_BYTES:
                raise Misbehaved(f"it said more than {MAX_BYTES} bytes")
            said = decode_up(line)
            if isinstance(said, Ended):
                return said
            self._hear(said)
            while self._open_appends >= MAX_OPEN_APPENDS:
                self._committed.clear()
                await self._committed.wait()
            await asyncio.sleep(0)  # whatever a worker says, others are heard too
        return None

    def _hear(self, said: Up) -> None:
        match said:
            case Append():
                self._append(said)
            case Delta():
                self._runs.living(said.run).node.log.delta(said.text)
            case Ask():
                run = self._runs.living(said.run)
                if run.asking or any(owed.kind == "answered" for owed in run.owed):
                    raise Misbehaved("it asked a model again before it recorded the last answer")
                self._spawn(said.id, self._calls.ask(said, run))
                run.asking = True
            case Want():
                run = self._runs.living(said.run)
                self._calls.check(said, run)
                self._spawn(said.id, self._calls.want(said, run))
            case Drop():
                task = self._tasks.get(said.id)
                if task is not None:
                    task.cancel()
            case GivePlace():
                self._calls.give_place()
            case Ended():
                raise Misbehaved("it went on after its end")

    def _spawn(self, number: int, work: Coroutine[None, None, None]) -> None:
        if number in self._tasks or len(self._tasks) >= MAX_OPEN_CALLS:
            work.close()
            raise Misbehaved("it asks for too much at once")
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[number] = task
        task.add_done_callback(lambda _: self._tasks.pop(number, None))

    def _append(self, append: Append) -> None:
        self._open_appends += 1

        def committed(stored: Sequence[Entry], error: BaseException | None) -> None:
            self._open_appends -= 1
            self._committed.set()
            wired = WireError.of(error) if error is not None else None
            self._send(Committed(number=append.number, ids=tuple(e.id for e in stored), error=wired))

        promised = [wired.kind for wired in append.entries].count("child_spawned")
        self._runs.adopt([wired.entry() for wired in append.entries], committed)
        self._calls.kept(promised)

    async def _stop(self, reason: str) -> None:
        """Have the worker end its runs and say so; it is given little time, and none that it uses badly."""
        node = self._live.node
        if self._tree.stream.frozen:  # nothing that it said would be kept
            return
        self._stop_run(node.run_id, reason)
        with suppress(TimeoutError, Misbehaved, ValueError, JournalError):
            async with asyncio.timeout(CANCEL_GRACE_S):
                ended = await self._listen()
                if ended is not None:
                    self._live.parts.unfinished = ended.unfinished

    async def _finish(self, link: WorkerLink) -> WorkerEnd:
        """End the worker and everything that it started; then close what it left open."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        end = await link.end()
        self._live.node.steer = self._live.children.steer
        self._calls.give_all_back()
        self._runs.close()
        return end

    async def _ending(self, ended: Ended) -> Ending:
        """What the worker says of the end, with its artifacts looked at again."""
        for name, pointer in ended.pointers:
            if await asyncio.to_thread(self._services.workspaces.find, pointer.path) != pointer:
                return self._failed(f"the worker named an artifact that is not there: {name[:80]!r}")
        self._live.parts.unfinished = ended.unfinished
        return Ending(
            ended.outcome,
            ended.text,
            ended.reason,
            ended.summary_data,
            ended.pointers,
            ended.structured,
        )

    def _failed(self, reason: str, log: str = "") -> Ending:
        tail = log.strip()[-LOG_CHARS:]
        text = f"{reason}; its output ends with:\n{tail}" if tail else reason
        return Ending("error", self._live.parts.state.findings(), text)


def _what_became(end: WorkerEnd) -> str:
    """Of a worker that ended without saying so."""
    if end.code is None:
        return "the worker's process ended, and it is not known how"
    if end.code >= 0:
        return f"the worker's process ended by itself, with exit code {end.code}"
    try:
        name = signal.Signals(-end.code).name
    except ValueError:
        name = str(-end.code)
    return f"the worker's process was killed by {name}"


async def _starting(kind: WorkerKind) -> WorkerLink:
    return await kind.start()


async def _ended(starting: asyncio.Task[WorkerLink]) -> None:
    await (await starting).end()


async def _end(link: WorkerLink) -> None:
    await link.end()
