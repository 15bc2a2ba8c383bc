"""`xclaw cancel`: end a run and everything below it, in whichever process it is."""

from typing import TYPE_CHECKING

from xclaw.cli.failures import DONE, complain
from xclaw.cli.opening import find_run, settings_of_workspace, with_app

if TYPE_CHECKING:
    from xclaw.app import App


def cancel(run: str, reason: str, workspace: str | None, *, as_json: bool) -> int:
    """Answers how each run of the tree ended."""

    async def body(app: "App") -> int:
        row = await find_run(app.journal, run)
        if row.outcome is not None:
            complain(f"run {row.run_id} had ended already, as {row.outcome}")
        ends = await app.cancel(row.run_id, reason)
        if as_json:
            from xclaw.cli.output import print_indented

            print_indented({"run_id": row.run_id, "ends": ends})
            return DONE
        from xclaw.cli.text import one_line

        for end in ends:
            late = "  (had ended before)" if end.late else ""
            print(f"{end.run_id}  {one_line(end.agent, 40)}  {end.outcome}{late}")
        if not ends:
            complain(f"nothing of run {row.run_id} was at work")
        return DONE

    return with_app(settings_of_workspace(workspace), body)
