"""`xclaw run`: one message, one answer."""

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from xclaw.cli.failures import READER_GONE, complain, exit_code_of
from xclaw.cli.options import OutputFormat, RunOptions, WorkOptions
from xclaw.contracts.errors import UsageError

if TYPE_CHECKING:
    from xclaw.app import App
    from xclaw.cli.watching import Interrupts
    from xclaw.contracts.events import Entry
    from xclaw.contracts.results import Outcome, Result
    from xclaw.runtime.runs import RunHandle, RunRequest
    from xclaw.settings import Settings

MAX_SESSION_CHARACTERS = 200


@dataclass(slots=True)
class Shown:
    """How a run is shown, and whether its result object was printed: in the JSON formats each run has
    exactly one, however it ends."""

    output_format: OutputFormat = "text"
    quiet: bool = False
    session_id: str | None = None
    answered: bool = False

    def report(self, outcome: "Outcome", reason: str) -> None:
        """Print the result object of a run that never began or never ended."""
        if self.output_format == "text" or self.answered:
            return
        from xclaw.cli.output import print_json, result_json
        from xclaw.contracts.results import Result

        self.answered = True
        result = Result(outcome, reason=reason)
        print_json(result_json(result, session_id=self.session_id, run_id=None, artifacts=()))


def run_once(options: RunOptions, shown: Shown) -> int:
    """Send one message; answers the exit code."""
    from xclaw.cli.asking import attended
    from xclaw.cli.opening import run_to_end, settings_from, working_directory

    fresh = f"run-{secrets.token_hex(3)}"
    session_id = shown.session_id = fresh if options.session is None else checked_session(options.session)
    text = message_of(options.text or [], working_directory())
    settings = attended(settings_from(options.overrides()))
    return run_to_end(_run(options, settings, text, session_id, shown))


def message_of(words: list[str], cwd: Path) -> str:
    """The message: the words, the files they name, and piped input. Raises `UsageError`."""
    from xclaw.cli.attachments import block, piped_input, with_files

    dash = "-" in words
    written = " ".join(word for word in words if word != "-").encode("utf-8", "replace").decode("utf-8")
    piped = piped_input(wait=dash or not written.strip(), note=complain)
    text = with_files(written, cwd, complain) if written.strip() else ""
    if piped and piped.strip():
        text = f"{text}\n\n{block('Standard input', piped)}" if text else piped
    if not text.strip():
        raise UsageError('the message is empty. Write it: xclaw run "...", or pipe it in.')
    return text


async def routed_request(app: "App", options: WorkOptions, text: str, session: str) -> "RunRequest":
    """The request for a message that comes in without a gateway: routed, and in its session, as one would.

    Raises `UsageError` for an unknown agent.
    """
    from xclaw.contracts.agents import Limits
    from xclaw.contracts.messages import Message
    from xclaw.contracts.users import OWNER
    from xclaw.gateway.reception import conversation_row, new_message_id, routed, session_of

    route, text = await routed(text, options.agent or "", app.router, app.agents)
    message = Message(new_message_id(), session, "cli", text, time.time())
    request, session_id, role = session_of(message, route, text, app.agents)
    row = conversation_row(session, OWNER, message.channel)
    await app.journal.sessions.open_session(replace(row, session_id=session_id, role=role))
    return replace(
        request,
        models=options.overrides().models or (),
        limits=Limits(options.max_turns, options.timeout, options.budget_tokens, options.budget_usd),
        dialect=options.dialect,
        worker_timeout_s=options.worker_timeout,
    )


def checked_session(name: str) -> str:
    """A session name that can be shown and typed. Raises `UsageError`."""
    if not name.strip() or not name.isprintable() or len(name) > MAX_SESSION_CHARACTERS or ":" in name:
        raise UsageError(
            f"--session {name[:60]!r}: a session's name is 1 to {MAX_SESSION_CHARACTERS} printable characters, "
            "without a colon."
        )
    return name


async def _run(options: RunOptions, settings: "Settings", text: str, session_id: str, shown: Shown) -> int:
    from xclaw.cli.opening import opened, say_notices
    from xclaw.cli.watching import Interrupts

    interrupts = Interrupts()
    interrupts.install()
    async with opened(settings) as app:
        await say_notices(app)
        handle = await app.runs.start(await routed_request(app, options, text, session_id))
        return await shown_run(app, handle, shown, interrupts)


async def shown_run(
    app: "App",
    handle: "RunHandle",
    shown: Shown,
    interrupts: "Interrupts",
    before: Sequence["Entry"] = (),
) -> int:
    """Show a run that goes on until its end, then its result; answers the exit code.

    `before` is what happened in its tree before this process took it up.
    """
    from xclaw.cli.asking import HeldWatcher, asking, somebody_is_there
    from xclaw.cli.project_lines import project_lines
    from xclaw.cli.watching import followed, watcher_for

    asks = shown.output_format == "text" and somebody_is_there()
    watcher = HeldWatcher(watcher_for(shown.output_format, quiet=shown.quiet), asks=asks)
    watcher.learn(before)
    async with asking(app, handle, watcher):
        result = await followed(handle, watcher, interrupts)
    watcher.finish(result)
    entries = await app.journal.read_tree(handle.root_id)
    _print_result(result, shown.session_id or handle.session_id, handle.root_id, entries, shown)
    if shown.output_format == "text":
        for line in await project_lines(app, entries, result):
            complain(line)
    return READER_GONE if watcher.closed else exit_code_of(result.outcome)


def _print_result(
    result: "Result", session_id: str, run_id: str, entries: Sequence["Entry"], shown: Shown
) -> None:
    from xclaw.cli.output import print_json, result_json, route_json
    from xclaw.cli.text import one_line, printable
    from xclaw.traces.tree import trace_trees

    nodes = [node for tree in trace_trees(entries) for node in tree.walk()]
    if shown.output_format != "text":
        shown.answered = True
        artifacts = {pointer.path: pointer for node in nodes for pointer in node.artifacts}.values()
        scripted = any(node.scripted for node in nodes)
        form = result_json(
            result, session_id=session_id, run_id=run_id, artifacts=artifacts, scripted=scripted
        )
        print_json({**form, **route_json(entries)})
    elif shown.quiet and result.text.strip():
        print(printable(result.text).rstrip("\n"), flush=True)
    if result.outcome != "success":
        reason = f": {one_line(result.reason, 500).rstrip('.')}" if result.reason else ""
        complain(f"the run ended as {result.outcome}{reason}. Details: xclaw trace {run_id}")
