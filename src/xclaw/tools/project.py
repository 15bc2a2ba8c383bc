"""The tools that work on a user's project: commit what changed, merge what others committed (SPEC F4)."""

from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.projects import Conflict, ProjectMerged, ProjectPort
from xclaw.contracts.tool_names import COMMIT_TOOL, MERGE_TOOL
from xclaw.contracts.tools import ToolContext
from xclaw.tools.functions import tool

_FILES_SHOWN = 30
MAX_BRANCHES = 50


@tool(name=COMMIT_TOOL, replayable=True, timeout_s=None)
async def commit(context: ToolContext, message: str) -> str:
    """Commit everything that has changed in your copy of the user's project.

    Args:
        message: What was changed and why: one short line, then details if needed.
    """
    if not message.strip():
        raise ToolFailed("a commit needs a message: what was changed and why")
    made = await _port(context).commit(message)
    if made is None:
        return "nothing has changed since the last commit"
    files = ", ".join(made.files[:_FILES_SHOWN])
    more = f" and {len(made.files) - _FILES_SHOWN} more" if len(made.files) > _FILES_SHOWN else ""
    return "\n".join([f"committed {made.id[:12]} on {made.branch}: {files}{more}", *made.notes])


@tool(name=MERGE_TOOL, replayable=True, timeout_s=None)
async def merge_branches(context: ToolContext, branches: list[str]) -> str:
    """Put the branches of workers together, one after the other. Workers that you start later begin there.

    A branch that conflicts is left out and stays as it is.

    Args:
        branches: Their names, as in the results, in the order in which they are merged.
    """
    if not 0 < len(branches) <= MAX_BRANCHES:
        raise ToolFailed(f"name 1 to {MAX_BRANCHES} branches, as in the results of workers")
    merged = await _port(context).merge(tuple(branches))
    context.record(ProjectMerged(merged, context.call_id))
    lines = [f"merged into {merged.branch} ({merged.commit[:12]}): {', '.join(merged.taken) or 'none'}"]
    return "\n".join([*lines, *(_shown(conflict) for conflict in merged.conflicts)])


def _port(context: ToolContext) -> ProjectPort:
    if context.project is None:
        raise ToolFailed("there is no project here: xclaw was started without --project")
    return context.project


def _shown(conflict: Conflict) -> str:
    return (
        f"{conflict.branch} conflicts in {', '.join(conflict.files[:_FILES_SHOWN])} and was left out. The conflicting "
        f"parts:\n{conflict.detail}"
    )
