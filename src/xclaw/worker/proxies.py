"""What a worker has in place of the runtime's own: journal, models, places, approvals."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Literal

from xclaw.contracts.approvals import Approval
from xclaw.contracts.errors import ContextTooLong, JournalError
from xclaw.contracts.events import Address, ApprovalAnswered, Entry
from xclaw.contracts.journal import Committed, RunRow
from xclaw.contracts.models import Model, ModelProfile, ModelReply, ModelRequest, ReplySink
from xclaw.runtime import wire
from xclaw.runtime.approvals import Approvals, Desk
from xclaw.runtime.stream import TreeStream
from xclaw.runtime.wire import Append, Ask, Delta, GivePlace, Want, WireChain, WireEntry, WireRequest
from xclaw.worker.line import LineTooLong, RuntimeLine


class LineJournal:
    """The runtime's journal, as far as a worker may write to it; and what it holds of the worker's runs."""

    def __init__(self, line: RuntimeLine, past: Sequence[Entry]) -> None:
        self._line = line
        self._number = 0
        self._open: dict[int, tuple[Sequence[Entry], Committed]] = {}
        self._entries = list(past)
        line.on_committed = self._committed

    def append(self, entries: Sequence[Entry], committed: Committed) -> None:
        self._number += 1
        self._open[self._number] = (entries, committed)
        self._entries += entries
        wired = tuple(WireEntry.of(entry) for entry in entries)
        try:
            self._line.send(Append(number=self._number, entries=wired))
        except LineTooLong as failure:
            del self._open[self._number]
            asyncio.get_running_loop().call_soon(committed, (), JournalError(str(failure)))

    def _committed(self, said: wire.Committed) -> None:
        entries, committed = self._open.pop(said.number)
        if said.error is not None:
            committed((), said.error.error())
            return
        numbered = zip(entries, said.ids, strict=True)
        committed([Entry(e.address, e.seq, e.at, e.event, number) for e, number in numbered], None)

    async def read_run(self, run_id: str) -> list[Entry]:
        return [entry for entry in self._entries if entry.address.run_id == run_id]

    async def read_tree(self, root_id: str, after_id: int = 0) -> list[Entry]:
        return [entry for entry in self._entries if entry.address.root_id == root_id]

    async def read_session(self, session_id: str) -> list[Entry]:
        return [entry for entry in self._entries if entry.address.session_id == session_id]

    async def run_row(self, run_id: str) -> RunRow | None:
        return None

    async def runs(
        self,
        *,
        session_id: str | None = None,
        root_id: str | None = None,
        roots_only: bool = False,
        open_only: bool = False,
        limit: int = 100,
    ) -> list[RunRow]:
        return []

    async def claim(self, root_id: str, from_owner: str, to_owner: str) -> bool:
        return False

    async def close(self) -> None:
        pass


class LineStream(TreeStream):
    """The stream of the runtime's tree. Streamed text goes there at once, behind what was recorded before
    it; when it is shown is decided there."""

    def __init__(self, line: RuntimeLine, journal: LineJournal) -> None:
        super().__init__(journal)
        self._line = line

    def delta(self, address: Address, text: str) -> None:
        self.flush()
        self._line.send(Delta(run=address.run_id, text=text))


class LineModel:
    """A chain of models that answers over the line. Keys, prices and budgets are at the other end."""

    def __init__(self, line: RuntimeLine, chain: WireChain) -> None:
        self._line = line
        self._chain = chain

    @property
    def name(self) -> str:
        return self._chain.name

    @property
    def profile(self) -> ModelProfile:
        return self._chain.profile

    async def reply(self, request: ModelRequest, sink: ReplySink) -> ModelReply:
        wired = WireRequest.of(request)
        try:
            answered = await self._line.question(
                lambda number, run: Ask(id=number, run=run, request=wired), sink
            )
        except LineTooLong as failure:
            raise ContextTooLong(str(failure)) from failure
        assert answered.reply is not None
        return answered.reply.reply()


class LineModels:
    """Implements `ModelSource`."""

    def __init__(self, line: RuntimeLine, chains: Sequence[WireChain]) -> None:
        self._line = line
        self._chains: Mapping[tuple[str, ...], WireChain] = {chain.chain: chain for chain in chains}

    def __call__(self, chain: Sequence[str]) -> Model:
        return LineModel(self._line, wire.chain_of(chain, self._chains))


class LinePlaces(asyncio.Semaphore):
    """The places for workers that run at once, which are the runtime's."""

    def __init__(self, line: RuntimeLine) -> None:
        super().__init__(0)
        self._line = line

    def locked(self) -> bool:
        return False

    async def acquire(self) -> Literal[True]:
        await self._line.question(lambda number, run: Want(id=number, what="place", run=run))
        return True

    def release(self) -> None:
        self._line.flush()
        self._line.send(GivePlace())


class LineApprovals(Approvals):
    """Questions of this worker's runs. They are shown and answered where the runtime is."""

    def __init__(self, line: RuntimeLine, desk: Desk) -> None:
        super().__init__(desk)
        self._line = line

    async def approval(self, approval_id: str) -> Approval | None:
        answered = await self._line.question(
            lambda number, run: Want(id=number, what="asked", run=run, text=approval_id)
        )
        asked_at = time.time() - (answered.seconds or 0.0)
        return Approval(approval_id, "", "", "", "", "", ("",), "", "", "", "", asked_at, "")

    async def granted(self, root_session_id: str, agent: str) -> tuple[str, ...]:
        answered = await self._line.question(lambda number, run: Want(id=number, what="granted", run=run))
        return answered.rules

    async def keep(self, root_session_id: str, agent: str, rule: str) -> None:
        """The runtime did, before it answered."""

    async def wait(self, approval_id: str, timeout_s: float | None) -> ApprovalAnswered | None:
        answered = await self._line.question(
            lambda number, run: Want(
                id=number, what="approval", run=run, text=approval_id, timeout_s=timeout_s
            )
        )
        return answered.answer


class LineApprovalStore:
    """Implements `ApprovalStore`, for a denial that nobody gave; the rest is the runtime's."""

    def __init__(self, line: RuntimeLine) -> None:
        self._line = line
        self._answers: dict[str, ApprovalAnswered] = {}

    async def approval(self, approval_id: str) -> Approval | None:
        return None

    async def pending(self) -> list[Approval]:
        return []

    async def settle(self, answered: ApprovalAnswered) -> Approval:
        said = await self._line.question(
            lambda number, run: Want(
                id=number, what="deny", run=run, text=answered.approval_id, agent=answered.reason
            )
        )
        if said.answer is not None:
            self._answers[answered.approval_id] = said.answer
        return Approval(answered.approval_id, "", "", "", "", "", ("",), "", "", "", "", 0.0, "", "answered")

    async def answered(self, approval_id: str) -> ApprovalAnswered | None:
        return self._answers.get(approval_id)

    async def session_rules(self, root_session_id: str, agent: str) -> tuple[str, ...]:
        return ()

    async def user_of(self, session_id: str) -> str:
        return ""
