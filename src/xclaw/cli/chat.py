"""`xclaw` alone: a conversation, message by message."""

import concurrent.futures
import difflib
import secrets
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from xclaw.cli.background import BackgroundApp
from xclaw.cli.failures import DONE, INTERRUPTED, READER_GONE, complain, exit_code_of, guarded
from xclaw.cli.keyboard import Keyboard
from xclaw.cli.options import WorkOptions
from xclaw.cli.run import checked_session, request_of
from xclaw.cli.text import money, printable, tokens
from xclaw.contracts.usage import Spend

if TYPE_CHECKING:
    from xclaw.app import App
    from xclaw.cli.watching import Interrupts
    from xclaw.contracts.results import Result

COMMANDS = {
    "/help": "this list",
    "/agents": "who can be handed work",
    "/tasks": "runs that are open, interrupted or recent",
    "/trace": "what the last message did",
    "/cost": "what this chat has used",
    "/new": "begin a new session",
    "/quit": "leave",
}


def chat(options: WorkOptions) -> int:
    """Answer messages until the input ends; answers the exit code.

    That is the code of the last message that did not succeed, when messages are piped in.
    """
    from xclaw.cli.opening import say_notices, settings_from

    session_id = checked_session("cli" if options.session is None else options.session)
    settings = settings_from(options.overrides())
    keyboard = Keyboard(settings.home)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    with BackgroundApp(settings) as background:
        background.call(say_notices)
        conversation = Conversation(background, options, session_id)
        if keyboard.interactive:
            print(f"xclaw, session {printable(session_id)}. /help lists commands, /quit leaves.")
        for message in keyboard.messages():
            if not conversation.take(message):
                break
    return DONE if keyboard.interactive else conversation.code


def _leave(_number: int, _frame: FrameType | None) -> None:
    """SIGTERM, or the terminal went away: leave by the way that closes everything."""
    sys.exit(INTERRUPTED)


class Conversation:
    """One chat: its session, its last run, and what it has spent."""

    def __init__(self, background: BackgroundApp, options: WorkOptions, session_id: str) -> None:
        self._background = background
        self._options = options
        self._session_id = session_id
        self._last_run = ""
        self._spend = Spend()
        self._presses = 0
        self._interrupts: Interrupts | None = None
        """Set while a run goes on."""
        self.code = DONE
        """The exit code of the last message that did not succeed."""

    def take(self, message: str) -> bool:
        """Answer a message or obey a command; false when the chat is over."""
        if message.startswith("//"):
            return self._noted(lambda: self._send(message[1:]))
        if message.startswith("/"):
            word = message.split(maxsplit=1)[0].lower()
            if word in ("/quit", "/exit"):
                return False
            return self._noted(lambda: self._command(word))
        return self._noted(lambda: self._send(message))

    def _noted(self, body: Callable[[], int]) -> bool:
        """Do it, remember a code that is not 0; an error is shown and does not end the chat."""
        code = guarded(body)
        self.code = code or self.code
        return code != READER_GONE

    def _send(self, text: str) -> int:
        from xclaw.cli.attachments import with_files

        whole = with_files(text, Path.cwd(), complain)
        self._presses = 0
        future = self._background.start(lambda app: self._ask(app, whole))
        while True:
            try:
                result = future.result()
            except KeyboardInterrupt:
                self._interrupt(future)
            except concurrent.futures.CancelledError:
                complain("interrupted before the run began")
                return INTERRUPTED
            else:
                self._spend += result.spend
                return exit_code_of(result.outcome)

    def _interrupt(self, future: "concurrent.futures.Future[Result]") -> None:
        """Ctrl-C: the first ends the run, or the wait for it; the second leaves the chat."""
        self._presses += 1
        if self._presses > 1:
            sys.exit(INTERRUPTED)
        if self._interrupts is not None:
            self._background.soon(self._interrupts.interrupt)
        else:
            future.cancel()

    async def _ask(self, app: "App", text: str) -> "Result":
        from xclaw.cli.text import one_line
        from xclaw.cli.watching import Interrupts, followed, watcher_for

        interrupts = Interrupts()
        try:
            handle = await app.runs.start(request_of(self._options, text, self._session_id))
            self._interrupts = interrupts
            self._last_run = handle.root_id
            watcher = watcher_for("text")
            result = await followed(handle, watcher, interrupts)
            watcher.finish(result)
        finally:
            self._interrupts = None
        if watcher.closed:
            raise BrokenPipeError
        if result.outcome != "success":
            reason = f": {one_line(result.reason, 500)}" if result.reason else ""
            complain(f"the run ended as {result.outcome}{reason}")
        return result

    def _command(self, word: str) -> int:
        match word:
            case "/help":
                for name, what in COMMANDS.items():
                    print(f"{name:8} {what}")
                print("Ctrl-C stops a run and keeps what it did. @path appends a file. // begins a /message.")
            case "/agents":
                self._background.call(_print_agents)
            case "/tasks":
                self._background.call(_print_tasks)
            case "/trace":
                self._trace()
            case "/cost":
                usage = self._spend.usage
                total = tokens(usage.total_tokens, estimated=usage.estimated)
                print(f"{total} tokens, {money(self._spend.cost_usd)}, {self._spend.calls} model calls")
            case "/new":
                self._session_id = f"chat-{secrets.token_hex(3)}"
                print(f"new session {self._session_id}")
            case _:
                close = difflib.get_close_matches(word, COMMANDS, n=1)
                hint = f"did you mean {close[0]}?" if close else "/help lists them."
                complain(f"there is no command {word}; {hint} To send it as a message, write /{word}")
        return DONE

    def _trace(self) -> None:
        run_id = self._last_run
        if not run_id:
            print("nothing has run in this chat yet")
            return

        async def body(app: "App") -> None:
            from xclaw.cli.trace import print_trace

            print_trace(await app.journal.read_tree(run_id))

        self._background.call(body)


async def _print_agents(app: "App") -> None:
    from xclaw.cli.agents import print_list

    print_list(list(app.agents))


async def _print_tasks(app: "App") -> None:
    from xclaw.cli.tasks import list_runs

    await list_runs(app, 20)
