"""The command `xclaw`. Nothing heavy is imported before a command is known."""

import logging
import sys
from collections.abc import Callable
from typing import Annotated, Literal

import typer

from xclaw import __version__
from xclaw.cli.failures import INTERRUPTED, MISUSED, LogLines, Report, guarded, hold_interrupts
from xclaw.cli.fork_options import ForkOptions
from xclaw.cli.misuse import Misuse, made_plain
from xclaw.cli.options import (
    ApproveOptions,
    ChatOptions,
    ModeName,
    OutputFormat,
    RunOptions,
    SandboxName,
    ServeOptions,
    SessionsOptions,
    TeamOptions,
    TokenOptions,
    WorkspaceDir,
    takes,
)
from xclaw.cli.sandbox_options import SandboxOptions
from xclaw.cli.stored_options import KnowledgeOptions, MemoryOptions, ScratchpadOptions
from xclaw.cli.streams import prepare_streams
from xclaw.cli.workflow_options import WorkflowOptions
from xclaw.cli.worktrees_options import WorktreesOptions
from xclaw.runtime.collector import collect_less_often

app = typer.Typer(
    name="xclaw",
    help="Talk to an orchestrator that hands work to specialists. Without a command: chat.",
    epilog="Exit codes: 0 done, 1 failed, 2 wrong use or settings, 3 stopped by a limit, 130 interrupted.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

AsJson = Annotated[bool, typer.Option("--json", help="JSON instead of text.")]
RunId = Annotated[
    str | None,
    typer.Argument(help="A run's id, its beginning, or `last`.", metavar="RUN", show_default=False),
]


def _version(wanted: bool) -> None:
    if wanted:
        print(f"xclaw {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", "-V", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Options of `xclaw` itself."""


def _chat(options: ChatOptions) -> None:
    """Chat; what `xclaw` alone does. /help lists its commands."""
    from xclaw.cli.chat import chat

    _end(lambda: chat(options))


def _run(options: RunOptions) -> None:
    """Send one message and print the answer."""
    from xclaw.cli.run import Shown, run_once

    shown = Shown(options.output_format, options.quiet)
    _end(lambda: run_once(options, shown), shown.report)


def _fork(options: ForkOptions) -> None:
    """Run a Python script of yours as an agent. In a process of its own, with models, budget and trace."""
    from xclaw.cli.fork import fork
    from xclaw.cli.run import Shown

    shown = Shown(options.output_format, options.quiet)
    _end(lambda: fork(options, shown), shown.report)


def _workflow(options: WorkflowOptions) -> None:
    """Run a workflow script. Agents in loops and branches, resumable, held to a quote."""
    from xclaw.cli.run import Shown
    from xclaw.cli.workflow import run_workflow

    shown = Shown(options.output_format, options.quiet)
    _end(lambda: run_workflow(options, shown), shown.report)


def _serve(options: ServeOptions) -> None:
    """Be the gateway: answer every client of this home. Goes on until told to stop."""
    from xclaw.cli.serve import serve

    _end(lambda: serve(options), _report(options.as_json))


def _sessions(options: SessionsOptions) -> None:
    """List conversations; show, rename, export or delete one."""
    from xclaw.cli.sessions import sessions

    _end(lambda: sessions(options), _report(options.as_json))


def _team(options: TeamOptions) -> None:
    """The experts that stay with a conversation; let one forget."""
    from xclaw.cli.team import team

    _end(lambda: team(options), _report(options.as_json))


def _token(options: TokenOptions) -> None:
    """Tokens that let other users in; a new one is shown once. The owner's own is in a file."""
    from xclaw.cli.token import manage_tokens

    _end(lambda: manage_tokens(options), _report(options.as_json))


def _sandbox(options: SandboxOptions) -> None:
    """Which sandboxes work here; build virtual machines' image. Containers start from it, too."""
    from xclaw.cli.sandbox import sandbox

    _end(lambda: sandbox(options), _report(options.as_json))


def _approve(options: ApproveOptions) -> None:
    """List what agents ask to do, or answer one. Without an option that is a yes, once."""
    from xclaw.cli.approve import approve

    _end(lambda: approve(options), _report(options.as_json))


app.command("chat")(takes(ChatOptions, _chat))
app.command("run")(takes(RunOptions, _run))
app.command("fork", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})(
    takes(ForkOptions, _fork)
)
app.command("workflow")(takes(WorkflowOptions, _workflow))
app.command("serve")(takes(ServeOptions, _serve))
app.command("sessions")(takes(SessionsOptions, _sessions))
app.command("team")(takes(TeamOptions, _team))
app.command("token")(takes(TokenOptions, _token))
app.command("sandbox")(takes(SandboxOptions, _sandbox))
app.command("approve")(takes(ApproveOptions, _approve))


@app.command()
def resume(
    run: RunId = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All interrupted runs; what happens without RUN.")
    ] = False,
    workspace: WorkspaceDir = None,
    output_format: Annotated[
        OutputFormat, typer.Option("--output-format", "-o", help="What goes to standard output.")
    ] = "text",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only answers on standard output.")] = False,
    mode: ModeName = None,
    sandbox: SandboxName = None,
) -> None:
    """Go on with runs whose process died. Nothing that was finished is done again."""
    from xclaw.cli.resume import ResumeOptions
    from xclaw.cli.resume import resume as resume_runs
    from xclaw.cli.run import Shown

    if run is not None and everything:
        raise typer.BadParameter("name a run or --all, not both")
    shown = Shown(output_format, quiet)
    where = ResumeOptions(workspace, mode, sandbox)
    _end(lambda: resume_runs(run, where, shown), shown.report)


