"""The options of `xclaw fork`."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from xclaw.cli.options import OutputFormat, chain_of

if TYPE_CHECKING:
    from xclaw.settings import Overrides


def _none() -> list[str]:
    return []


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
    model: Annotated[
        list[str],
        typer.Option(
            "--model", "-m", help="PROVIDER:MODEL; repeat it for a fallback chain.", metavar="MODEL"
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
