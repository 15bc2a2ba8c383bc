"""One session as a client has it: what it said, what came of it, and what is shown of all that."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Protocol

from xclaw.cli.messages import Asked, Ended, Messages
from xclaw.cli.unbroken import Piece, Place, Unbroken
from xclaw.contracts.approvals import Approval
from xclaw.contracts.errors import XclawError
from xclaw.contracts.events import (
    ApprovalAnswered,
    ApprovalAsked,
    Entry,
    MessageAdded,
    RunEnded,
    RunStarted,
)
from xclaw.contracts.sessions import Manner
from xclaw.gateway.frames import entry_of
from xclaw.gateway.wire import (
    BadFrame,
    Cancel,
    ClientFrame,
    DeltaFrame,
    ErrorFrame,
    EventFrame,
    Hello,
    ReplyFrame,
    Say,
    SayAccepted,
    ServerFrame,
    Unwatch,
    Watch,
    Watching,
    encode,
)


class Stage(Protocol):
    """Where a session is shown."""

    def show(self, piece: Piece, *, own: bool) -> None:
        """`own`: it is of a run that answers a message of this client."""
        ...

    def learn(self, entries: Iterable[Entry]) -> None: ...

    def note(self, text: str, /) -> None: ...


@dataclass(frozen=True, slots=True)
class Standing:
    """How a message stands with the gateway."""

    status: str
    """`waiting`, `running`, `ended` or `dropped`."""
    run_id: str
    reason: str


class Records(Protocol):
    """What a gateway can be asked beside the connection. Raises `XclawError`."""

    async def standing(self, request: str) -> Standing: ...

    async def history(self, root_id: str) -> list[Entry]:
        """The entries of a tree so far."""
        ...

    async def drop(self, request: str) -> None:
        """Take a message back that waits."""
        ...


class Talk:
    """Hears a link (`gateway_link.Listener`) and keeps one session whole over all its connections."""

    def __init__(
        self, session: str, send: Callable[[ClientFrame], None], stage: Stage, records: Records
    ) -> None:
        self.session = session
        self._send = send
        self._stage = stage
        self._records = records
        self._unbroken = Unbroken()
        self._messages = Messages()
        self._running = ""
        """The root that goes on."""
        self._is_up = False
        self._limit: int | None = None
        """Bytes of the longest message that the gateway takes."""
        self._held: list[ServerFrame] | None = None
        """Frames that wait until what went before is known."""
        self._tasks: set[asyncio.Task[None]] = set()
        self.questions: dict[str, Approval] = {}
        """Approvals of this session that wait for an answer, by id, the oldest first."""
        self._on_question: Callable[[], None] | None = None

    def on_question_call(self, told: Callable[[], None]) -> None:
        """Have `told` called whenever one was asked or answered."""
        self._on_question = told
        told()

    def ask(self, say: Say) -> Asked:
        """Say something; it is said again on each connection until it was accepted."""
        asked = Asked(say)
        size = len(encode(say).encode())
        if self._limit is not None and size > self._limit:
            reason = (
                f"the message has {size:,} bytes, the gateway takes {self._limit:,}. Put files into the workspace "
                "and name their paths instead."
            )
            asked.ended.set_result(Ended(code="too_large", reason=reason))
            return asked
        self._messages.add(asked)
        if self._is_up and self._unbroken.last_id is not None:
            self._send(say)
        return asked

    def move_to(self, session: str) -> None:
        """Go on with another session. What this one still has to tell is not heard any more."""
        self._send(Unwatch(session=self.session))
        self.session, self._unbroken, self._running, self._held = session, Unbroken(), "", None
        self.questions = {}
        self._watch()

    def interrupt(self, reason: str) -> None:
        """End the run that answers this client; what it has waiting is dropped when nobody else's run
        goes on before it."""
        foreign = self._running and self._running not in {asked.run_id for asked in self._messages.accepted}
        if not foreign:
            self._send(Cancel(session=self.session, reason=reason))
            return
        for asked in self._messages.accepted:
            if not asked.run_id:
                self._begin(self._drop(asked))

    def fail(self, error: Exception) -> None:
        """Nothing will come any more."""
        self._messages.fail(error)

    def connected(self, hello: Hello) -> None:
        self._is_up, self._limit = True, hello.max_message_bytes
        self._watch()
        if self._unbroken.last_id is not None:
            self._say_again()
            self._begin(self._look_after(self._messages.accepted))

    def cut(self) -> None:
        self._is_up = False
        self._unbroken.cut()

    def heard(self, frame: ServerFrame) -> None:
        if self._held is not None and isinstance(frame, DeltaFrame | EventFrame | ReplyFrame):
            self._held.append(frame)
            return
        match frame:
            case Watching():
                self._watching(frame)
            case SayAccepted():
                self._accepted(frame)
            case DeltaFrame() if frame.session == self.session:
                place = Place(frame.run, frame.after, frame.offset)
                self._show(self._unbroken.text(place, frame.content), frame.request)
            case EventFrame() | ReplyFrame() if frame.session == self.session:
                self._happened(frame)
            case ErrorFrame():
                self._failed(frame)
            case _:
                pass

    # --- inside

    def _watch(self) -> None:
        self._send(Watch(session=self.session, after=self._unbroken.last_id, ref="watch"))

    def _say_again(self) -> None:
        for asked in self._messages.unheard:
            self._send(asked.say)

    def _watching(self, frame: Watching) -> None:
        if frame.session != self.session:
            return
        is_first = self._unbroken.last_id is None
        self._unbroken.begin_at(frame.after)
        if not is_first:
            return
        self._say_again()
        if frame.running:
            self._held = []
            self._begin(self._learn(frame.running[0], frame.after))

    async def _learn(self, request: str, until: int) -> None:
        """What went before in the run that goes on, so that its text has a place."""
        session = self.session
        entries: list[Entry] = []
        try:
            standing = await self._records.standing(request)
            if standing.status == "running":
                entries = [e for e in await self._records.history(standing.run_id) if e.id <= until]
                self._running = standing.run_id
        except XclawError as error:  # what is not known is shown when its turn is complete
            self._stage.note(f"what went before in this session cannot be read: {error}")
        if session != self.session:
            return
        self._unbroken.learn(entries)
        self._stage.learn(entries)
        for entry in entries:
            self._note_question(entry)
        held, self._held = self._held or [], None
        for frame in held:
            self.heard(frame)

    def _accepted(self, frame: SayAccepted) -> None:
        asked = self._messages.get(frame.client_id)
        if asked is None or asked.request or not self._messages.accept(asked, frame.request):
            return
        if frame.duplicate:
            self._begin(self._look_after([asked]))
        elif frame.waiting:
            self._stage.note(_what_waits(asked.say.manner, frame.waiting))

    def _happened(self, frame: EventFrame | ReplyFrame) -> None:
        try:
            entry = entry_of(frame)
        except BadFrame:
            return
        pieces = self._unbroken.event(entry)
        event, address = entry.event, entry.address
        is_root = not address.parent_id
        if isinstance(event, RunStarted) and is_root:
            self._running = address.run_id
            self._messages.taken(frame.request, address.run_id)
        self._show(pieces, frame.request, event)
        self._note_question(entry)
        if isinstance(event, MessageAdded) and event.message_id:
            self._messages.ended(event.message_id, Ended())
        if isinstance(event, RunEnded) and is_root:
            self._running = ""
            self._messages.ended(frame.request, Ended(event.result, address.run_id))

    def _show(self, pieces: list[Piece], request: str, event: object = None) -> None:
        if pieces:
            own = self._is_own(request, event)
            for piece in pieces:
                self._stage.show(piece, own=own)

    def _is_own(self, request: str, event: object) -> bool:
        """Whether a run answers this client; its acceptance may not have been heard of yet."""
        if any(asked.request == request for asked in self._messages.accepted):
            return True
        unheard = {asked.say.text for asked in self._messages.unheard}
        return isinstance(event, RunStarted) and event.input in unheard

    def _note_question(self, entry: Entry) -> None:
        """Keep track of what waits for an answer."""
        event, address = entry.event, entry.address
        if isinstance(event, ApprovalAsked):
            self.questions[event.approval_id] = Approval(
                approval_id=event.approval_id,
                call_id=event.call_id,
                run_id=address.run_id,
                root_id=address.root_id,
                session_id=address.session_id,
                root_session_id="",
                path=event.path,
                tool=event.tool,
                arguments=event.arguments,
                why=event.why,
                rule=event.rule,
                asked_at=entry.at,
                owner="",
            )
        elif isinstance(event, ApprovalAnswered):
            self.questions.pop(event.approval_id, None)
        else:
            if isinstance(event, RunEnded):
                self.questions = {key: q for key, q in self.questions.items() if q.run_id != address.run_id}
            return
        if self._on_question is not None:
            self._on_question()

    def _failed(self, frame: ErrorFrame) -> None:
        if frame.request:
            self._messages.ended(frame.request, Ended(code=frame.code, reason=frame.content))
        elif (asked := self._messages.get(frame.client_id)) is not None:
            if frame.code != "closing":  # else it is said again to the next gateway
                self._messages.end(asked, Ended(code=frame.code, reason=frame.content))
        elif frame.ref == "watch" or not frame.session:
            self._stage.note(frame.content)

    async def _drop(self, asked: Asked) -> None:
        try:
            await self._records.drop(asked.request)  # the answer to it ends the wait
        except XclawError as error:
            self._stage.note(f"the message cannot be taken back: {error}")

    async def _look_after(self, asked: list[Asked]) -> None:
        """What became, while nobody listened, of messages that will have no run."""
        for each in asked:
            try:
                standing = await self._records.standing(each.request)
            except XclawError:
                return  # the next connection asks again
            if standing.status == "dropped":
                self._messages.end(each, Ended(code="refused", reason=standing.reason))

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _what_waits(manner: Manner, waiting: int) -> str:
    """What becomes of a message while others come before it."""
    match manner:
        case "steer":
            return "the run reads this at its next turn"
        case "interrupt":
            return "the run ends, and this comes next"
        case "queue":
            return f"{'1 message comes' if waiting == 1 else f'{waiting} messages come'} before this one"
