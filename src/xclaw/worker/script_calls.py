"""What a user's script may ask of its run: each call is bounded, journaled and charged like an agent's."""

import asyncio
import base64
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from itertools import pairwise
from pathlib import PurePosixPath
from typing import cast

from xclaw.contracts.errors import (
    AllModelsFailed,
    LimitReached,
    ModelError,
    SpawnRefused,
    ToolFailed,
)
from xclaw.contracts.events import ArtifactDelivered, MessageAdded, ModelAnswered, TurnStarted
from xclaw.contracts.messages import AssistantMessage, UserMessage
from xclaw.contracts.models import ModelReply, ModelRequest
from xclaw.contracts.tasks import Task
from xclaw.contracts.tokens import estimate_tokens
from xclaw.contracts.usage import Spend, spend_of_call
from xclaw.loop.json_blocks import Block, BlockReader, decode_json, encode_json
from xclaw.loop.schema_checks import violations
from xclaw.loop.streaming import TurnSink, cut_off
from xclaw.runtime.assembly import Live

MAX_CORRECTIONS = 2
ANSWER_CHARS = 8_000
"""Of an answer that did not fit, when the model is shown it again."""


class ScriptFailure(Exception):
    """An error that the script is told."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


class ScriptCalls:
    """The calls of one script, one at a time."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._parts = live.parts
        self._answered = _answered(live)
        self._asks = self._delegations = 0
        self.finished: tuple[object, str] | None = None
        self.failed = ""
        self._calls: Mapping[str, Callable[[Mapping[str, object]], Awaitable[object]]] = {
            "task": self._task,
            "ask": self._ask,
            "say": self._say,
            "deliver": self._deliver,
            "delegate": self._delegate,
            "spend": self._spend,
            "mail": self._mail,
            "workspace": self._workspace,
            "finish": self._finish,
            "fail": self._fail,
        }

    async def call(self, fields: Mapping[str, object]) -> object:
        """Raises `ScriptFailure`, and `JournalError` when the run cannot go on."""
        do = self._calls.get(_text(fields, "do"))
        if do is None:
            raise ScriptFailure("", f"there is no call {fields.get('do')!r}")
        try:
            return await do(fields)
        except LimitReached as failure:
            raise ScriptFailure("limit", str(failure)) from None
        except (ModelError, AllModelsFailed) as failure:
            raise ScriptFailure("model", str(failure)) from None
        except (SpawnRefused, ToolFailed) as failure:
            raise ScriptFailure("refused", str(failure)) from None

    async def _task(self, _: Mapping[str, object]) -> str:
        return self._parts.state.request

    async def _say(self, fields: Mapping[str, object]) -> None:
        self._parts.log.delta(_text(fields, "text") + "\n")

    async def _spend(self, _: Mapping[str, object]) -> dict[str, object]:
        ledger = self._parts.ledger
        spent = ledger.spent
        return {
            "tokens": spent.usage.total_tokens,
            "usd": spent.cost_usd,
            "calls": spent.calls,
            "left": ledger.left(),
        }

    async def _mail(self, _: Mapping[str, object]) -> list[str]:
        before = len(self._parts.state.messages)
        self._parts.inbox.take()
        return [m.text for m in self._parts.state.messages[before:] if isinstance(m, UserMessage)]

    async def _workspace(self, _: Mapping[str, object]) -> str:
        await asyncio.to_thread(self._parts.workspace.prepare)
        return self._parts.workspace.private_dir

    async def _finish(self, fields: Mapping[str, object]) -> None:
        data, task = fields.get("summary_data"), self._parts.task
        if task is not None and task.output_schema is not None:
            wrong = violations(data, task.output_schema)
            if wrong:
                raise ScriptFailure("", f"summary_data does not fit the task's schema: {'; '.join(wrong)}")
        self.finished = (data, _text(fields, "text"))

    async def _fail(self, fields: Mapping[str, object]) -> None:
        self.failed = _text(fields, "reason") or "the script says that it failed"

    async def _deliver(self, fields: Mapping[str, object]) -> str:
        name, content = _text(fields, "name"), base64.b64decode(_text(fields, "content"))
        digest = hashlib.sha256(content).hexdigest()
        for pointer in self._parts.state.delivered:
            if pointer.sha256 == digest and PurePosixPath(pointer.path).name == PurePosixPath(name).name:
                return pointer.path
        pointer = await asyncio.to_thread(self._parts.workspace.deliver, name, content)
        self._parts.log.record(ArtifactDelivered(pointer, PurePosixPath(name).name))
        return pointer.path

    async def _delegate(self, fields: Mapping[str, object]) -> dict[str, object]:
        started = self._parts.state.started_event
        if started is None or "delegate" not in started.tools:
            raise SpawnRefused(
                f"{self._parts.agent.name} may not hand work out: its agent has not the tool `delegate`, or "
                "it is at the limit of depth"
            )
        name, text = _text(fields, "agent"), _text(fields, "text")
        self._delegations += 1
        key = hashlib.sha256(f"{name}\0{text}".encode("utf-8", "replace")).hexdigest()[:12]
        spawn = self._parts.spawn_for(f"script_{self._delegations}")
        result = await spawn.run(Task(name, text, "delegate", key))
        return {
            "outcome": result.outcome,
            "text": result.text,
            "summary_data": result.summary_data,
            "artifacts": {name: pointer.path for name, pointer in result.pointers.items()},
            "reason": result.reason,
        }

    async def _ask(self, fields: Mapping[str, object]) -> object:
        prompt, system, schema = _text(fields, "prompt"), _text(fields, "system"), fields.get("schema")
        if schema is None:
            return await self._answer(prompt, system, None)
        if not isinstance(schema, dict):
            raise ScriptFailure("", "`schema` must be a JSON Schema, as a dict")
        wanted = cast("dict[str, object]", schema)
        asked = f"{prompt}\n\nAnswer with JSON only, of this JSON Schema:\n{encode_json(wanted)}"
        text = await self._answer(asked, system, wanted)
        for _ in range(MAX_CORRECTIONS):
            value, wrong = _read(text, wanted)
            if not wrong:
                return value
            again = f"{asked}\n\nYour answer was:\n{text[:ANSWER_CHARS]}\n\nThat was wrong: {wrong}"
            text = await self._answer(again, system, wanted)
        value, wrong = _read(text, wanted)
        if wrong:
            raise ScriptFailure("model", f"no answer fits the schema: {wrong}")
        return value

    async def _answer(self, prompt: str, system: str, schema: dict[str, object] | None) -> str:
        """The model's text; the one of before a crash, if the script asks the same again."""
        asked = f"[System prompt of this call]\n{system}\n\n{prompt}" if system else prompt
        at, self._asks = self._asks, self._asks + 1
        if at < len(self._answered):
            if self._answered[at][0] == asked:
                return self._answered[at][1]
            self._answered = self._answered[:at]
        return (await self._reply(asked, prompt, system, schema)).message.text

    async def _reply(
        self, asked: str, prompt: str, system: str, schema: dict[str, object] | None
    ) -> ModelReply:
        parts = self._parts
        instructions = system or parts.agent.instructions
        tokens = estimate_tokens(instructions) + estimate_tokens(prompt)
        self._check_turns()
        reservation = parts.ledger.reserve(tokens, parts.model.profile)
        turn = parts.state.turn + 1
        parts.log.record(
            MessageAdded(asked, "agent"),
            TurnStarted(turn, parts.model.name, reservation.tokens, reservation.usd),
        )
        request = ModelRequest(
            instructions,
            [UserMessage(prompt, "agent")],
            output_schema=schema if parts.model.profile.structured_output != "none" else None,
            max_output_tokens=reservation.max_output_tokens,
            agent=parts.agent.name,
        )
        sink, clock, spend = TurnSink(parts), asyncio.get_running_loop().time, Spend()
        started = clock()
        try:
            reply = await parts.model.reply(request, sink)
            spend = spend_of_call(reply.usage, reply.cost_usd)
        except asyncio.CancelledError:
            spend = cut_off(parts, sink.text, tokens)
            raise
        finally:
            parts.ledger.settle(reservation, spend)
        parts.log.record(
            ModelAnswered(
                turn,
                AssistantMessage(reply.message.text, (), reply.message.reasoning),
                reply.usage,
                reply.cost_usd,
                reply.model,
                reply.finish,
                clock() - started,
                reply.first_token_s,
            )
        )
        return reply

    def _check_turns(self) -> None:
        started = self._parts.state.started_event
        limit = started.limits.max_turns if started else None
        if limit is not None and self._parts.state.turn >= limit:
            raise LimitReached("turns", f"the limit of {limit} model calls of this agent is used up")


def _answered(live: Live) -> list[tuple[str, str]]:
    """What the script asked before a crash, and the answers."""
    messages = live.parts.state.messages
    return [
        (asked.text, answer.text)
        for asked, answer in pairwise(messages)
        if isinstance(asked, UserMessage) and isinstance(answer, AssistantMessage)
    ]


def _text(fields: Mapping[str, object], name: str) -> str:
    value = fields.get(name)
    if value is not None and not isinstance(value, str):
        raise ScriptFailure("", f"`{name}` must be text")
    return value or ""


def _read(text: str, schema: dict[str, object]) -> tuple[object, str]:
    """The value in an answer, and what is wrong with it."""
    try:
        value = decode_json(text.strip())
    except ValueError:
        starts = [at for at in (text.find("{"), text.find("[")) if at >= 0]
        block = BlockReader(text).read(min(starts)) if starts else None
        if not isinstance(block, Block):
            return None, "it is not JSON"
        value = block.value
    return value, "; ".join(violations(value, schema))
