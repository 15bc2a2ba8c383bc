"""`xclaw workflow run`: a user's own workflow script as a run."""

import secrets
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from xclaw.cli.failures import DONE
from xclaw.cli.run import Shown, checked_session, shown_run
from xclaw.cli.workflow_options import WorkflowOptions
from xclaw.contracts.errors import ToolFailed, UsageError

if TYPE_CHECKING:
    from xclaw.contracts.agents import Agent
    from xclaw.settings import Settings


def run_workflow(options: WorkflowOptions, shown: Shown) -> int:
    """Run the script, or say what it would ask for; answers the exit code."""
    from xclaw.cli.asking import attended
    from xclaw.cli.opening import run_to_end, settings_from

    fresh = f"workflow-{secrets.token_hex(3)}"
    session_id = shown.session_id = fresh if options.session is None else checked_session(options.session)
    script = _read(options.file)
    settings = settings_from(options.overrides())
    if options.dry_run:
        return run_to_end(_tell(options, settings, script))
    settings = attended(settings)
    if options.yes:
        permissions = settings.permissions
        settings = replace(settings, permissions=replace(permissions, allow=(*permissions.allow, "workflow")))
    return run_to_end(_run(options, settings, script, session_id, shown))


def _read(file: str) -> str:
    from xclaw.cli.opening import working_directory

    path = working_directory() / Path(file).expanduser()
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise UsageError(f"the script {str(path)!r} cannot be read: {reason}") from None


async def _tell(options: WorkflowOptions, settings: "Settings", script: str) -> int:
    """What a person would be asked. Nothing is started but the check."""
    from xclaw.patterns.workflows.tool import containment, quoted

    budget = settings.runtime
    left = [f"${budget.budget_usd:g}"] if budget.budget_usd is not None else []
    left += [f"{budget.budget_tokens:,} tokens"] if budget.budget_tokens is not None else []
    try:
        quote = await quoted(script, options.quote(), settings.workflow)
    except ToolFailed as failure:
        raise UsageError(str(failure)) from None
    print(quote.told(" and ".join(left), containment()))
    return DONE


def workflow_agent() -> "Agent":
    """Who runs the script: it calls the workflow tool, and thinks nothing."""
    from xclaw.contracts.agents import Agent

    return Agent(
        "workflow",
        "runs a workflow script",
        "You run a workflow script.",
        models=("workflow:",),
        tools=("workflow",),
        orchestrator=True,
        source="python",
    )


async def _run(
    options: WorkflowOptions, settings: "Settings", script: str, session_id: str, shown: Shown
) -> int:
    from xclaw.app import open_app
    from xclaw.cli.opening import find_run, say_notices, usable_workspace
    from xclaw.cli.preparing import PreparationProgress
    from xclaw.cli.watching import Interrupts
    from xclaw.contracts.agents import Limits
    from xclaw.patterns.workflows.file_model import message_for
    from xclaw.runtime.runs import RunRequest

    interrupts = Interrupts()
    interrupts.install()
    usable_workspace(settings)
    agent = workflow_agent()
    async with open_app(settings, PreparationProgress(), agents=[agent]) as app:
        await say_notices(app)
        arguments = dict(options.quote_arguments())
        if options.resume is not None:
            row = await find_run(app.journal, options.resume)
            session_id = shown.session_id = row.session_id
            arguments["resume"] = row.run_id
        request = RunRequest(
            message_for(script, arguments),
            session_id,
            agent.name,
            limits=Limits(None, options.timeout, options.budget_tokens, options.budget_usd),
            worker_timeout_s=options.worker_timeout,
        )
        handle = await app.runs.start(request)
        return await shown_run(app, handle, shown, interrupts)
