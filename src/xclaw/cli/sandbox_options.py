"""The options of `xclaw sandbox`."""

from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from xclaw.cli.options import WorkspaceDir


@dataclass(frozen=True)
class SandboxOptions:
    """What `xclaw sandbox` takes."""

    action: Annotated[
        Literal["doctor", "build"],
        typer.Argument(help="Try every kind of sandbox, or build the image of virtual machines."),
    ] = "doctor"
    workspace: WorkspaceDir = None
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of text.")] = False
