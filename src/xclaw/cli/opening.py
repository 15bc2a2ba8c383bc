"""From options to an open app: settings, notices, and which run a user means."""

import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from xclaw.cli.failures import complain
from xclaw.cli.preparing import PreparationProgress
from xclaw.contracts.errors import UsageError
from xclaw.contracts.journal import Journal, RunRow
from xclaw.settings import Overrides, Settings, load_settings

if TYPE_CHECKING:
    from xclaw.app import App

SEARCHED_RUNS = 10_000


def working_directory() -> Path:
    """Raises `UsageError` when it was deleted."""
    try:
        return Path.cwd()
    except OSError as error:
        raise UsageError(f"the working directory is gone ({error.strerror}). Change to another.") from None


def settings_from(overrides: Overrides) -> Settings:
    """The settings of this process. Raises `UsageError`."""
    return load_settings(cwd=working_directory(), env=os.environ, overrides=overrides)


def settings_of_workspace(workspace: str | None) -> Settings:
    return settings_from(Overrides(workspace=workspace))


@asynccontextmanager
async def opened(settings: Settings) -> AsyncGenerator["App"]:
    """The app, as long as the block lasts. Raises `UsageError` when its workspace cannot be used."""
    from xclaw.app import open_app

    usable_workspace(settings)
    async with open_app(settings, PreparationProgress()) as app:
        yield app


def usable_workspace(settings: Settings) -> None:
    """Make the workspace if it is not there. Raises `UsageError` when it cannot be used."""
    root = Path(settings.workspace.root)
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"the workspace {root} cannot be made: {error.strerror}. "
            "Name another with --workspace or XCLAW_WORKSPACE."
        ) from None
    if not os.access(root, os.W_OK | os.X_OK):
        raise UsageError(
            f"the workspace {root} cannot be written to. Name another with --workspace or XCLAW_WORKSPACE."
        )


def with_app(settings: Settings, body: Callable[["App"], Awaitable[int]]) -> int:
    """Open the app, run `body` in it, close it; answers the exit code."""

    async def main() -> int:
        async with opened(settings) as app:
            return await body(app)

    return run_to_end(main())


def run_to_end(main: Coroutine[None, None, int]) -> int:
    """Run a command's coroutine; being cancelled by an interrupt is a `KeyboardInterrupt` outside."""
    import asyncio

    try:
        return asyncio.run(main)
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


async def say_notices(app: "App") -> None:
    """What the user should know before work starts, on stderr."""
    for warning in app.warnings:
        complain(f"warning: {warning}")
    interrupted = len(await app.runs.interrupted())
    if interrupted:
        runs = "run" if interrupted == 1 else "runs"
        print(f"{interrupted} interrupted {runs}: xclaw resume", file=sys.stderr)


async def find_run(journal: Journal, wanted: str) -> RunRow:
    """The run with this id, the only one whose id begins so, or the `last` root.

    Raises:
        UsageError: there is none, or there are several.
    """
    if wanted == "last":
        rows = await journal.runs(roots_only=True, limit=1)
        if not rows:
            raise UsageError('there are no runs yet. Start one: xclaw run "..."')
        return rows[0]
    row = await journal.run_row(wanted)
    if row is not None:
        return row
    rows = await journal.runs(limit=SEARCHED_RUNS)
    found = [row for row in rows if wanted and row.run_id.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        some = ", ".join(row.run_id for row in found[:5])
        raise UsageError(f"{len(found)} runs begin with {wanted!r}: {some}. Write more of the id.")
    raise UsageError(f"there is no run {wanted!r}. `xclaw tasks` lists them.")
