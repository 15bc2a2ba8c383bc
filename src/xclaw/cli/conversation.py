"""A chat, seen from the keyboard: what is said, what is waited for, which commands there are."""

import difflib
import secrets
import sys
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from pathlib import Path
from typing import TYPE_CHECKING

from xclaw.cli.attending import Attendant
from xclaw.cli.background import Background
from xclaw.cli.chat import COMMANDS, ToldToEnd
from xclaw.cli.chat_commands import ASKED_OF_GATEWAY
from xclaw.cli.failures import (
    DONE,
    FAILED,
    INTERRUPTED,
    MISUSED,
    READER_GONE,
    complain,
    exit_code_of,
    guarded,
)
from xclaw.cli.options import ChatOptions, chain_of
from xclaw.cli.questions import answer_from, choices_text, question_text
from xclaw.cli.run import checked_session
from xclaw.cli.text import money, one_line, printable, tokens
from xclaw.contracts.agents import Limits
from xclaw.contracts.sessions import Manner
from xclaw.contracts.usage import Spend
from xclaw.gateway.wire import Say

if TYPE_CHECKING:
    from xclaw.cli.client import Client
    from xclaw.cli.gateway_api import GatewayApi
    from xclaw.cli.keyboard import Keyboard
    from xclaw.cli.messages import Ended
    from xclaw.cli.typed_ahead import Typing
    from xclaw.contracts.approvals import Approval

YOUR_OWN = frozenset({"refused", "bad_request", "not_found", "too_large", "not_allowed"})
"""Codes of what the user can put right."""
WHILE_WORKING: dict[str, Manner] = {"/steer": "steer", "/interrupt": "interrupt"}