@app.command()
def trace(
    run: RunId = "last",
    endpoint: Annotated[
        str | None,
        typer.Argument(
            help="With --otlp: where to; else the settings say.", metavar="ENDPOINT", show_default=False
        ),
    ] = None,
    session: Annotated[
        str | None, typer.Option("--session", "-s", help="All runs of this session.", metavar="NAME")
    ] = None,
    prompts: Annotated[bool, typer.Option("--prompts", help="Everything that was said, in full.")] = False,
    otlp: Annotated[
        bool, typer.Option("--otlp", help="Export over OpenTelemetry instead; --prompts adds what was said.")
    ] = False,
    workspace: WorkspaceDir = None,
    as_json: AsJson = False,
) -> None:
    """Show what a run did: the tree and the timeline. With times, tokens and cost."""
    from xclaw.cli.trace import show_trace
    from xclaw.cli.trace_export import export_trace

    if otlp and as_json:
        raise typer.BadParameter("--otlp exports instead of printing; leave --json out")
    if otlp:
        _end(lambda: export_trace(run, endpoint, session, workspace, prompts=prompts))
    if endpoint is not None:
        raise typer.BadParameter("ENDPOINT goes with --otlp")
    _end(
        lambda: show_trace(run or "last", session, workspace, as_json=as_json, prompts=prompts),
        _report(as_json),
    )


@app.command()
def tasks(
    run: RunId = None,
    limit: Annotated[int, typer.Option(help="How many recent runs to list.", min=1, max=10_000)] = 20,
    workspace: WorkspaceDir = None,
    as_json: AsJson = False,
) -> None:
    """List open, interrupted and recent runs; or the steps of one."""
    from xclaw.cli.tasks import show_tasks

    _end(lambda: show_tasks(run, workspace, limit, as_json=as_json), _report(as_json))


@app.command()
def cancel(
    run: Annotated[str, typer.Argument(help="A run's id, its beginning, or `last`.", metavar="RUN")],
    reason: Annotated[str, typer.Option(help="Why; kept in the trace.")] = "cancelled by the user",
    workspace: WorkspaceDir = None,
    as_json: AsJson = False,
) -> None:
    """End a run and everything below it. In whichever process it is; shows how each ended."""
    from xclaw.cli.cancel import cancel as cancel_run

    _end(lambda: cancel_run(run, reason, workspace, as_json=as_json), _report(as_json))


@app.command()
def agents(
    name: Annotated[
        str | None, typer.Argument(help="Show this one in full.", metavar="NAME", show_default=False)
    ] = None,
    workspace: WorkspaceDir = None,
    as_json: AsJson = False,
) -> None:
    """List the agents, or show one."""
    from xclaw.cli.agents import show_agents

    _end(lambda: show_agents(name, workspace, as_json=as_json), _report(as_json))


@app.command()
def route(
    text: Annotated[
        str | None, typer.Argument(help="The request.", metavar="TEXT", show_default=False)
    ] = None,
    rules: Annotated[bool, typer.Option("--rules", help="Show the rules instead.")] = False,
    check: Annotated[
        str | None,
        typer.Option("--check", help="Route the labelled requests of this file; - is stdin.", metavar="FILE"),
    ] = None,
    workspace: WorkspaceDir = None,
    as_json: AsJson = False,
) -> None:
    """Explain who would answer a request. By which rule, by which words, and why no other."""
    from xclaw.cli import route as routing

    if (text is not None) + rules + (check is not None) != 1:
        raise typer.BadParameter("give one of TEXT, --rules and --check FILE")
    if check is not None:
        _end(lambda: routing.check(check, workspace, as_json=as_json), _report(as_json))
    if rules:
        _end(lambda: routing.show_rules(workspace, as_json=as_json), _report(as_json))
    _end(lambda: routing.explain(text or "", workspace, as_json=as_json), _report(as_json))


