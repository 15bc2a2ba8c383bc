"""Plain lines: parallel workers never mix, and what was withdrawn is said to be withdrawn."""

import io
from dataclasses import dataclass, field, replace

from xclaw.cli.output import Lines
from xclaw.cli.render_plain import PlainRenderer
from xclaw.contracts.agents import Limits
from xclaw.contracts.events import (
    Address,
    ApprovalAsked,
    AttemptFailed,
    Entry,
    Event,
    ModelAnswered,
    RunEnded,
    RunStarted,
    TextDelta,
    ToolCallEnded,
)
from xclaw.contracts.messages import AssistantMessage
from xclaw.contracts.results import Outcome, Result
from xclaw.contracts.usage import Usage


@dataclass
class Screen:
    """A renderer, and what it has written."""

    stream: io.StringIO = field(default_factory=io.StringIO)

    def __post_init__(self) -> None:
        lines = Lines(self.stream)
        self.renderer = PlainRenderer(lines, lines)

    def see(self, run_id: str, *events: Event) -> None:
        for event in events:
            parent = "" if run_id == "root" else "root"
            self.renderer.receive(Entry(Address(run_id, "root", parent, "s"), 1, 1.0, event, 1))

    @property
    def lines(self) -> list[str]:
        return self.stream.getvalue().splitlines()


def begun(agent: str, *, scripted: bool = False) -> RunStarted:
    depth = 0 if agent == "orchestrator" else 1
    return RunStarted(agent, "do", "agent", depth, "", (), (), "native", Limits(), scripted=scripted)


def said(text: str) -> ModelAnswered:
    return ModelAnswered(1, AssistantMessage(text), Usage(1, 1), 0.0, "m:1", "stop", 0.1)


def over(outcome: Outcome = "success", reason: str = "") -> RunEnded:
    return RunEnded(Result(outcome, reason=reason), outcome, 1)


def broke(retracted: str, following: str | None = "b:2") -> AttemptFailed:
    return AttemptFailed(1, "a:1", "reset", None, Usage(), None, retracted, following)


def test_a_workers_words_stand_between_working_and_done() -> None:
    """D1."""
    screen = Screen()
    screen.see("root", begun("orchestrator"))
    screen.see("w1", begun("coder"), TextDelta("def f"), TextDelta("():\n    ret"), TextDelta("urn 1"))
    screen.see("w1", said("def f():\n    return 1"), over())
    assert screen.lines == ["[coder] working...", "[coder] def f():", "[coder]     return 1", "[coder] done"]


def test_parallel_workers_are_told_apart_and_never_share_a_line() -> None:
    screen = Screen()
    screen.see("w1", begun("coder"), TextDelta("one "))
    screen.see("w2", begun("coder"), TextDelta("eins "))
    screen.see("w1", TextDelta("two\nthree"))
    screen.see("w2", TextDelta("zwei\n"), said("eins zwei\n"), over())
    screen.see("w1", said("one two\nthree"), over("timeout", "60 s"))
    assert screen.lines == [
        "[coder] working...",
        "[coder#2] working...",
        "[coder] one two",
        "[coder#2] eins zwei",
        "[coder#2] done",
        "[coder] three",
        "[coder] done (timeout: 60 s)",
    ]


def test_the_roots_words_come_as_they_are_said() -> None:
    screen = Screen()
    screen.see("root", begun("orchestrator"), TextDelta("Hel"))
    assert screen.stream.getvalue() == "Hel"
    screen.see("root", TextDelta("lo"), said("Hello"), over())
    screen.renderer.finish(Result("success", "Hello"))
    assert screen.stream.getvalue() == "Hello\n"


def test_an_answer_that_was_not_streamed_is_shown_once() -> None:
    screen = Screen()
    screen.see("root", begun("orchestrator"), said("whole"), over())
    screen.renderer.finish(Result("success", "whole"))
    assert screen.lines == ["whole"]
    screen = Screen()
    screen.see("root", begun("orchestrator"), TextDelta("draft"), said("draft"), over())
    screen.renderer.finish(Result("success", "the answer"))
    assert screen.lines == ["draft", "the answer"]


def test_a_withdrawn_text_is_said_to_be_withdrawn_once_and_the_answer_starts_afresh() -> None:
    """C5, S14."""
    screen = Screen()
    screen.see("root", begun("orchestrator"), TextDelta("Hello, wor"), broke("Hello, wor"))
    screen.see("root", broke("", None), TextDelta("Hello, world!"), said("Hello, world!"), over())
    screen.renderer.finish(Result("success", "Hello, world!"))
    assert screen.lines == [
        "Hello, wor",
        "[xclaw] withdrawn: what it said above does not count; a:1 failed (reset); trying b:2",
        "[xclaw] a:1 failed (reset); no other model is left",
        "Hello, world!",
    ]


def test_a_workers_unfinished_line_is_dropped_when_it_is_withdrawn() -> None:
    screen = Screen()
    screen.see(
        "w1", begun("coder"), TextDelta("half a li"), broke("half a li"), TextDelta("whole"), said("whole")
    )
    assert screen.lines == ["[coder] working...", "[coder] a:1 failed (reset); trying b:2", "[coder] whole"]


def test_a_call_that_is_refused_unasked_is_shown_with_the_reason() -> None:
    """Nobody sees it begin; one that a person denied was shown with the question."""
    screen = Screen()
    why = "shell needs the user's permission, and nobody is there to be asked"
    ended = ToolCallEnded("c1", "shell", False, f"error: {why}", 0.0, refused=True)
    screen.see("w", begun("coder"), ended, replace(ended, refused=False))
    assert screen.lines == ["[coder] working...", f"[coder] not permitted: {why}"]
    asked = Screen()
    question = ApprovalAsked("a1", "c1", "shell", "{}", "why", "", ("coder",))
    asked.see("w", begun("coder"), question, ended)
    assert "not permitted" not in asked.stream.getvalue()


def test_a_scripted_model_is_labelled_once() -> None:
    screen = Screen()
    screen.see("root", begun("orchestrator", scripted=True))
    screen.see("w1", begun("coder", scripted=True))
    assert [line for line in screen.lines if "[scripted model]" in line] == [screen.lines[0]]


def test_a_name_or_a_text_with_escape_sequences_is_harmless_even_in_pieces() -> None:
    screen = Screen()
    screen.see("root", begun("orchestrator"), TextDelta("a\x1b"), TextDelta("[31"), TextDelta("mb"))
    screen.see("w1", begun("co\x1b]0;t\x07der\nx"), TextDelta("\x1b[2Jclear\n"))
    assert "\x1b" not in screen.stream.getvalue()
    assert screen.lines[0] == "ab"
    assert screen.lines[1:] == ["[coder x] working...", "[coder x] clear"]


def test_a_run_that_is_taken_up_again_keeps_its_name() -> None:
    screen = Screen()
    address = Address("w1", "root", "root", "s")
    screen.renderer.learn([Entry(address, 1, 1.0, begun("coder"), 1)])
    screen.see("w1", TextDelta("on\n"), over())
    assert screen.lines == ["[coder] on", "[coder] done"]


def test_when_nobody_reads_any_more_that_is_noticed_and_nothing_breaks() -> None:
    class Gone(io.StringIO):
        def write(self, _text: str) -> int:
            raise BrokenPipeError

    lines = Lines(Gone())
    renderer = PlainRenderer(lines, lines)
    renderer.receive(Entry(Address("root", "root", "", "s"), 1, 1.0, TextDelta("x")))
    assert renderer.closed
