"""The options of `xclaw fork`."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from xclaw.cli.options import (
    BudgetTokens,
    BudgetUsd,
    Models,
    OutputFormat,
    SessionName,
    Timeout,
    WorkspaceDir,
    chain_of,
)

if TYPE_CHECKING:
    from xclaw.settings import Overrides


@dataclass(frozen=True)
class ForkOptions:
    """What `xclaw fork` takes. Everything after the script is the script's."""

    script: Annotated[str, typer.Argument(help="A Python file of yours.", metavar="SCRIPT")]
    arguments: Annotated[
        list[str] | None,
        typer.Argument(help="For the script, options too.", metavar="[ARGUMENT]...", show_default=False),
    ] = None
    task: Annotated[
        str | None, typer.Option("--task", "-t", help="What the script is asked.", metavar="TEXT")
    ] = None
    model: Models = field(default_factory=list[str])
    workspace: WorkspaceDir = None
    session: SessionName = None
    budget_usd: BudgetUsd = None
    budget_tokens: BudgetTokens = None
    timeout: Timeout = None
    output_format: Annotated[
        OutputFormat, typer.Option("--output-format", "-o", help="What goes to standard output.")
    ] = "text"
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Only the answer on standard output, progress on stderr.")
    ] = False

    def overrides(self) -> "Overrides":
        from xclaw.settings import Overrides

        return Overrides(
            models=chain_of(self.model) or None,
            workspace=self.workspace,
            budget_usd=self.budget_usd,
            budget_tokens=self.budget_tokens,
            timeout_s=self.timeout,
        )
