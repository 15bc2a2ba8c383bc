"""The options of `xclaw workflow`."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from xclaw.cli.options import OutputFormat, chain_of

if TYPE_CHECKING:
    from xclaw.settings import Overrides


def _none() -> list[str]:
    return []


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
    ] = field(default_factory=_none)
    workspace: Annotated[
        str | None,
        typer.Option("--workspace", "-w", help="Where files and the database live.", metavar="DIR"),
    ] = None
    session: Annotated[
        str | None,
        typer.Option("--session", "-s", help="The conversation to go on with, or to begin.", metavar="NAME"),
    ] = None
    budget_usd: Annotated[
        float | None, typer.Option(help="Money for the run and its workers.", metavar="USD", min=0)
    ] = None
    budget_tokens: Annotated[
        int | None, typer.Option(help="Tokens for the run and its workers.", metavar="N", min=0)
    ] = None
    timeout: Annotated[
        float | None, typer.Option(help="Seconds until the run is stopped.", metavar="SECONDS", min=0.001)
    ] = None
    worker_timeout: Annotated[
        float | None, typer.Option(help="Seconds until one worker is stopped.", metavar="SECONDS", min=0.001)
    ] = None
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
