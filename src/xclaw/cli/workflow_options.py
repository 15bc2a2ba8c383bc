"""The options of `xclaw workflow`."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from xclaw.cli.options import (
    BudgetTokens,
    BudgetUsd,
    ModeName,
    OutputFormat,
    ProjectDir,
    SandboxName,
    SessionName,
    Timeout,
    WorkerTimeout,
    WorkspaceDir,
    chain_of,
)

if TYPE_CHECKING:
    from xclaw.settings import Overrides


@dataclass(frozen=True)
class WorkflowOptions:
    """What `xclaw workflow` takes."""

    action: Annotated[Literal["run"], typer.Argument(help="Run a script.")]
    file: Annotated[str, typer.Argument(help="The script.", metavar="FILE")]
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check it and say what it would be asked for; start nothing.")
    ] = False
    resume: Annotated[
        str | None,
        typer.Option("--resume", help="Take what was asked the same from this earlier run.", metavar="RUN"),
    ] = None
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask whether it may run.")] = False
    max_agents: Annotated[int | None, typer.Option(help="Agents that it may start.", metavar="N", min=1)] = (
        None
    )
    max_usd: Annotated[
        float | None, typer.Option(help="Money for all its agents together.", metavar="USD", min=0.000001)
    ] = None
    max_tokens: Annotated[
        int | None, typer.Option(help="Tokens for all its agents together.", metavar="N", min=1)
    ] = None
    model: Annotated[
        list[str],
        typer.Option(
            "--model", "-m", help="PROVIDER:MODEL for its agents; repeat it for a chain.", metavar="MODEL"
        ),
    ] = field(default_factory=list[str])
    workspace: WorkspaceDir = None
    session: SessionName = None
    budget_usd: BudgetUsd = None
    budget_tokens: BudgetTokens = None
    timeout: Timeout = None
    worker_timeout: WorkerTimeout = None
    mode: ModeName = None
    sandbox: SandboxName = None
    project: ProjectDir = None
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
            worker_timeout_s=self.worker_timeout,
            mode=self.mode,
            sandbox=self.sandbox,
            project=self.project,
        )

    def quote(self) -> dict[str, object]:
        """What was declared."""
        declared: dict[str, object] = {
            "max_agents": self.max_agents,
            "max_usd": self.max_usd,
            "max_tokens": self.max_tokens,
        }
        return {name: value for name, value in declared.items() if value is not None}

    def quote_arguments(self) -> dict[str, object]:
        """The tool's arguments beside the script."""
        quote = self.quote()
        return {"quote": quote} if quote else {}