class Conversation:
    """One chat: its session, what it waits for, and what it has spent."""

    def __init__(
        self, background: "Background[Client]", options: ChatOptions, keyboard: "Keyboard", typing: "Typing"
    ) -> None:
        self._background = background
        self._options = options
        self._keyboard = keyboard
        self._attendant = Attendant(keyboard, typing, self._typed)
        self._question: Approval | None = None
        """What an agent asks, as it was shown last."""
        self._session = ""
        self._models = tuple(_absolute(model) for model in chain_of(options.model))
        self._waiting: list[Future[Ended]] = []
        self._leaving = False
        self._presses = 0
        self._last_run = ""
        self._spend = Spend()
        self._commands: dict[str, Callable[[str], None]] = {
            "/help": self._help,
            "/trace": self._trace,
            "/cost": self._cost,
            "/new": self._new,
            "/session": self._other_session,
        }
        self.code = DONE
        """The exit code of the last message that did not succeed."""

    def run(self, session: str) -> None:
        """Take what is typed or piped in until it ends. Told to end, it ends what it waits for."""
        self._session = session
        self._background.soon(lambda client: client.talk.on_question_call(self._attendant.wake))
        try:
            for message in self._keyboard.messages():
                if not self.take(message) or self._leaving:
                    break
        except ToldToEnd:
            self._stop_everything()
            raise

    def take(self, message: str) -> bool:
        """Answer a message or obey a command; false when the chat is over."""
        if message.startswith("//"):
            return self._noted(lambda: self._send(message[1:]))
        if message.startswith("/"):
            word, _, rest = message.partition(" ")
            word = word.lower()
            if word in ("/quit", "/exit"):
                return False
            return self._noted(lambda: self._command(word, rest.strip()))
        return self._noted(lambda: self._send(message))

    def _note(self, text: str) -> None:
        self._background.soon(lambda client: client.stage.note(text))

    def _noted(self, body: Callable[[], int]) -> bool:
        """Do it, remember a code that is not 0; an error is shown and does not end the chat."""
        code = guarded(body)
        self.code = code or self.code
        return code != READER_GONE

    # --- messages

    def _send(self, text: str, manner: Manner = "queue") -> int:
        """Say it, and wait for all that this chat waits for; the worst exit code."""
        self._presses = 0
        self._say(text, manner)
        self._wait()
        codes = [self._finished(future) for future in self._waiting]
        self._waiting.clear()
        if self._background.call(_reader_gone):
            raise BrokenPipeError
        return max(codes)

    def _say(self, text: str, manner: Manner) -> None:
        from xclaw.cli.attachments import with_files

        options = self._options
        say = Say(
            session=self._session,
            text=with_files(text, Path.cwd(), complain),
            client_id=secrets.token_hex(12),
            agent=options.agent or "",
            manner=manner,
            models=self._models,
            limits=Limits(options.max_turns, options.timeout, options.budget_tokens, options.budget_usd),
        )
        future = self._background.start(lambda client: client.ask(say))
        future.add_done_callback(lambda _: self._attendant.wake())
        self._waiting.append(future)

    def _finished(self, future: "Future[Ended]") -> int:
        try:
            ended = future.result()
        except CancelledError:
            return INTERRUPTED
        except Exception as error:
            failure = error
            return guarded(lambda: _raise(failure))
        self._last_run = ended.run_id or self._last_run
        if ended.result is None:
            if not ended.code:
                return DONE
            complain(ended.reason or ended.code)
            if self._presses:
                return INTERRUPTED
            return MISUSED if ended.code in YOUR_OWN else FAILED
        self._spend += ended.result.spend
        if ended.result.outcome != "success":
            reason = f": {one_line(ended.result.reason, 500)}" if ended.result.reason else ""
            complain(f"the run ended as {ended.result.outcome}{reason}")
        return exit_code_of(ended.result.outcome)

    # --- waiting

    def _wait(self) -> None:
        """Until nothing is waited for. At a terminal, what is typed meanwhile is taken."""
        while True:
            try:
                if self._is_over():
                    break
                if self._keyboard.interactive:
                    self._attendant.wait(self._is_over)
                else:
                    for future in self._waiting:
                        _settle(future)
            except KeyboardInterrupt:
                self._interrupt()
        if self._leaving:
            for future in self._waiting:
                future.cancel()

    def _is_over(self) -> bool:
        if self._keyboard.interactive:
            self._put_question()
        return self._leaving or all(future.done() for future in self._waiting)

    def _typed(self, line: str) -> None:
        """A line that came while the chat waits."""
        word, _, rest = line.strip().partition(" ")
        if word in WHILE_WORKING and rest.strip():
            self._also(rest.strip(), WHILE_WORKING[word])
        elif word == "/answer":
            self._noted(lambda: self._command(word, rest.strip()))
        elif word in ("/quit", "/exit"):
            self._note("the run goes on; xclaw shows it again when you come back")
            self._leaving = True
        elif word.startswith("/") and not word.startswith("//"):
            now = ", ".join((*WHILE_WORKING, "/answer", "/quit"))
            self._note(f"{word} can be asked when the run has ended; now: {now}")
        elif self._question is not None:
            self._noted(lambda: self._answer(line))
        else:
            self._also(line.strip().removeprefix("/"), "queue")

    def _also(self, text: str, manner: Manner) -> None:
        """Say something more while the chat waits."""
        self._noted(lambda: self._said(text, manner))

    def _said(self, text: str, manner: Manner) -> int:
        self._say(text, manner)
        return DONE

    def _interrupt(self) -> None:
        """Ctrl-C: the first ends the run, or the wait for it; the second leaves the chat."""
        self._presses += 1
        if self._presses > 1:
            sys.exit(INTERRUPTED)
        self._note("stopping the run; interrupt again to leave at once")
        self._background.soon(lambda client: client.talk.interrupt("interrupted by the user"))

    def _stop_everything(self) -> None:
        if any(not future.done() for future in self._waiting):
            session = self._session
            self._background.call(lambda client: client.stop_session(session, "interrupted by the user"))

    # --- questions of agents

    def _put_question(self) -> None:
        """Show the oldest question, once; the next line that is typed answers it."""
        waiting = self._background.call(_questions)
        if self._question is not None and all(q.approval_id != self._question.approval_id for q in waiting):
            self._question = None
        if self._question is None and waiting:
            self._question = waiting[0]
            self._note(f"\n{question_text(waiting[0])}\n{choices_text(waiting[0])}")

    def _answer(self, line: str) -> int:
        question = self._question or next(iter(self._background.call(_questions)), None)
        if question is None:
            self._note("no agent of this session waits for an answer")
        elif not line:
            self._note(f"\n{question_text(question)}\n{choices_text(question)}")
        else:
            answer = answer_from(question, line)
            self._question = None
            self._background.call(lambda client: client.answer(question.approval_id, answer))
        return DONE

    # --- commands

    def _command(self, word: str, rest: str) -> int:
        if word in ASKED_OF_GATEWAY:
            ask = ASKED_OF_GATEWAY[word]
            session = self._session
            self._background.call(lambda client: client.with_api(lambda api: ask(api, session, rest)))
            return DONE
        if word == "/answer":
            return self._answer(rest)
        if word in WHILE_WORKING:
            if not rest:
                complain(f"write the message behind it: {word} TEXT")
                return MISUSED
            return self._send(rest, WHILE_WORKING[word])
        if word in self._commands:
            self._commands[word](rest)
            return DONE
        close = difflib.get_close_matches(word, COMMANDS, n=1)
        hint = f"did you mean {close[0]}?" if close else "/help lists them."
        complain(f"there is no command {word}; {hint} To send it as a message, write /{word}")
        return DONE

    def _help(self, _rest: str) -> None:
        for name, what in COMMANDS.items():
            print(f"{name:10} {what}")
        print("Ctrl-C stops a run and keeps what it did. @path appends a file. // begins a /message.")

    def _cost(self, _rest: str) -> None:
        usage = self._spend.usage
        total = tokens(usage.total_tokens, estimated=usage.estimated)
        print(f"{total} tokens, {money(self._spend.cost_usd)}, {self._spend.calls} model calls")

    def _new(self, _rest: str) -> None:
        self._move(f"chat-{secrets.token_hex(3)}")
        print(f"new session {self._session}")

    def _other_session(self, name: str) -> None:
        if name:
            self._move(checked_session(name))
        print(f"session {printable(self._session)}")

    def _move(self, session: str) -> None:
        self._session = session
        self._background.call(lambda client: client.move_to(session))

    def _trace(self, _rest: str) -> None:
        run_id = self._last_run
        if not run_id:
            print("nothing has run in this chat yet")
            return

        async def body(api: "GatewayApi") -> None:
            from xclaw.cli.trace import print_trace

            print_trace(await api.entries(run_id))

        self._background.call(lambda client: client.with_api(body))


async def _questions(client: "Client") -> "list[Approval]":
    return list(client.talk.questions.values())


async def _reader_gone(client: "Client") -> bool:
    return client.stage.closed


def _settle(future: "Future[Ended]") -> None:
    """Wait for it, whatever comes of it."""
    try:
        future.exception()
    except CancelledError:
        return


def _raise(error: Exception) -> int:
    raise error


def _absolute(model: str) -> str:
    """A script is named by its path, which means something else where the gateway is."""
    provider, colon, path = model.strip().partition(":")
    return f"{provider}{colon}{Path(path).absolute()}" if provider == "script" and path else model
