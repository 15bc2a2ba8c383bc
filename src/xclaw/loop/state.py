"""The state of a run: a fold over its events.

The live loop and the replay after a crash go through the same `apply`, so they cannot disagree.
Built from the events of all runs of a session in order, it is the session's conversation.
"""

from collections.abc import Iterable, Sequence

from xclaw.contracts.artifacts import Pointer
from xclaw.contracts.coordination import NOT_BEGUN, Coordination
from xclaw.contracts.events import (
    ApprovalAnswered,
    ApprovalAsked,
    ArtifactDelivered,
    AttemptFailed,
    ChildEnded,
    ChildSpawned,
    Compacted,
    Entry,
    Event,
    MessageAdded,
    ModelAnswered,
    PhaseChanged,
    RunEnded,
    RunResumed,
    RunStarted,
    ToolCallEnded,
    ToolCallStarted,
    TurnStarted,
    Warned,
)
from xclaw.contracts.messages import AssistantMessage, ChatMessage, ToolCall, ToolMessage, UserMessage
from xclaw.contracts.projects import ProjectMerged
from xclaw.contracts.results import Result
from xclaw.contracts.team_events import BoardChanged, MailSent
from xclaw.contracts.tokens import estimate_tokens
from xclaw.contracts.usage import Spend, spend_of_call
from xclaw.loop.check_runs import CheckRuns
from xclaw.loop.exchange import Exchange
from xclaw.loop.questions import Questions
from xclaw.loop.repeats import RepeatGuard, Verdict
from xclaw.loop.sizes import message_tokens

INTERRUPTED = "error: the call was interrupted; whether it took effect is unknown"

WAITING_TOOLS = frozenset({"wait", "wait_for_mail"})
"""Asking again whether others are done is no sign of being stuck, and no work."""
_SEVERITY: list[Verdict] = ["ok", "warn", "stuck"]


