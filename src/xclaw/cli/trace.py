"""`xclaw trace`: the tree of a run, its timeline, and what was said."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xclaw.cli.failures import DONE
from xclaw.cli.opening import find_run, settings_of_workspace, with_app
from xclaw.contracts.errors import UsageError

if TYPE_CHECKING:
    from xclaw.app import App
    from xclaw.contracts.events import Entry


def show_trace(run: str, session: str | None, workspace: str | None, *, as_json: bool, prompts: bool) -> int:
    """Show one tree, or all trees of a session."""

    async def body(app: "App") -> int:
        entries = await chosen_trees(app, run, session)
        if as_json:
            _print_json(entries, prompts=prompts)
        else:
            interrupted = {row.root_id for row in await app.runs.interrupted()}
            for tree in entries:
                print_trace(tree, prompts=prompts)
                if tree and tree[0].address.root_id in interrupted:
                    print(f"interrupted; go on with: xclaw resume {tree[0].address.root_id}")
        return DONE

    return with_app(settings_of_workspace(workspace), body)


async def chosen_trees(app: "App", run: str, session: str | None) -> list[list["Entry"]]:
    """The entries of the run and everything below it, or of all runs of the session, oldest first."""
    if session is None:
        row = await find_run(app.journal, run)
        return [await _below(app, row.root_id, row.run_id)]
    rows = await app.journal.runs(session_id=session, limit=1000)
    if not rows:
        raise UsageError(f"there is no session {session!r}. `xclaw tasks` lists runs and sessions.")
    return [await _below(app, row.root_id, row.run_id) for row in reversed(rows)]


async def _below(app: "App", root_id: str, run_id: str) -> list["Entry"]:
    """The entries of a run and everything below it."""
    from xclaw.traces.tree import trace_trees

    entries = await app.journal.read_tree(root_id)
    nodes = [node for tree in trace_trees(entries) for node in tree.walk()]
    wanted = {below.run_id for node in nodes if node.run_id == run_id for below in node.walk()}
    return [entry for entry in entries if entry.address.run_id in wanted]


def print_trace(entries: Sequence["Entry"], *, prompts: bool = False) -> None:
    """Tree and timeline for people, or with `prompts` everything that was said."""
    from xclaw.cli.trace_text import conversation_lines, timeline_lines, tree_lines
    from xclaw.traces.conversation import conversations
    from xclaw.traces.timeline import timeline
    from xclaw.traces.tree import trace_trees

    trees = trace_trees(entries)
    lines = [line for tree in trees for line in tree_lines(tree)]
    if prompts:
        for conversation in conversations(entries):
            lines += ["", *conversation_lines(conversation)]
    else:
        lines += ["", *timeline_lines(timeline(entries))]
    print("\n".join(lines))


def _print_json(trees: Sequence[Sequence["Entry"]], *, prompts: bool) -> None:
    from xclaw.cli.output import print_indented
    from xclaw.traces.conversation import conversations
    from xclaw.traces.forms import conversation_json, timeline_json, tree_json
    from xclaw.traces.timeline import timeline
    from xclaw.traces.tree import trace_trees

    forms: list[dict[str, object]] = []
    for entries in trees:
        for tree in trace_trees(entries):
            form: dict[str, object] = {
                "trace_id": tree.root_id,
                "tree": tree_json(tree),
                "timeline": timeline_json(timeline(entries)),
            }
            if prompts:
                form["conversations"] = [conversation_json(each) for each in conversations(entries)]
            forms.append(form)
    print_indented(forms[0] if len(forms) == 1 else {"traces": forms})
