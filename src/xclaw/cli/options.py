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

Models = Annotated[
    list[str],
    typer.Option("--model", "-m", help="PROVIDER:MODEL; repeat it for a fallback chain.", metavar="MODEL"),
]
WorkspaceDir = Annotated[
    str | None,
    typer.Option("--workspace", "-w", help="Where files and the database live.", metavar="DIR"),
]
SessionName = Annotated[
    str | None,
    typer.Option("--session", "-s", help="The conversation to go on with, or to begin.", metavar="NAME"),
]
BudgetUsd = Annotated[
    float | None, typer.Option(help="Money for the run and its workers.", metavar="USD", min=0)
]
BudgetTokens = Annotated[
    int | None, typer.Option(help="Tokens for the run and its workers.", metavar="N", min=0)
]
Timeout = Annotated[
    float | None, typer.Option(help="Seconds until the run is stopped.", metavar="SECONDS", min=0.001)
]
WorkerTimeout = Annotated[
    float | None, typer.Option(help="Seconds until one worker is stopped.", metavar="SECONDS", min=0.001)
]
DialectName = Annotated[
    Literal["native", "json"] | None,
    typer.Option(help="How tools are called. Default: what the model is best at."),
]
AllowShell = Annotated[
    bool,
    typer.Option(
        "--allow-shell", help="Let agents run commands without asking; in host mode without a sandbox."
    ),
]
ModeName = Annotated[
    Literal["host", "full"] | None,
    typer.Option("--mode", help="full: every command of an agent runs in a sandbox. Default: host."),
]
SandboxName = Annotated[
    Literal["auto", "host", "bubblewrap", "kvm", "tcg", "container"] | None,
    typer.Option("--sandbox", help="What the sandbox is made by; implies --mode full. See `xclaw doctor`."),
]
WithCoordinator = Annotated[
    bool,
    typer.Option("--coordinator", help="Research, plan, implement and verify, instead of the orchestrator."),
]


ProjectDir = Annotated[
    str | None,
    typer.Option(
        "--project", help="Your directory to work on; changes come back as a branch.", metavar="DIR"
    ),
]


@dataclass(frozen=True)
class WorkOptions:
    """What every command that starts work takes."""

    agent: Annotated[
        str | None,
        typer.Option(
            "--agent",
            "-a",
            help="Who gets the message; without it the router decides. See `xclaw agents`.",
            metavar="NAME",
        ),
    ] = None
    model: Models = field(default_factory=list[str])
    workspace: WorkspaceDir = None
    session: SessionName = None
    budget_usd: BudgetUsd = None
    budget_tokens: BudgetTokens = None
    max_turns: Annotated[
        int | None, typer.Option(help="Model calls of the run itself.", metavar="N", min=1)
    ] = None
    timeout: Timeout = None
    worker_timeout: WorkerTimeout = None
    dialect: DialectName = None
    allow_shell: AllowShell = False
    mode: ModeName = None
    sandbox: SandboxName = None
    project: ProjectDir = None
    coordinator: WithCoordinator = False

    def overrides(self) -> "Overrides":
        from xclaw.settings import Overrides

        return Overrides(
            models=chain_of(self.model) or None,
            workspace=self.workspace,
            budget_usd=self.budget_usd,
            budget_tokens=self.budget_tokens,
            timeout_s=self.timeout,
            worker_timeout_s=self.worker_timeout,
            dialect=self.dialect,
            allow_shell=True if self.allow_shell else None,
            mode=self.mode,
            sandbox=self.sandbox,
            project=self.project,
            coordinator=True if self.coordinator else None,
        )


def chain_of(given: list[str]) -> tuple[str, ...]:
    """The models that `--model` names, repeated or with commas. Raises `UsageError` for one that names none."""
    models = tuple(part for text in given for part in text.split(",") if part.strip())
    if given and not models:
        from xclaw.contracts.errors import UsageError

        raise UsageError(f"--model {given[0]!r} names no model. Write PROVIDER:MODEL, or leave it out.")
    return models


@dataclass(frozen=True)
class ChatOptions(WorkOptions):
    """What `xclaw chat` takes."""

    gateway: Annotated[
        str | None,
        typer.Option(
            "--gateway", help="Talk to this one; XCLAW_GATEWAY_TOKEN holds its token.", metavar="URL"
        ),
    ] = None


