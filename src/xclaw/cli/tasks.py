"""`xclaw tasks`: the runs there are, and how the work of one is divided."""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from xclaw.cli.failures import DONE
from xclaw.cli.opening import find_run, settings_of_workspace, with_app
from xclaw.cli.text import one_line, seconds

if TYPE_CHECKING:
    from xclaw.app import App
    from xclaw.contracts.journal import RunRow


def show_tasks(run: str | None, workspace: str | None, limit: int, *, as_json: bool) -> int:
    """List recent root runs, or show the steps of one."""

    async def body(app: "App") -> int:
        if run is None:
            await list_runs(app, limit, as_json=as_json)
        else:
            await show_steps(app, run, as_json=as_json)
        return DONE

    return with_app(settings_of_workspace(workspace), body)


async def list_runs(app: "App", limit: int, *, as_json: bool = False) -> None:
    """Open and interrupted roots first, then the recent ones."""
    interrupted = {row.run_id for row in await app.runs.interrupted()}
    opened = await app.journal.runs(roots_only=True, open_only=True, limit=limit)
    recent = await app.journal.runs(roots_only=True, limit=limit)
    rows = list({row.run_id: row for row in (*opened, *recent)}.values())
    if as_json:
        from xclaw.cli.output import print_indented

        print_indented({"runs": [_form(row, interrupted) for row in rows]})
        return
    if not rows:
        print('no runs yet. Start one: xclaw run "..."')
    for row in rows:
        print(_line(row, interrupted))


async def show_steps(app: "App", run: str, *, as_json: bool = False) -> None:
    """The task state of a run: one step for each piece of work that it handed out."""
    from xclaw.loop.state import fold
    from xclaw.runtime.board import task_state

    row = await find_run(app.journal, run)
    state = task_state(fold(await app.journal.read_run(row.run_id)))
    if as_json:
        from xclaw.cli.output import print_indented

        print_indented({"run_id": row.run_id, **state})
        return
    print(f"{row.run_id}  {_standing(row, {row.run_id for row in await app.runs.interrupted()})}")
    print(f"task: {one_line(str(state['task']), 300)}")
    steps = cast("Mapping[str, Mapping[str, object]]", state["steps"])
    if not steps:
        print("no work was handed out")
    for name, step in steps.items():
        _print_step(name, step)


def _print_step(name: str, step: Mapping[str, object]) -> None:
    print(f"- {one_line(name, 60)}: {step.get('status')}  {one_line(str(step.get('task', '')), 100)}")
    for key, value in step.items():
        if value and key not in ("status", "task"):
            print(f"    {key}: {one_line(str(value), 200)}")


def _standing(row: "RunRow", interrupted: set[str]) -> str:
    if row.outcome is not None:
        return row.outcome
    return "interrupted" if row.root_id in interrupted else "running"


def _line(row: "RunRow", interrupted: set[str]) -> str:
    age = seconds(max(0.0, time.time() - row.started_at))
    length = "" if row.ended_at is None else f" took {seconds(row.ended_at - row.started_at)},"
    return (
        f"{row.run_id}  {_standing(row, interrupted):11}  {one_line(row.agent, 30)}  "
        f"{one_line(row.session_id, 40)} {length} {age} ago  {one_line(row.title, 60)}"
    )


def _form(row: "RunRow", interrupted: set[str]) -> dict[str, object]:
    return {
        "run_id": row.run_id,
        "session_id": row.session_id,
        "agent": row.agent,
        "title": row.title,
        "status": _standing(row, interrupted),
        "started_at": row.started_at,
        "ended_at": row.ended_at,
    }
