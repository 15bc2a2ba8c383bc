"""The live display: what stays on the screen, and what a terminal gets."""

import asyncio
import fcntl
import io
import os
import struct
import termios
from pathlib import Path

from xclaw_command import HELLO, Xclaw

from xclaw.cli.render_live import LiveRenderer
from xclaw.contracts.agents import Limits
from xclaw.contracts.events import (
    Address,
    AttemptFailed,
    Entry,
    Event,
    ModelAnswered,
    RunEnded,
    RunStarted,
    TextDelta,
)
from xclaw.contracts.messages import AssistantMessage
from xclaw.contracts.results import Result
from xclaw.contracts.usage import Spend, Usage


def shown(*events: Event, result: Result) -> str:
    """What a stream that is no terminal keeps: everything printed for good."""
    stream = io.StringIO()
    renderer = LiveRenderer(stream)
    try:
        for event in events:
            renderer.receive(Entry(Address("root", "root", "", "s"), 1, 1.0, event, 1))
        renderer.finish(result)
    finally:
        renderer.close()
    return stream.getvalue()


def begun() -> RunStarted:
    return RunStarted("orchestrator", "do", "user", 0, "", (), (), "native", Limits())


def said(text: str) -> ModelAnswered:
    return ModelAnswered(1, AssistantMessage(text), Usage(1, 1), 0.0, "m:1", "stop", 0.1)


def test_a_withdrawn_text_is_not_kept_and_the_answer_is_kept_once() -> None:
    """C5, S14."""
    failure = AttemptFailed(1, "a:1", "reset", None, Usage(), None, "Hello, wor", "b:2")
    end = RunEnded(Result("success", "Hello, world!"), "success", 1)
    out = shown(
        begun(), TextDelta("Hello, wor"), failure, TextDelta("Hello, world!"), said("Hello, world!"), end,
        result=Result("success", "Hello, world!", spend=Spend(Usage(3, 4), 0.5, 0, 2), duration_s=2.0),
    )  # fmt: skip
    assert out.count("Hello, world!") == 1
    assert out.replace("Hello, world!", "").count("Hello") == 0
    assert "a:1 failed (reset); trying b:2" in out
    assert "success · 2.0s · 7 tokens · $0.5000" in out


def test_what_was_said_before_an_interrupt_is_kept() -> None:
    out = shown(begun(), TextDelta("half an ans"), result=Result("cancelled", "half an ans"))
    assert out.count("half an ans") == 1
    assert "cancelled" in out


def test_neither_markup_nor_escape_sequences_of_a_model_are_obeyed() -> None:
    text = "[bold]x[/bold] [link=http://evil]y[/link] \x1b[2J\x1b]0;t\x07 :smile:"
    out = shown(begun(), TextDelta(text), said(text), result=Result("success", text))
    assert "[bold]x[/bold] [link=http://evil]y[/link]  :smile:" in out
    assert "\x1b" not in out


async def on_a_terminal(xclaw: Xclaw, *arguments: str, **env: str) -> tuple[int, str]:
    """Run the command with its output on a terminal of 24 lines by 100 columns."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(ours, "rb")
    )
    process = await xclaw.start(*arguments, env={"TERM": "xterm-256color", **env}, stdout=theirs)
    os.close(theirs)
    pieces: list[bytes] = []
    try:
        while piece := await reader.read(65_536):
            pieces.append(piece)
    except OSError:
        pass  # the other end of a terminal went away: how its output ends
    transport.close()
    return await process.wait(), b"".join(pieces).decode()


def test_on_a_terminal_workers_and_figures_are_drawn_unless_colours_are_unwanted(tmp_path: Path) -> None:
    xclaw = Xclaw(tmp_path)
    model = xclaw.script(HELLO)

    async def main() -> None:
        async with asyncio.timeout(60):
            code, out = await on_a_terminal(xclaw, "run", "write hello", "-m", model)
            assert code == 0
            assert "✓ coder" in out
            assert "All done: hello.py is written." in out
            assert "[scripted model]" in out
            assert out.endswith("\r\n")
            assert out.count("\x1b[?25h") == out.count("\x1b[?25l") == 1
            code, out = await on_a_terminal(xclaw, "run", "write hello", "-m", model, NO_COLOR="1")
            assert "\x1b" not in out
            assert "[coder] working..." in out

    asyncio.run(main())
