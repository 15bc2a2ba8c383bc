"""What a worker asks the runtime for: model calls, places, admissions and people's answers.

Each is a task of this process. Keys, ledgers and rules are here; the worker gets answers.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

from xclaw.contracts.errors import UsageError
from xclaw.contracts.events import ApprovalAnswered
from xclaw.contracts.messages import ChatMessage
from xclaw.contracts.models import Attempt, Model, ModelRequest
from xclaw.contracts.tokens import estimate_tokens
from xclaw.contracts.usage import Spend, Usage, spend_of_call
from xclaw.loop.context import TOOL_OVERHEAD_TOKENS
from xclaw.loop.pictures import with_pictures
from xclaw.loop.sizes import message_tokens
from xclaw.runtime.approvals import BY_XCLAW
from xclaw.runtime.clocks import deadline_of, stopped_clocks
from xclaw.runtime.hosted_checks import Checks, refuse_admission
from xclaw.runtime.hosted_runs import HostedRun, Misbehaved, Owed
from xclaw.runtime.scopes import enter_scope
from xclaw.runtime.services import Services
from xclaw.runtime.tree import Tree
from xclaw.runtime.wire import (
    Answered,
    Ask,
    AttemptOver,
    Line,
    Streamed,
    Want,
    WireError,
    WireReply,
    WireRequest,
)

REASON_CHARS = 2_000

Send = Callable[[Line], None]


class HostedCalls:
    """Answers the questions of one worker. `places` are the workers' places that it holds."""

    def __init__(self, services: Services, tree: Tree, checks: Checks, send: Send) -> None:
        self._services = services
        self._tree = tree
        self._checks = checks
        self._send = send
        self.places = 0
        self.promised = 0

    async def ask(self, ask: Ask, run: HostedRun) -> None:
        """One model call, reserved for and charged here. Cancelling it ends the HTTP request."""
        enter_scope(self._services, self._tree, run.node)
        answered = Answered(id=ask.id)
        try:
            reply = await self._reply(ask, run)
            answered = Answered(id=ask.id, reply=reply)
        except Exception as failure:  # noqa: BLE001 - whatever fails is the worker's to know
            answered = Answered(id=ask.id, error=WireError.of(failure))
        finally:
            run.asking = False
        self._send(answered)

    async def _reply(self, ask: Ask, run: HostedRun) -> WireReply:
        node = run.node
        started = node.log.state.started_event
        assert started is not None
        model = self._services.models(started.models)
        messages = ask.request.conversation()
        tokens = _request_tokens(ask.request, messages)
        reservation = node.ledger.reserve(tokens, model.profile)
        sink = _Sink(ask.id, run, self._send)
        spend = Spend()
        try:
            asked = self._request(ask.request, messages, run, reservation.max_output_tokens)
            request = await with_pictures(asked, run.workspace)
            reply = await model.reply(request, sink)
            spend = spend_of_call(reply.usage, reply.cost_usd)
            run.owed.append(Owed("answered", reply.model, reply.usage, reply.cost_usd))
            return WireReply.of(reply)
        except asyncio.CancelledError:
            run.owed.append(_cut(model, tokens, sink.text))
            raise
        finally:
            node.ledger.settle(reservation, spend)

    def _request(
        self, asked: WireRequest, messages: list[ChatMessage], run: HostedRun, allowed: int | None
    ) -> ModelRequest:
        agent = self._services.agents.get(run.node.agent)
        most = [limit for limit in (asked.max_output_tokens, allowed) if limit is not None]
        return ModelRequest(
            instructions=asked.instructions,
            messages=messages,
            tools=asked.tools,
            output_schema=asked.output_schema,
            max_output_tokens=min(most, default=None),
            temperature=asked.temperature,
            deadline=deadline_of(self._checks.top),
            agent=run.node.agent,
            orchestrator=agent.orchestrator if agent else False,
        )

    def check(self, want: Want, run: HostedRun) -> None:
        """Raises `Misbehaved` for a question about somebody else's question."""
        asked = run.node.log.state.questions.asked.values()
        about = want.what in ("approval", "deny", "asked")
        if about and want.text not in [question.approval_id for question in asked]:
            raise Misbehaved("it asked about a question that is not its own")

    async def want(self, want: Want, run: HostedRun) -> None:
        """Anything else. Cancelling it takes the question back."""
        enter_scope(self._services, self._tree, run.node)
        try:
            answered = await self._wanted(want, run)
        except Exception as failure:  # noqa: BLE001 - whatever fails is the worker's to know
            answered = Answered(id=want.id, error=WireError.of(failure))
        self._send(answered)

    async def _wanted(self, want: Want, run: HostedRun) -> Answered:
        match want.what:
            case "place":
                await self._tree.slots.acquire()
                self.places += 1
                return Answered(id=want.id)
            case "admit":
                refuse_admission(self._services, self._tree, run.node, want.agent, want.text)
                if self._tree.above is not None:
                    await self._tree.above(run.node, want.agent, want.text)
                self._tree.promised += 1
                self.promised += 1
                return Answered(id=want.id)
            case "granted":
                approvals = self._services.approvals
                rules = await approvals.granted(self._tree.session_id, run.node.agent)
                return Answered(id=want.id, rules=rules)
            case "approval" | "deny" | "asked":
                return await self._about_question(want, run)

    async def _about_question(self, want: Want, run: HostedRun) -> Answered:
        approvals = self._services.approvals
        if want.what == "asked":
            approval = await approvals.approval(want.text)
            waited = max(0.0, time.time() - approval.asked_at) if approval else 0.0
            return Answered(id=want.id, seconds=waited)
        if want.what == "deny":
            denial = ApprovalAnswered(want.text, "deny", BY_XCLAW, want.agent[:REASON_CHARS])
            with suppress(UsageError):  # somebody answered at the last instant
                await approvals.desk.store.settle(denial)
            answer = await approvals.desk.store.answered(want.text) or denial
        else:
            with stopped_clocks(run.node):
                answer = await approvals.wait(want.text, want.timeout_s)
        if answer is not None:
            self._checks.answers[want.text] = answer
            if answer.decision == "always":
                # Again, in case a crash came between the answer and the file.
                await approvals.keep(self._tree.session_id, run.node.agent, answer.rule)
        return Answered(id=want.id, answer=answer)

    def give_place(self) -> None:
        """The worker needs one place less. Raises `Misbehaved` when it has none."""
        if not self.places:
            raise Misbehaved("it gave back a place that it did not have")
        self.places -= 1
        self._tree.slots.release()

    def kept(self, starts: int) -> None:
        """The worker has started so many of the runs that it was promised."""
        self.promised -= starts
        self._tree.promised -= starts

    def give_all_back(self) -> None:
        """What the worker still had at its end."""
        while self.places:
            self.give_place()
        self._tree.promised -= self.promised
        self.promised = 0


