"""What a run is to check, or was handed, lies where it works before its first turn."""

import asyncio

from xclaw.contracts.errors import ToolFailed
from xclaw.loop.parts import Ending, Parts


async def lay_out(parts: Parts) -> Ending | None:
    """Put what a run is to check into its directory, unless it has begun; an ending when that fails. In a
    sandbox, what it was handed is copied to where that can see it."""
    task = parts.task
    if task is None:
        return None
    try:
        if task.checks and not parts.state.check_runs.begun:
            await asyncio.to_thread(parts.workspace.place, task.inputs)
        elif task.inputs and parts.workspace.input_dir:
            await asyncio.to_thread(parts.workspace.prepare)
    except (ToolFailed, OSError) as failure:
        what = "what is to be checked" if task.checks else "what was handed on"
        return Ending("error", "", f"{what} could not be laid out: {failure}")
    return None
