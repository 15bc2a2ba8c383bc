"""`xclaw` alone: a conversation, message by message, as a client of a gateway."""

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING

from xclaw.cli.failures import DONE, INTERRUPTED, complain
from xclaw.cli.keyboard import AbovePrompt, Keyboard
from xclaw.cli.options import ChatOptions
from xclaw.cli.output import Lines
from xclaw.cli.run import checked_session
from xclaw.cli.text import printable

if TYPE_CHECKING:
    from xclaw.cli.client import Finder
    from xclaw.cli.output import Watcher
    from xclaw.cli.typed_ahead import Typing
    from xclaw.settings import Settings

COMMANDS = {
    "/help": "this list",
    "/steer": "TEXT: say it to the run that goes on",
    "/interrupt": "TEXT: end the run that goes on, and ask this instead",
    "/answer": "y, s, a, n REASON or e NEW: decide what an agent asks to do",
    "/route": "TEXT: who would answer that, and why; nothing is sent",
    "/agents": "who can be asked and handed work",
    "/team": "the experts of this session, and what they remember",
    "/tasks": "the answers of this session, the newest first",
    "/trace": "what the last message did",
    "/cost": "what this chat has used",
    "/sessions": "your sessions",
    "/session": "NAME: go on with another session",
    "/rename": "TITLE: call this session something",
    "/new": "begin a new session",
    "/quit": "leave",
}
PATIENCE_S = 300.0
"""How long a chat with piped messages waits for a gateway elsewhere that cannot be reached."""


def chat(options: ChatOptions) -> int:
    """Answer messages until the input ends; answers the exit code.

    That is the code of the last message that did not succeed, when messages are piped in.
    """
    from xclaw.cli.background import Background
    from xclaw.cli.client import opened_client
    from xclaw.cli.conversation import Conversation
    from xclaw.cli.opening import settings_from
    from xclaw.cli.stage import SessionStage
    from xclaw.cli.typed_ahead import Typing

    session = checked_session("cli" if options.session is None else options.session)
    settings = settings_from(options.overrides())
    keyboard, typing = Keyboard(settings.home), Typing()
    note = _note(keyboard)
    finder = _finder(options, settings, keyboard)
    stage = SessionStage(lambda: _watcher(keyboard, typing), note)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    with Background(lambda: opened_client(finder, session, stage)) as background:
        conversation = Conversation(background, options, keyboard, typing)
        if keyboard.interactive:
            print(f"xclaw, session {printable(session)}. /help lists commands, /quit leaves.")
        conversation.run(session)
    return DONE if keyboard.interactive else conversation.code


class ToldToEnd(SystemExit):
    """SIGTERM: whoever sends it wants the work to end."""


def _leave(number: int, _frame: FrameType | None) -> None:
    """SIGTERM, or the terminal went away, which ends no run: leave by the way that closes everything."""
    raise ToldToEnd(INTERRUPTED) if number == signal.SIGTERM else SystemExit(INTERRUPTED)


def _finder(options: ChatOptions, settings: "Settings", keyboard: Keyboard) -> "Finder":
    from xclaw.cli.gateway_finder import HomeGateway, named_gateway
    from xclaw.cli.gateway_match import Match

    match = Match(options, settings, complain)
    if options.gateway is not None:
        match.refuse_process_options()
        return named_gateway(options.gateway, os.environ, None if keyboard.interactive else PATIENCE_S)
    return HomeGateway(settings, match.flags, match.check, complain)


def _watcher(keyboard: Keyboard, typing: "Typing") -> "Watcher":
    """Live while nobody is at the prompt; above the prompt otherwise."""
    from xclaw.cli.render_plain import PlainRenderer
    from xclaw.cli.watching import is_terminal, watcher_for

    if keyboard.asking:
        lines = Lines(AbovePrompt(sys.stdout, keyboard))
        return PlainRenderer(lines, lines)
    if keyboard.interactive and is_terminal():
        from xclaw.cli.render_live import LiveRenderer

        return LiveRenderer(sys.stdout, typing.text)
    return watcher_for("text")


def _note(keyboard: Keyboard) -> Callable[[str], None]:
    """Says a line of xclaw's own, above the prompt if there is one."""
    lines = Lines(AbovePrompt(sys.stderr, keyboard))
    return lambda text: lines.line(f"xclaw: {printable(text)}")
