"""Options of `xclaw worktrees`."""

from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from xclaw.cli.options import WorkspaceDir


@dataclass(frozen=True)
class WorktreesOptions:
    """What `xclaw worktrees` takes."""

    action: Annotated[
        Literal["list", "show", "patch", "publish", "remove"],
        typer.Argument(
            help="All of them; the commits of one; its patch; make it a branch of your repository; remove its files."
        ),
    ] = "list"
    name: Annotated[
        str | None,
        typer.Argument(help="A branch, a run's id, or its beginning.", metavar="NAME", show_default=False),
    ] = None
    force: Annotated[
        bool, typer.Option("--force", help="With `remove`: also what was not committed is lost.")
    ] = False
    workspace: WorkspaceDir = None
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of text.")] = False