class _Sink:
    """Hands what a model streams to the worker, and keeps what it may cost."""

    def __init__(self, ask_id: int, run: HostedRun, send: Send) -> None:
        self._id = ask_id
        self._run = run
        self._send = send
        self._chunks: list[str] = []

    @property
    def text(self) -> str:
        return "".join(self._chunks)

    def on_text(self, text: str) -> None:
        self._chunks.append(text)
        self._send(Streamed(id=self._id, text=text))

    def on_attempt_failed(self, attempt: Attempt) -> None:
        self._chunks = []
        self._run.node.ledger.charge(spend_of_call(attempt.usage, attempt.cost_usd))
        self._run.owed.append(Owed("failed", attempt.model, attempt.usage, attempt.cost_usd))
        self._send(AttemptOver(id=self._id, attempt=attempt))


def _cut(model: Model, tokens: int, text: str) -> Owed:
    usage = Usage(tokens, estimate_tokens(text) if text else 0, estimated=True)
    return Owed("cut", model.name, usage, model.profile.cost_usd(usage.input_tokens, usage.output_tokens))


def _request_tokens(request: WireRequest, messages: list[ChatMessage]) -> int:
    tools = TOOL_OVERHEAD_TOKENS * len(request.tools)
    return (
        estimate_tokens(request.instructions) + tools + sum(message_tokens(message) for message in messages)
    )
