"""Command-line options as one object per command, instead of a function with twenty parameters."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, cast

import typer

if TYPE_CHECKING:
    from xclaw.settings import Overrides

Options = TypeVar("Options")
OutputFormat = Literal["text", "json", "stream-json"]


def _none() -> list[str]:
    return []


@dataclass(frozen=True)
class WorkOptions:
    """What every command that starts work takes."""

    agent: Annotated[
        str, typer.Option("--agent", "-a", help="Who gets the message. See `xclaw agents`.", metavar="NAME")
    ] = "orchestrator"
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
    max_turns: Annotated[
        int | None, typer.Option(help="Model calls of the run itself.", metavar="N", min=1)
    ] = None
    timeout: Annotated[
        float | None, typer.Option(help="Seconds until the run is stopped.", metavar="SECONDS", min=0.001)
    ] = None
    worker_timeout: Annotated[
        float | None, typer.Option(help="Seconds until one worker is stopped.", metavar="SECONDS", min=0.001)
    ] = None
    dialect: Annotated[
        Literal["native", "json"] | None,
        typer.Option(help="How tools are called. Default: what the model is best at."),
    ] = None
    allow_shell: Annotated[
        bool, typer.Option("--allow-shell", help="Let agents run commands, without a sandbox.")
    ] = False

    def overrides(self) -> "Overrides":
        from xclaw.contracts.errors import UsageError
        from xclaw.settings import Overrides

        models = tuple(part for text in self.model for part in text.split(",") if part.strip())
        if self.model and not models:
            raise UsageError(
                f"--model {self.model[0]!r} names no model. Write PROVIDER:MODEL, or leave it out."
            )
        return Overrides(
            models=models or None,
            workspace=self.workspace,
            budget_usd=self.budget_usd,
            budget_tokens=self.budget_tokens,
            timeout_s=self.timeout,
            worker_timeout_s=self.worker_timeout,
            dialect=self.dialect,
            allow_shell=True if self.allow_shell else None,
        )


@dataclass(frozen=True)
class RunOptions(WorkOptions):
    """What `xclaw run` takes."""

    text: Annotated[
        list[str] | None,
        typer.Argument(
            help="The message. `@path` appends that file; piped input is appended too; `-` stands for it.",
            metavar="TEXT",
            show_default=False,
        ),
    ] = None
    prompt: Annotated[
        bool, typer.Option("--prompt", "-p", help="Answer TEXT and exit; what `run` does anyway.")
    ] = False
    output_format: Annotated[
        OutputFormat, typer.Option("--output-format", "-o", help="What goes to standard output.")
    ] = "text"
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Only the answer on standard output, progress on stderr.")
    ] = False


def takes(options: type[Options], command: Callable[[Options], None]) -> Callable[..., None]:
    """A Typer command whose options are the fields of `options`."""

    def run(**given: object) -> None:
        command(cast("Any", options)(**given))

    run.__doc__ = command.__doc__
    run.__name__ = command.__name__
    parameters = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, default=_default(options, parameter))
        for parameter in inspect.signature(options).parameters.values()
    ]
    cast("Any", run).__signature__ = inspect.Signature(parameters)
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _default(options: type, parameter: inspect.Parameter) -> object:
    """A field made by a factory has the factory's product as its default."""
    described = cast("Any", options).__dataclass_fields__[parameter.name]
    made = described.default_factory
    return made() if callable(made) else parameter.default
