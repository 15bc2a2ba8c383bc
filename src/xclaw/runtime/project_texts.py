"""What a run is told of the user's project, by what it may do with it."""

from collections.abc import Sequence

from xclaw.contracts.coordination import is_coordinator
from xclaw.contracts.tool_names import COMMIT_TOOL, MERGE_TOOL

READS = """## The user's project
The directory in [Project: ...] holds the user's project as it was when the work began, to be read, not changed. \
Files that may hold secrets are not in it. What you make yourself goes elsewhere."""

WRITES = """## The user's project
The directory in [Project: ...] is a copy of the user's project that is yours alone: change files there. Commit \
with the commit tool after each step that stands by itself; what you have not committed when you end is committed \
then. There is no git in that directory, do not make a repository there. All your commits come back as one branch \
and one patch: do not deliver changed files as well, and say in your result which files you changed and why."""

COORDINATES = """## The user's project
The work is on the user's project, which all workers can read. Every task whose agent changes files works in a copy \
of its own, which begins at what the tasks that it depends on have made; implement merges their branches in the \
order of the plan. A branch that conflicts is left out and shown with the parts that conflict: mend it with a task \
that depends on that one. Checks run in a directory whose folder `project` is the project with all that was merged, \
e.g. `cd project && python -m pytest -q`. Say in each task which files of the project it is about, by their paths there."""

MERGES = """## The user's project
The directory in [Project: ...] holds the user's project as it was when the work began, to be read; you cannot \
change it. Agents that write code or text change files in a copy of their own, and their results name a `branch`. \
merge_branches puts branches together, in the order you name them, and shows what conflicts; workers that you start \
later begin there. A conflict is mended by a worker: merge what fits, then hand it the conflicting parts. At your \
end all that was merged, and whatever else succeeded and fits, becomes one branch in the user's repository; the \
user's own files stay as they are, so never say that they were changed."""


def section(tools: Sequence[str]) -> str:
    """For a run with these tools."""
    if is_coordinator(tools):
        return COORDINATES
    if MERGE_TOOL in tools:
        return MERGES
    return WRITES if COMMIT_TOOL in tools else READS
