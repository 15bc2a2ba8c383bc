"""What is shown of a run: the same text whether it is streamed or not, and never what was taken back."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    ToolCallStarted,
    TurnStarted,
)
from xclaw.contracts.messages import AssistantMessage, ToolCall
from xclaw.contracts.results import Result
from xclaw.contracts.tokens import estimate_tokens
from xclaw.contracts.usage import Usage
from xclaw.gateway.protocols.openai.transcript import (
    HELD_CHARACTERS,
    Content,
    Piece,
    Progress,
    Showing,
    Transcript,
)
from xclaw.gateway.protocols.openai.work_lines import LINE_CHARACTERS, MAX_LINES

LONG = "a long sentence. " * (HELD_CHARACTERS // 10)
STREAMED, WHOLE = Showing(is_streamed=True), Showing(is_streamed=False)


def entry(event: Event, run: str = "root") -> Entry:
    return Entry(Address(run, "root", "" if run == "root" else "root", "s"), 0, 0.0, event)


def started(agent: str = "coder", tools: tuple[str, ...] = ("list_dir",)) -> RunStarted:
    return RunStarted(agent, "x", "user", 0, "", tools, ("m",), "native", Limits())


def said(text: str, size: int = 7) -> list[Event]:
    return [TextDelta(text[at : at + size]) for at in range(0, len(text), size)]


def turn(text: str, *, calls: bool = False, number: int = 1) -> list[Event]:
    asked = (ToolCall("c", "list_dir", "{}"),) if calls else ()
    answered = ModelAnswered(number, AssistantMessage(text, asked), Usage(), 0.0, "m", "stop", 0.1)
    started_calls: list[Event] = [ToolCallStarted("c", "list_dir", "{}")] if calls else []
    return [TurnStarted(number, "m", 0, 0.0), *said(text), answered, *started_calls]


def failed(partial: str) -> list[Event]:
    return [*said(partial), AttemptFailed(1, "m", "broken", None, Usage(), 0.0, partial, "n")]


def shown(events: Sequence[Event], last: str, showing: Showing = STREAMED) -> tuple[Transcript, list[Piece]]:
    transcript = Transcript("root", showing)
    pieces: list[Piece] = []
    for event in [started(), *events]:
        transcript.feed(entry(event))
        pieces += transcript.take()
    transcript.conclude(last)
    return transcript, pieces + transcript.take()


def streamed_text(pieces: list[Piece]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, Content))


def test_what_is_said_before_a_tool_call_is_no_part_of_the_answer() -> None:
    events = [*turn("Let me look.", calls=True), *turn("It is empty.", number=2)]
    transcript, pieces = shown(events, "It is empty.")
    assert transcript.content == streamed_text(pieces) == "It is empty."
    assert [piece.line for piece in pieces if isinstance(piece, Progress)] == [
        "Let me look.",
        "[coder] list_dir",
    ]


def test_a_long_text_is_shown_while_it_is_said() -> None:
    transcript = Transcript("root", STREAMED)
    for event in [started(), TurnStarted(1, "m", 0, 0.0), *said(LONG)]:
        transcript.feed(entry(event))
    assert streamed_text(transcript.take()) == LONG


def test_everything_that_an_agent_without_tools_says_is_shown_at_once() -> None:
    transcript = Transcript("root", STREAMED)
    for event in [started(tools=()), TurnStarted(1, "m", 0, 0.0), TextDelta("H")]:
        transcript.feed(entry(event))
    assert streamed_text(transcript.take()) == "H"


def test_a_long_text_before_a_call_stays_in_both_forms() -> None:
    events = [*turn(LONG, calls=True), *turn("Done.", number=2)]
    texts = {shown(events, "Done.", showing)[0].content for showing in (STREAMED, WHOLE)}
    assert texts == {f"{LONG}\n\nDone."}


@pytest.mark.parametrize("partial", ["Half an ans", LONG[:500]])
def test_text_that_a_model_took_back_is_never_beside_another_text(partial: str) -> None:
    """S14: what a client has cannot be taken back, so a stream goes on only with the same words."""
    other = "Something else. " * 40
    events = [TurnStarted(1, "m", 0, 0.0), *failed(partial), *turn(other)[1:]]
    transcript, pieces = shown(events, other)
    if len(partial) > HELD_CHARACTERS:
        assert transcript.is_broken
        assert LONG.startswith(streamed_text(pieces))
    else:
        assert transcript.content == streamed_text(pieces) == other
    whole, _ = shown(events, other, WHOLE)
    assert (whole.content, whole.is_broken) == (other, False)


def test_a_stream_goes_on_where_the_next_model_says_the_same() -> None:
    events = [TurnStarted(1, "m", 0, 0.0), *failed(LONG[:500]), *failed(LONG[:100]), *turn(LONG)[1:]]
    transcript, pieces = shown(events, LONG)
    assert transcript.content == streamed_text(pieces) == LONG
    assert not transcript.is_broken


def test_a_next_model_that_says_less_breaks_the_stream() -> None:
    events = [TurnStarted(1, "m", 0, 0.0), *failed(LONG[:500]), *turn(LONG[:90])[1:]]
    assert shown(events, LONG[:90])[0].is_broken


@pytest.mark.parametrize("text", ["word " * 300, "字" * 400, "a"])
@pytest.mark.parametrize("limit", [1, 20, 100])
def test_a_limit_cuts_the_text_and_says_so(text: str, limit: int) -> None:
    transcript, pieces = shown(turn(text), text, Showing(True, max_tokens=limit))
    assert text.startswith(transcript.content)
    assert transcript.content == streamed_text(pieces)
    assert estimate_tokens(transcript.content) <= limit + 1
    assert transcript.is_full == (transcript.content != text)


def test_a_text_that_is_checked_first_is_not_shown_before() -> None:
    transcript = Transcript("root", Showing(is_streamed=True, whole=True))
    for event in [started(), *turn(LONG)]:
        transcript.feed(entry(event))
    assert streamed_text(transcript.take()) == ""
    transcript.conclude('{"a": 1}')
    assert streamed_text(transcript.take()) == '{"a": 1}'


def test_what_workers_say_is_not_shown_and_what_they_do_is() -> None:
    transcript = Transcript("root", STREAMED)
    transcript.feed(entry(started("orchestrator")))
    for event in [started("co\nder\x1b[31m"), *turn(LONG, calls=True), RunEnded(Result("error"), "error", 1)]:
        transcript.feed(entry(event, "worker"))
    lines = [piece.line for piece in transcript.take() if isinstance(piece, Progress)]
    assert transcript.content == ""
    assert [line.split("] ")[-1] for line in lines] == ["working...", "list_dir", "error"]
    assert all(line.isprintable() for line in lines)


def test_lines_about_the_work_are_bounded_and_can_be_left_out() -> None:
    told = Transcript("root", STREAMED)
    silent = Transcript("root", Showing(is_streamed=True, with_progress=False))
    for number in range(2 * MAX_LINES):
        event = entry(ToolCallStarted(f"c{number}", "x" * 1_000, "{}"), "worker")
        told.feed(event)
        silent.feed(event)
    lines = told.progress.split("\n")
    assert len(lines) == MAX_LINES
    assert max(map(len, lines)) <= LINE_CHARACTERS
    assert (silent.progress, silent.take()) == ("", [])


_TURNS = st.lists(
    st.tuples(st.text(max_size=900), st.booleans(), st.lists(st.integers(0, 900), max_size=2)),
    min_size=1,
    max_size=4,
)


@given(_TURNS, st.one_of(st.none(), st.integers(1, 300)))
def test_a_streamed_answer_is_the_one_that_is_not_streamed(
    turns: list[tuple[str, bool, list[int]]], limit: int | None
) -> None:
    """O04, whatever the turns say and however often a model begins anew."""
    events: list[Event] = []
    for number, (text, calls, restarts) in enumerate(turns):
        whole = turn(text, calls=calls, number=number)
        events += [whole[0], *(event for size in restarts for event in failed(text[:size])), *whole[1:]]
    last = turns[-1][0]
    streamed, pieces = shown(events, last, Showing(True, max_tokens=limit))
    at_once, _ = shown(events, last, Showing(False, max_tokens=limit))
    assert not streamed.is_broken
    assert streamed_text(pieces) == streamed.content == at_once.content
    assert streamed.is_full == at_once.is_full
