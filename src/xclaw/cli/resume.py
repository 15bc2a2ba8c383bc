"""`xclaw resume`: take up runs whose process died."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xclaw.cli.failures import DONE, FAILED, MISUSED, complain, reason_of, show_error
from xclaw.cli.run import Shown, shown_run
from xclaw.contracts.errors import UsageError, XclawError

if TYPE_CHECKING:
    from xclaw.app import App
    from xclaw.cli.watching import Interrupts
    from xclaw.contracts.journal import RunRow
    from xclaw.settings import Settings


@dataclass(frozen=True, slots=True)
class ResumeOptions:
    """Where runs are taken up."""

    workspace: str | None
    mode: str | None
    sandbox: str | None


def resume(run: str | None, options: ResumeOptions, shown: Shown) -> int:
    """Resume one run, or all that were interrupted, one after the other; answers the worst exit code."""
    from xclaw.cli.asking import attended
    from xclaw.cli.opening import run_to_end, settings_from
    from xclaw.settings import Overrides

    chosen = Overrides(workspace=options.workspace, mode=options.mode, sandbox=options.sandbox)
    settings = attended(settings_from(chosen))
    return run_to_end(_resume(settings, run, shown))


async def _resume(settings: "Settings", run: str | None, shown: Shown) -> int:
    from xclaw.cli.opening import find_run, opened
    from xclaw.cli.watching import Interrupts

    interrupts = Interrupts()
    interrupts.install()
    async with opened(settings) as app:
        if run is None:
            rows = await app.runs.interrupted()
            if not rows:
                complain("no run was interrupted; there is nothing to resume")
                return DONE
        else:
            rows = [await find_run(app.journal, run)]
        worst = DONE
        for row in sorted(rows, key=lambda row: row.started_at):
            complain(_heading(row))
            worst = max(worst, await _resumed(app, row, shown, interrupts))
            if interrupts.happened:  # whoever stops one run does not want the next to begin
                break
        return worst


async def _resumed(app: "App", row: "RunRow", shown: Shown, interrupts: "Interrupts") -> int:
    """The exit code of one run; one that cannot be taken up does not keep the others waiting."""
    shown.session_id, shown.answered = row.session_id, False
    try:
        before = await app.journal.read_tree(row.root_id)
        handle = await app.runs.resume(row.root_id)
    except XclawError as error:
        shown.report("error", reason_of(error))
        show_error(error)
        return MISUSED if isinstance(error, UsageError) else FAILED
    return await shown_run(app, handle, shown, interrupts, before)


def _heading(row: "RunRow") -> str:
    from xclaw.cli.text import one_line

    return f"resuming {row.root_id} ({one_line(row.agent, 40)}): {one_line(row.title, 80)}"
