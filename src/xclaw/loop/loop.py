"""One agent, one conversation: ask, run tools, repeat.

Each step is chosen from the state alone. A run that is taken up again after a crash therefore goes
on exactly where its last durable event left it, and a finished model call is never made again.
"""

import asyncio

from xclaw.contracts.errors import AllModelsFailed, ContextTooLong, Deadlock, LimitReached, ModelError
from xclaw.contracts.events import MessageAdded, ModelAnswered, TurnStarted, Warned
from xclaw.contracts.messages import AssistantMessage, ToolCall, ToolMessage
from xclaw.contracts.models import ModelReply
from xclaw.contracts.usage import Spend, spend_of_call
from xclaw.loop.action_shapes import MAX_NAME_CHARS
from xclaw.loop.actions import Malformed
from xclaw.loop.calls import CUT, run_calls
from xclaw.loop.client_tools import CLIENT_TOOLS, for_the_client
from xclaw.loop.context import build_request, request_tokens
from xclaw.loop.dialects import Asked
from xclaw.loop.ending import MAX_CORRECTIONS, conclude
from xclaw.loop.laying_out import lay_out
from xclaw.loop.parts import Ending, Parts
from xclaw.loop.pictures import with_pictures
from xclaw.loop.repeats import WARNING_TEXT
from xclaw.loop.room import make_room
from xclaw.loop.streaming import TurnSink, cut_off


async def run_loop(parts: Parts) -> Ending:
    """Go on from `parts.state` until the run has an ending.

    Raises `JournalError` when events cannot be made durable. Cancelling it ends the model call and
    the tool calls; what they had is in the state.
    """
    ending = await lay_out(parts)
    while ending is None:
        try:
            ending = await _step(parts)
        except LimitReached as limit:
            ending = Ending("over_budget", parts.state.findings(), str(limit))
        except Deadlock as deadlock:
            ending = Ending("stuck", parts.state.findings(), str(deadlock))
        except (AllModelsFailed, ModelError) as failure:
            ending = Ending("error", parts.state.findings(), str(failure))
    return ending


async def _step(parts: Parts) -> Ending | None:
    state = parts.state
    if state.pending:
        if for_the_client(state.turn_calls, parts.tools) and state.finish != "length":
            return Ending("success", state.last_text(), CLIENT_TOOLS)
        await run_calls(parts)
        return None
    last = state.messages[-1]
    if isinstance(last, AssistantMessage):
        return await conclude(parts, last)
    if isinstance(last, ToolMessage):
        if state.verdict == "stuck":
            parts.log.record(Warned("repeated_call", f"{last.name} was repeated without progress"))
            return Ending("stuck", state.findings(), "repeated_call: the same calls brought no progress")
        if state.verdict == "warn":
            parts.log.record(Warned("repeated_call", last.name), MessageAdded(WARNING_TEXT, "runtime"))
    parts.inbox.take()
    if state.turn - min(state.waits, parts.bounds.max_turns) >= parts.bounds.max_turns:
        reason = f"the limit of {parts.bounds.max_turns} turns was reached"
        return Ending("exhausted", state.findings(), reason)
    await _ask(parts)
    return None


async def _ask(parts: Parts) -> None:
    await make_room(parts)
    tokens = request_tokens(parts)
    reservation = parts.ledger.reserve(tokens, parts.model.profile)
    parts.log.record(TurnStarted(parts.state.turn + 1, parts.model.name, reservation.tokens, reservation.usd))
    sink = TurnSink(parts)
    clock = asyncio.get_running_loop().time
    started = clock()
    spend = Spend()
    try:
        request = await with_pictures(build_request(parts, reservation.max_output_tokens), parts.workspace)
        reply = await parts.model.reply(request, sink)
        spend = spend_of_call(reply.usage, reply.cost_usd)
    except ContextTooLong:
        await make_room(parts, force=True)
        return
    except asyncio.CancelledError:
        spend = cut_off(parts, sink.text, tokens)
        raise
    finally:
        parts.ledger.settle(reservation, spend)
    _record_reply(parts, reply, sink, clock() - started)


def _record_reply(parts: Parts, reply: ModelReply, sink: TurnSink, duration_s: float) -> None:
    reading = parts.dialect.read(reply.message, parts.tools)
    written = reply.message.text
    match reading:
        case Asked():
            message = AssistantMessage(reading.text, _calls(parts, reading), reply.message.reasoning)
            sink.release(None)
        case Malformed():
            message = AssistantMessage(written, (), reply.message.reasoning)
            sink.release(None)
        case _:
            message = AssistantMessage(reading.text, (), reply.message.reasoning)
            sink.release(reading.text)
    answered = ModelAnswered(
        parts.state.turn,
        message,
        reply.usage,
        reply.cost_usd,
        reply.model,
        reply.finish,
        duration_s,
        reply.first_token_s,
        "" if written == message.text else written,
    )
    if not isinstance(reading, Malformed):
        parts.log.record(answered)
        return
    reason = CUT if reply.finish == "length" else reading.reason
    warned = Warned("parse_failed", reason)
    if parts.state.corrections < MAX_CORRECTIONS:
        parts.log.record(answered, warned, MessageAdded(reason, "runtime"))
    else:
        parts.log.record(answered, warned)


def _calls(parts: Parts, asked: Asked) -> tuple[ToolCall, ...]:
    """The calls under ids of our own: providers reuse theirs."""
    stem = f"call_{parts.run_id[-8:]}_{parts.state.turn}"
    return tuple(
        ToolCall(f"{stem}_{index}", parts.resolve_tool(name)[:MAX_NAME_CHARS], arguments)
        for index, (name, arguments) in enumerate(asked.calls)
    )
