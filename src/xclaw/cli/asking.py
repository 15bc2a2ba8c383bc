"""Questions of a run that this terminal follows: shown, and answered by whoever sits there."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from xclaw.cli.failures import complain
from xclaw.cli.questions import answer_from, choices_text, question_text
from xclaw.contracts.approvals import Approval
from xclaw.contracts.errors import UsageError
from xclaw.contracts.events import Address, ApprovalAsked, Entry
from xclaw.contracts.results import Result
from xclaw.contracts.users import OWNER

if TYPE_CHECKING:
    from xclaw.app import App
    from xclaw.cli.output import Watcher
    from xclaw.runtime.runs import RunHandle
    from xclaw.settings import Settings

LINE_BYTES = 65_536


def somebody_is_there() -> bool:
    """Whether a person can be asked: keyboard and screen are a terminal."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def attended(settings: "Settings") -> "Settings":
    """Settings of a run that this process follows: who can be asked is asked; else what the settings say,
    and without a word of theirs a denial, so that nothing waits for nobody."""
    unattended = "park" if somebody_is_there() else settings.permissions.unattended or "deny"
    return replace(settings, permissions=replace(settings.permissions, unattended=unattended))


class HeldWatcher:
    """A watcher that says nothing while a person is being asked; it catches up afterwards."""

    def __init__(self, watcher: "Watcher", *, asks: bool = False) -> None:
        """`asks`: a question is shown here in full, so the watcher need not say that there is one."""
        self._watcher = watcher
        self._asks = asks
        self._held: list[Entry] | None = None

    @property
    def closed(self) -> bool:
        return self._watcher.closed

    def hold(self) -> None:
        """Leave the terminal to the question."""
        self._watcher.close()
        self._held = []

    def release(self) -> None:
        held, self._held = self._held or [], None
        self._watcher.reopen()
        for entry in held:
            self._watcher.receive(entry)

    def learn(self, entries: Iterable[Entry]) -> None:
        self._watcher.learn(entries)

    def receive(self, entry: Entry) -> None:
        if self._asks and isinstance(entry.event, ApprovalAsked):
            return
        if self._held is None:
            self._watcher.receive(entry)
        else:
            self._held.append(entry)

    def start_again(self, address: Address) -> None:
        self._watcher.start_again(address)

    def finish(self, result: Result) -> None:
        self._watcher.finish(result)

    def close(self) -> None:
        self._watcher.close()

    def reopen(self) -> None:
        self._watcher.reopen()


@asynccontextmanager
async def asking(app: "App", handle: "RunHandle", watcher: HeldWatcher) -> AsyncGenerator[None]:
    """Ask about what the tree asks, one question after the other, as long as the block lasts.

    Without a person nothing is asked: the watcher has said how to answer from elsewhere.
    """
    if not somebody_is_there():
        yield
        return
    asked: asyncio.Queue[str] = asyncio.Queue()

    def note(entry: Entry) -> None:
        if isinstance(entry.event, ApprovalAsked):
            asked.put_nowait(entry.event.approval_id)

    unsubscribe = handle.subscribe(note)
    for approval in await app.runs.approvals.pending():
        if approval.root_id == handle.root_id:
            asked.put_nowait(approval.approval_id)
    task = asyncio.get_running_loop().create_task(_ask_all(app, asked, watcher))
    try:
        yield
    finally:
        unsubscribe()
        task.cancel()
        await asyncio.wait([task])
        watcher.close()
        if not task.cancelled() and (failure := task.exception()) is not None:
            complain(f"questions are not shown here any more: {failure}")


async def _ask_all(app: "App", asked: "asyncio.Queue[str]", watcher: HeldWatcher) -> None:
    while True:
        approval = await app.runs.approvals.approval(await asked.get())
        if approval is None or approval.status != "pending":
            continue
        watcher.hold()
        try:
            await _ask(app, approval)
        except EOFError:
            complain(f"nobody answers here any more. From elsewhere: xclaw approve {approval.approval_id}")
            return
        finally:
            watcher.release()


async def _ask(app: "App", approval: Approval) -> None:
    """Ask until there is an answer, from here or from elsewhere."""
    print(f"\n{question_text(approval)}\n{choices_text(approval)}", file=sys.stderr)
    settled = asyncio.Event()
    stop = app.runs.subscribe(lambda entry: _settle(entry, approval, settled))
    try:
        while not settled.is_set():
            print("> ", end="", file=sys.stderr, flush=True)
            line = await _line_unless(settled)
            if line is None:
                print("answered from elsewhere", file=sys.stderr)
                return
            try:
                answer = answer_from(approval, line)
                await app.runs.approvals.answer(approval.approval_id, answer, by=OWNER)
            except UsageError as error:
                complain(str(error))
                known = await app.runs.approvals.approval(approval.approval_id)
                if known is None or known.status != "pending":
                    return
            else:
                return
    finally:
        stop()


def _settle(entry: Entry, approval: Approval, settled: asyncio.Event) -> None:
    event = entry.event
    if event.kind == "approval_answered" and event.approval_id == approval.approval_id:
        settled.set()


async def _line_unless(settled: asyncio.Event) -> str | None:
    """A typed line, or None once it is not needed. Raises `EOFError`. A thread that reads could not be
    called back when the run ends, so the terminal is watched instead."""
    loop = asyncio.get_running_loop()
    typed: asyncio.Future[bytes] = loop.create_future()
    descriptor = sys.stdin.fileno()
    loop.add_reader(descriptor, _reading(descriptor, typed))
    waiting = loop.create_task(settled.wait())
    try:
        await asyncio.wait([typed, waiting], return_when=asyncio.FIRST_COMPLETED)
    finally:
        loop.remove_reader(descriptor)
        waiting.cancel()
    if not typed.done():
        return None
    line = typed.result()
    if not line:
        raise EOFError
    return line.decode("utf-8", "replace")


def _reading(descriptor: int, typed: "asyncio.Future[bytes]") -> Callable[[], None]:
    def read() -> None:
        if not typed.done():
            typed.set_result(os.read(descriptor, LINE_BYTES))

    return read
