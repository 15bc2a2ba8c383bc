"""`xclaw fork`: a user's own script as a run, in a process of its own."""

import re
import secrets
from typing import TYPE_CHECKING

from xclaw.cli.fork_options import ForkOptions
from xclaw.cli.run import Shown, checked_session, shown_run
from xclaw.contracts.errors import UsageError

if TYPE_CHECKING:
    from xclaw.contracts.agents import Agent
    from xclaw.settings import Settings

NAME_CHARACTERS = 40


def fork(options: ForkOptions, shown: Shown) -> int:
    """Run the script to its end; answers the exit code."""
    from xclaw.cli.asking import attended
    from xclaw.cli.opening import run_to_end, settings_from

    fresh = f"fork-{secrets.token_hex(3)}"
    session_id = shown.session_id = fresh if options.session is None else checked_session(options.session)
    agent = script_agent(options)
    settings = attended(settings_from(options.overrides()))
    return run_to_end(_run(options, settings, agent, session_id, shown))


def script_agent(options: ForkOptions) -> "Agent":
    """The agent that the script is, for this run alone. Raises `UsageError` when there is no such file."""
    from xclaw.cli.opening import working_directory
    from xclaw.contracts.agents import Agent

    path = (working_directory() / options.script).resolve()
    if not path.is_file():
        raise UsageError(f"there is no script {str(path)!r}. Write: xclaw fork my_agent.py ARGUMENTS")
    name = re.sub(r"[^\w-]+", "-", path.stem).strip("-")[:NAME_CHARACTERS] or "script"
    return Agent(
        f"script-{name}",
        f"the script {path.name}",
        "You answer the questions of a program. Answer exactly what is asked, and nothing beside it.",
        tools=("delegate",),
        isolation="forked",
        script=(str(path), *(options.arguments or [])),
        source="python",
    )


async def _run(
    options: ForkOptions, settings: "Settings", agent: "Agent", session_id: str, shown: Shown
) -> int:
    from xclaw.app import open_app
    from xclaw.cli.opening import say_notices, usable_workspace
    from xclaw.cli.preparing import PreparationProgress
    from xclaw.cli.watching import Interrupts
    from xclaw.contracts.agents import Limits
    from xclaw.runtime.runs import RunRequest

    interrupts = Interrupts()
    interrupts.install()
    usable_workspace(settings)
    async with open_app(settings, PreparationProgress(), agents=[agent]) as app:
        await say_notices(app)
        request = RunRequest(
            options.task or " ".join((options.script, *(options.arguments or []))),
            session_id,
            agent.name,
            models=options.overrides().models or (),
            limits=Limits(None, options.timeout, options.budget_tokens, options.budget_usd),
        )
        handle = await app.runs.start(request)
        return await shown_run(app, handle, shown, interrupts)
