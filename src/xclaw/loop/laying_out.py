"""What a run is to check lies in its directory before its first turn."""

import asyncio

from xclaw.contracts.errors import ToolFailed
from xclaw.loop.parts import Ending, Parts


async def lay_out(parts: Parts) -> Ending | None:
    """Put what a run is to check into its directory, unless it has begun; an ending when that fails."""
    task = parts.task
    if task is None or not task.checks or parts.state.check_runs.begun:
        return None
    try:
        await asyncio.to_thread(parts.workspace.place, task.inputs)
    except (ToolFailed, OSError) as failure:
        return Ending("error", "", f"what is to be checked could not be laid out: {failure}")
    return None