def _memory(options: MemoryOptions) -> None:
    """What agents remember across conversations; forget some of it."""
    from xclaw.cli.memory import show_memory

    _end(lambda: show_memory(options), _report(options.as_json))


def _worktrees(options: WorktreesOptions) -> None:
    """Private trees of your projects: list, show, publish, remove."""
    from xclaw.cli.worktrees import worktrees

    _end(lambda: worktrees(options), _report(options.as_json))


def _scratchpad(options: ScratchpadOptions) -> None:
    """Show what the agents of a conversation share. It is outside their context windows."""
    from xclaw.cli.scratchpad import show_scratchpad

    _end(lambda: show_scratchpad(options), _report(options.as_json))


def _kb(options: KnowledgeOptions) -> None:
    """The knowledge base: documents that agents can search. Text, Markdown, HTML and PDF."""
    from xclaw.cli.kb import work_on_knowledge

    _end(lambda: work_on_knowledge(options), _report(options.as_json))


app.command("memory")(takes(MemoryOptions, _memory))
app.command("worktrees")(takes(WorktreesOptions, _worktrees))
app.command("scratchpad")(takes(ScratchpadOptions, _scratchpad))
app.command("kb")(takes(KnowledgeOptions, _kb))


@app.command()
def doctor(workspace: WorkspaceDir = None, as_json: AsJson = False) -> None:
    """Check whether everything that is needed works. Nothing is spent."""
    from xclaw.cli.doctor import check

    _end(lambda: check(workspace, as_json=as_json), _report(as_json))


@app.command()
def config(
    action: Annotated[
        Literal["show", "path", "get"], typer.Argument(help="All values, the files, or one value.")
    ] = "show",
    key: Annotated[
        str | None, typer.Argument(help="For `get`: section.name", metavar="KEY", show_default=False)
    ] = None,
    workspace: WorkspaceDir = None,
    as_json: AsJson = False,
) -> None:
    """Show settings, each with where it came from. Secrets are not shown."""
    from xclaw.cli.config import show_config

    _end(lambda: show_config(action, key, workspace, as_json=as_json), _report(as_json))


def _end(body: Callable[[], int], report: Report | None = None) -> None:
    raise typer.Exit(guarded(body) if report is None else guarded(body, report))


def _report(as_json: bool) -> Report | None:
    from xclaw.cli.output import print_error

    return print_error if as_json else None


def report_of(arguments: list[str]) -> Report | None:
    """Who tells on standard output that arguments are wrong, where they ask for JSON."""
    if arguments[0] not in ("run", "resume", "workflow"):
        return _report("--json" in arguments)
    for name, value in zip(arguments, [*arguments[1:], ""], strict=True):
        wanted = value if name in ("-o", "--output-format") else name.removeprefix("--output-format=")
        if wanted == "json" or wanted == "stream-json":
            from xclaw.cli.run import Shown

            return Shown(wanted).report
    return None


def with_command(arguments: list[str]) -> list[str]:
    """Arguments with the command that they leave out: `run` when `-p` is there, else `chat`."""
    own = {"-h", "--help", "-V", "--version"}
    if arguments and (not arguments[0].startswith("-") or arguments[0] in own):
        return arguments
    return ["run" if {"-p", "--prompt"} & set(arguments) else "chat", *arguments]


def main() -> None:
    """The entry point. Exits the process."""
    hold_interrupts()
    collect_less_often()  # also while a command's modules are loaded, a tenth of which is collecting
    prepare_streams()
    logging.getLogger().addHandler(LogLines())
    arguments = with_command(sys.argv[1:])
    try:
        sys.exit(app(args=arguments, prog_name="xclaw", standalone_mode=False))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception as failure:
        error = failure
        if not isinstance(error, Misuse):
            raise
        made_plain(error, arguments)
        error.show()
        report = report_of(arguments)
        sys.exit(guarded(lambda: _reported_misuse(error, report)))


def _reported_misuse(error: Misuse, report: Report | None) -> int:
    if report is not None:
        report("error", error.format_message())
    return MISUSED