class RunState:
    """Owns the conversation and the counters of one run. Changes only through `apply`."""

    def __init__(self, earlier: Sequence[ChatMessage] = ()) -> None:
        self.messages: list[ChatMessage] = list(earlier)
        self.tokens = sum(message_tokens(message) for message in self.messages)
        self.summary = ""
        self.kept_from = self.turn = self.waits = 0
        """`waits`: turns that did nothing but wait for children: the turn limit is for work."""
        self.pending: dict[str, ToolCall] = {}
        """Calls of the last answer that have no result yet, in order."""
        self.started: set[str] = set()
        self.questions = Questions()
        self.children: dict[str, ChildSpawned] = {}
        self.child_results: dict[str, Result] = {}
        """Results this run has taken, by child run id."""
        self.taken_by: dict[str, str] = {}
        """The tool call that took a child's result, by child run id."""
        self.artifacts: dict[str, Pointer] = {}
        """What the run may read and hand on, by path."""
        self.delivered: list[Pointer] = []
        self.exchange = Exchange()
        self.effects = self.corrections = self.compactions = 0
        """`effects`: tool calls that succeeded and may have changed something. `corrections`: how often in
        a row the run was told that its reply had the wrong form."""
        self.coordination: Coordination = NOT_BEGUN
        """How the phases stand, of a coordinator."""
        self.check_runs = CheckRuns()
        """Of a run that was given commands to run."""
        self.spend = Spend()
        self.verdict: Verdict = "ok"
        self.repeated = self.malformed = False
        """`repeated`: the last calls were the ones before them over again. `malformed`: the last answer was
        neither an action nor an answer."""
        self.started_event: RunStarted | None = None
        self.ended: RunEnded | None = None
        self.open_turn: TurnStarted | None = None
        """A turn whose model call has not come back."""
        self.finish = ""
        """Why the last answer ended."""
        self.turn_calls: tuple[ToolCall, ...] = ()
        """Every call of the last answer, until all of them have a result."""
        self._asked: list[tuple[str, str]] = []
        self._results: dict[str, ToolMessage] = {}
        self._deferred: list[ChatMessage] = []
        self._guard = RepeatGuard()

    @property
    def merged(self) -> str:
        """Of a user's project: the commit that the run's workers begin at, once branches were merged."""
        return self.coordination.merged

    @property
    def request(self) -> str:
        """What the run was asked: the user's message, or the task without its headers."""
        started = self.started_event
        if started is None:
            return ""
        return started.task.text if started.task else started.input

    def view(self) -> list[ChatMessage]:
        """The conversation as a model may see it: the summary in place of what was compacted."""
        if not self.kept_from:
            return list(self.messages)
        return [UserMessage(self.summary, "summary"), *self.messages[self.kept_from :]]

    def last_text(self) -> str:
        """What the agent said last, for a run that was stopped."""
        for message in reversed(self.messages):
            if isinstance(message, AssistantMessage) and message.text:
                return message.text
            if isinstance(message, UserMessage) and message.origin in ("user", "agent"):
                break
        return ""

    def findings(self, limit_chars: int = 2_000) -> str:
        """What a stopped run had so far: its last words, else its last tool results."""
        text = self.last_text()
        outputs = [m for m in self.messages if isinstance(m, ToolMessage) and m.ok][-5:]
        parts = [text] if text else []
        parts += [f"[{m.name}] {m.content[:400]}" for m in outputs]
        return "\n".join(parts)[:limit_chars]

    def apply(self, event: Event) -> None:
        match event:
            case RunStarted():
                self._begin(event)
            case TurnStarted():
                self.turn = event.turn
                self.open_turn = event
            case ModelAnswered():
                self._answered(event)
            case AttemptFailed():
                self.spend += spend_of_call(event.usage, event.cost_usd)
            case ToolCallStarted():
                self.started.add(event.call_id)
                self.check_runs.start(event)
            case ToolCallEnded():
                self._call_ended(event)
            case MessageAdded():
                self._added(event)
            case Compacted():
                self._compacted(event)
            case RunEnded():
                self._end(event)
            case _:
                self._note_other(event)

    def _note_other(self, event: Event) -> None:
        if isinstance(event, PhaseChanged | ChildSpawned | ChildEnded | ProjectMerged):
            self.coordination = self.coordination.after(event)
        match event:
            case ChildSpawned():
                self.children[event.child_run_id] = event
            case ChildEnded():
                self.child_results[event.child_run_id] = event.result
                self.taken_by[event.child_run_id] = event.call_id
                self.artifacts.update((p.path, p) for p in event.result.pointers.values())
            case ArtifactDelivered():
                self.artifacts[event.pointer.path] = event.pointer
                self.delivered.append(event.pointer)
            case ApprovalAsked() | ApprovalAnswered():
                self.questions.note(event)
            case MailSent() | BoardChanged():
                self.exchange.note(event)
            case RunResumed():
                self._resume()
            case Warned(code="parse_failed"):
                self.malformed = True
            case _:
                pass

    def _append(self, message: ChatMessage) -> None:
        self.messages.append(message)
        self.tokens += message_tokens(message)

    def _begin(self, event: RunStarted) -> None:
        """A further run in the same session starts with fresh counters and the old conversation."""
        self._close_calls()
        self.started_event, self.ended = event, None
        self.turn = self.waits = self.corrections = self.compactions = self.effects = 0
        self.children, self.child_results, self.taken_by, self.delivered = {}, {}, {}, []
        self.exchange = Exchange()
        self.questions = Questions()
        self.coordination = NOT_BEGUN
        self.check_runs = CheckRuns(event.task.checks if event.task else ())
        self.spend = event.route.spend if event.route else Spend()
        self.verdict, self._guard = "ok", RepeatGuard()
        if event.task is not None:
            self.artifacts.update((p.path, p) for p in event.task.inputs)
        for said in event.history:
            self._append(said.as_message())
        if event.input or not event.history:
            self._append(UserMessage(event.input, event.caller))

    def _resume(self) -> None:
        """A call that a crash cut off was no turn of the agent's: it does not count to its limit."""
        if self.open_turn is not None:
            self.turn = self.open_turn.turn - 1
            self.open_turn = None

    def _answered(self, event: ModelAnswered) -> None:
        self.open_turn, self.finish, self.malformed = None, event.finish, False
        self.exchange.note(event)
        self.spend += spend_of_call(event.usage, event.cost_usd)
        self._append(event.message)
        self.turn_calls = event.message.tool_calls
        asked = [(call.name, call.arguments) for call in self.turn_calls]
        self.repeated = bool(asked) and asked == self._asked
        self._asked = asked
        self.pending = {call.id: call for call in self.turn_calls}
        self._results = {}
        if self.turn_calls:
            self.corrections = 0
            self.waits += all(call.name in WAITING_TOOLS for call in self.turn_calls)

    def _call_ended(self, event: ToolCallEnded) -> None:
        call = self.pending.pop(event.call_id, None)
        if call is None:
            return
        self.check_runs.end(call, event, interrupted=event.content == INTERRUPTED)
        self._results[event.call_id] = ToolMessage(
            event.call_id, event.name, event.content, event.ok, event.images
        )
        self.effects += event.ok
        if not self.pending:
            self._flush()

    def _flush(self) -> None:
        """All results are in: append them in the order of the calls, whatever order they came in."""
        verdicts: list[Verdict] = ["ok"]
        noted: set[tuple[str, str, str]] = set()
        for call in self.turn_calls:
            result = self._results[call.id]
            self._append(result)
            # Equal calls of one answer were written before any result was seen: they count once.
            once = (call.name, call.arguments, result.content)
            if call.name not in WAITING_TOOLS and once not in noted:
                noted.add(once)
                verdicts.append(self._guard.note(call.name, call.arguments, result.content, result.ok))
        self.verdict = max(verdicts, key=_SEVERITY.index)
        self.turn_calls = ()
        for message in self._deferred:
            self._append(message)
        self._deferred = []

    def _added(self, event: MessageAdded) -> None:
        message = UserMessage(event.text, event.origin)
        self.exchange.note(event)
        if event.origin == "runtime" and isinstance(self.messages[-1], AssistantMessage):
            self.corrections += 1
        if self.pending:
            self._deferred.append(message)
        else:
            self._append(message)

    def _compacted(self, event: Compacted) -> None:
        self.spend += spend_of_call(event.usage, event.cost_usd)
        self.kept_from, self.summary = event.kept_from, event.summary
        self.compactions += 1
        self.tokens = estimate_tokens(event.summary) + sum(
            message_tokens(message) for message in self.messages[event.kept_from :]
        )

    def _end(self, event: RunEnded) -> None:
        self._close_calls()
        self.ended = event
        self.artifacts.update((p.path, p) for p in event.artifacts)

    def _close_calls(self) -> None:
        """A run that ended with calls open leaves a conversation that providers accept."""
        for call in list(self.pending.values()):
            self._results[call.id] = ToolMessage(call.id, call.name, INTERRUPTED, ok=False)
        self.pending = {}
        if self.turn_calls:
            self._flush()


def fold(entries: Iterable[Entry], state: RunState | None = None) -> RunState:
    """The state after `entries`, in order; one run, or all runs of one session."""
    state = state or RunState()
    for entry in entries:
        state.apply(entry.event)
    return state