@dataclass(frozen=True)
class ServeOptions:
    """What `xclaw serve` takes."""

    host: Annotated[
        str | None, typer.Option(help="The address to listen on. Default: 127.0.0.1.", metavar="ADDRESS")
    ] = None
    port: Annotated[
        int | None, typer.Option(help="0 takes any free one. Default: 8763.", metavar="N", min=0, max=65535)
    ] = None
    model: Annotated[
        list[str],
        typer.Option("--model", "-m", help="PROVIDER:MODEL where a message names none.", metavar="MODEL"),
    ] = field(default_factory=list[str])
    workspace: WorkspaceDir = None
    worker_timeout: WorkerTimeout = None
    dialect: DialectName = None
    allow_shell: AllowShell = False
    mode: ModeName = None
    sandbox: SandboxName = None
    project: ProjectDir = None
    coordinator: WithCoordinator = False
    channel: Annotated[
        list[str],
        typer.Option(
            "--channel", help="A channel of your own, MODULE:FACTORY; repeat it for more.", metavar="NAME"
        ),
    ] = field(default_factory=list[str])
    idle_exit: Annotated[
        float | None,
        typer.Option(
            "--idle-exit",
            help="Stop when there was neither client nor run for so long.",
            metavar="SECONDS",
            min=0.1,
        ),
    ] = None
    background: Annotated[
        bool, typer.Option("--background", help="Start it, wait until it is ready, and leave it running.")
    ] = False
    stop: Annotated[bool, typer.Option("--stop", help="Stop the one of this home.")] = False
    status: Annotated[bool, typer.Option("--status", help="Say whether one runs, and where.")] = False
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show workers and tool calls too.")] = False
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of text.")] = False

    def overrides(self) -> "Overrides":
        from xclaw.settings import Overrides

        return Overrides(
            models=chain_of(self.model) or None,
            workspace=self.workspace,
            worker_timeout_s=self.worker_timeout,
            dialect=self.dialect,
            allow_shell=True if self.allow_shell else None,
            mode=self.mode,
            sandbox=self.sandbox,
            project=self.project,
            coordinator=True if self.coordinator else None,
            host=self.host,
            port=self.port,
        )


@dataclass(frozen=True)
class SessionsOptions:
    """What `xclaw sessions` takes."""

    action: Annotated[
        Literal["list", "show", "rename", "export", "delete"],
        typer.Argument(help="What to do; `delete` is for good."),
    ] = "list"
    name: Annotated[str | None, typer.Argument(help="The session.", metavar="NAME", show_default=False)] = (
        None
    )
    title: Annotated[
        list[str] | None, typer.Argument(help="For `rename`.", metavar="TITLE", show_default=False)
    ] = None
    limit: Annotated[int, typer.Option(help="How many to list.", min=1, max=500)] = 50
    workspace: WorkspaceDir = None
    as_json: Annotated[
        bool, typer.Option("--json", help="JSON instead of text; of `export`, JSON lines.")
    ] = False


@dataclass(frozen=True)
class TeamOptions:
    """What `xclaw team` takes."""

    session: Annotated[
        str | None, typer.Option("--session", "-s", help="The conversation. Default: cli.", metavar="NAME")
    ] = None
    reset: Annotated[str | None, typer.Option("--reset", help="Let this expert forget.", metavar="AGENT")] = (
        None
    )
    workspace: WorkspaceDir = None
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of text.")] = False


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


@dataclass(frozen=True)
class TokenOptions:
    """What `xclaw token` takes."""

    action: Annotated[
        Literal["list", "add", "revoke"], typer.Argument(help="Show all, give one out, or end some.")
    ] = "list"
    name: Annotated[
        str | None,
        typer.Argument(
            help="For `add` a user; for `revoke` a token's id, or a user.", metavar="NAME", show_default=False
        ),
    ] = None
    scope: Annotated[
        str | None,
        typer.Option(
            help="What it may do: chat (alone if not given), approve, admin; with commas.", metavar="SCOPES"
        ),
    ] = None
    expires: Annotated[
        float | None, typer.Option(help="It ends after so many days.", metavar="DAYS", min=0)
    ] = None
    note: Annotated[str | None, typer.Option(help="What it is for.", metavar="TEXT")] = None
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of text.")] = False


@dataclass(frozen=True)
class ApproveOptions:
    """What `xclaw approve` takes."""

    approval: Annotated[
        str | None,
        typer.Argument(
            help="An approval's id or its beginning; none: list.", metavar="ID", show_default=False
        ),
    ] = None
    session: Annotated[bool, typer.Option("--session", help="Yes, and the like in this conversation.")] = (
        False
    )
    always: Annotated[bool, typer.Option("--always", help="Yes, and the like from now on.")] = False
    deny: Annotated[str | None, typer.Option(help="No; the agent is told why.", metavar="REASON")] = None
    edit: Annotated[str | None, typer.Option(help="Run it with these arguments instead.", metavar="JSON")] = (
        None
    )
    rule: Annotated[
        str | None,
        typer.Option(help="With --session or --always: allow this, not only that call.", metavar="RULE"),
    ] = None
    workspace: WorkspaceDir = None
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of text.")] = False


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
