"""What workers hand up, as the coordinator reads it: bounded, the rest by pointer."""

import asyncio
import json
from collections.abc import Awaitable, Callable

from xclaw.contracts.artifacts import Pointer
from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.events import ArtifactDelivered
from xclaw.contracts.results import Result
from xclaw.contracts.tools import ToolContext
from xclaw.patterns.render import failure_reason, plain_output, pointer_paths, shorten

LEAST_CHARACTERS = 300
"""Shown of each report, however many there are."""

KeepNote = Callable[[ToolContext, str, str, str], Awaitable[str]]
"""Keep a text on the scratchpad of the call's conversation: context, name, text, author. Answers the entry's name, or
"" when it cannot be kept. The same call and name again is the same entry."""


async def nothing_kept(_context: ToolContext, _name: str, _text: str, _author: str) -> str:
    """Where there is no scratchpad."""
    return ""


def encoded(value: object) -> str:
    """JSON text that can be stored whatever a worker wrote."""
    return json.dumps(value, ensure_ascii=False, default=repr).encode("utf-8", "replace").decode("utf-8")


def report_text(result: Result) -> str:
    """What a worker reports: its data, else its text, else why there is none."""
    if result.summary_data not in (None, {}, [], ""):
        data = result.summary_data
        said = data if isinstance(data, str) else encoded(data)
    else:
        said = plain_output(result)
    if result.succeeded:
        return said
    return f"{failure_reason(result)}\n{said}" if said.strip() else failure_reason(result)


async def shown_report(
    name: str, result: Result, characters: int, context: ToolContext, kept: str
) -> dict[str, object]:
    """One report. `kept`: the scratchpad entry that has it; without one a long report becomes a file."""
    text = report_text(result)
    record: dict[str, object] = {
        "status": "success" if result.succeeded else "error",
        "outcome": result.outcome,
        "artifact_pointers": pointer_paths(result.pointers),
    }
    if kept:
        record["scratchpad"] = kept
    elif len(text) > characters and (pointer := await _as_file(name, text, context)) is not None:
        record["whole_report"] = pointer.path
    record["report"] = shorten(text, characters)
    return record


async def _as_file(name: str, text: str, context: ToolContext) -> Pointer | None:
    """The report as an artifact that can be handed on; None when the disk refuses: its beginning is enough."""
    try:
        pointer = await asyncio.to_thread(context.workspace.deliver, name, text.encode("utf-8", "replace"))
    except (ToolFailed, OSError):
        return None
    context.record(ArtifactDelivered(pointer, name))
    return pointer


def share(characters: int, parts: int) -> int:
    """What of a bound falls to each of so many parts."""
    return max(LEAST_CHARACTERS, characters // max(1, parts))
