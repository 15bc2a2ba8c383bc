"""Running the tool calls of one answer: every call gets exactly one result, whatever goes wrong."""

import asyncio
from dataclasses import replace
from itertools import groupby

from xclaw.contracts.errors import (
    Deadlock,
    Fenced,
    JournalError,
    LimitReached,
    NotPermitted,
    SandboxLost,
    SandboxUnavailable,
    SpawnRefused,
    ToolFailed,
)
from xclaw.contracts.events import ToolCallEnded, ToolCallStarted
from xclaw.contracts.messages import ToolCall
from xclaw.contracts.tokens import share_inline
from xclaw.contracts.tools import Tool, ToolContext, ToolOutput
from xclaw.loop.arguments import decode_arguments, unknown_tool
from xclaw.loop.bounding import NOTICE_CHARS, Ends, both_ends, bound_output, joined
from xclaw.loop.parts import Admitted, Parts
from xclaw.loop.pictures import cannot_see
from xclaw.loop.state import INTERRUPTED

CUT = (
    "error: your reply was cut off at the model's output limit, so this call was not run. "
    "Make it smaller: split the content over several calls."
)

LONE_TOOLS = frozenset({"write_file", "deliver", "wait_for_mail"})
"""Harmless to repeat, but in their place: a later call of the same answer may read what they write, and
mail is waited for once an earlier call has sent the question."""


async def run_calls(parts: Parts) -> None:
    """Run what is pending: neighbours that are replayable at once, the others alone, in order.

    Cancelling it ends the calls; those without a result are closed when the run ends.
    """
    for _, group in groupby(list(parts.state.pending.values()), lambda call: _group_key(parts, call)):
        calls = list(group)
        if len(calls) == 1:
            await _run_call(parts, calls[0])
            continue
        async with asyncio.TaskGroup() as tasks:
            for call in calls:
                tasks.create_task(_run_call(parts, call))


def _group_key(parts: Parts, call: ToolCall) -> str:
    tool = parts.tools.get(call.name)
    together = tool is None or (tool.replayable and call.name not in LONE_TOOLS)
    return "together" if together else call.id


async def _run_call(parts: Parts, call: ToolCall) -> None:
    watch = _Stopwatch()
    output = await _output_of(parts, call, watch)
    images = output.images if parts.model.profile.images else ()
    said = output.content if images or not output.images else cannot_see(output.content)
    content, spilled = _inline(parts, call, said)
    parts.log.record(
        ToolCallEnded(
            call.id,
            call.name,
            output.ok,
            content,
            watch.elapsed,
            spilled,
            output.exit_code,
            refused=output.refused,
            images=images,
        )
    )


class _Stopwatch:
    """How long a call took; begins anew when a person has decided."""

    def __init__(self) -> None:
        self._clock = asyncio.get_running_loop().time
        self.restart()

    def restart(self) -> None:
        self._started = self._clock()

    @property
    def elapsed(self) -> float:
        return self._clock() - self._started


async def _output_of(parts: Parts, call: ToolCall, watch: _Stopwatch) -> ToolOutput:
    if parts.state.finish == "length":
        return ToolOutput(CUT, ok=False)
    tool = parts.tools.get(call.name)
    if tool is None:
        return ToolOutput(unknown_tool(call.name, parts.tools), ok=False)
    if call.id in parts.state.started and not tool.replayable:
        return ToolOutput(INTERRUPTED, ok=False)
    try:
        admitted = await _admitted(parts, tool, call, watch)
        return await _ran(parts, tool, call, admitted)
    except TimeoutError as failure:
        return ToolOutput(_late(tool, failure), ok=False)
    except (ToolFailed, SpawnRefused, LimitReached) as failure:
        return ToolOutput(f"error: {failure}", ok=False, refused=isinstance(failure, NotPermitted))
    except (Fenced, JournalError, Deadlock, SandboxLost, SandboxUnavailable):
        raise
    except Exception as failure:  # noqa: BLE001 - the boundary of a call: a tool's bug ends the call only
        return ToolOutput(_bug(tool, failure), ok=False)


async def _admitted(parts: Parts, tool: Tool, call: ToolCall, watch: _Stopwatch) -> Admitted:
    """The call as it may run. What a person takes to decide is no time of the tool's."""
    arguments = decode_arguments(call.name, call.arguments, tool.spec.parameters)
    try:
        return await parts.gate.admit(tool, call, arguments)
    finally:
        watch.restart()


async def _ran(parts: Parts, tool: Tool, call: ToolCall, admitted: Admitted) -> ToolOutput:
    if call.id not in parts.state.started:
        parts.log.record(ToolCallStarted(call.id, call.name, admitted.written))
    if not tool.replayable:
        await parts.log.durable()
    async with asyncio.timeout(tool.timeout_s):
        output = await tool.run(admitted.arguments, _context(parts, call))
    return replace(output, content=f"{admitted.note}\n{output.content}") if admitted.note else output


def _late(tool: Tool, failure: TimeoutError) -> str:
    if tool.timeout_s is None:
        return _bug(tool, failure)
    return f"error: {tool.spec.name} took longer than {tool.timeout_s} s and was stopped"


def _bug(tool: Tool, failure: Exception) -> str:
    return f"error: {tool.spec.name} failed: {type(failure).__name__}: {str(failure)[:500]}"


def _context(parts: Parts, call: ToolCall) -> ToolContext:
    return ToolContext(
        run_id=parts.run_id,
        session_id=parts.session_id,
        agent=parts.agent.name,
        call_id=call.id,
        request=parts.state.request,
        workspace=parts.workspace,
        spawn=parts.spawn_for(call.id),
        record=parts.log.record,
        turn_calls=parts.state.turn_calls,
        sandbox=parts.sandbox,
        project=parts.project,
        coordination=lambda: parts.state.coordination,
        inline_chars=parts.bounds.inline_limit_chars,
    )


def _inline(parts: Parts, call: ToolCall, content: str) -> tuple[str, str]:
    """What the model sees, and the path of the rest if there is more (SPEC E2)."""
    limit = parts.bounds.inline_limit_chars
    if share_inline(content, limit) == 1:
        return content, ""
    try:
        path = parts.workspace.spill(f"{call.name}-{call.id}.txt", content)
    except (ToolFailed, OSError) as failure:
        return f"{bound_output(content, limit)}\n[the rest could not be kept: {failure}]", ""
    ends = both_ends(content, limit - NOTICE_CHARS) or Ends("", "")
    return joined(ends, content, path, can_view="view_file" in parts.tools), path
