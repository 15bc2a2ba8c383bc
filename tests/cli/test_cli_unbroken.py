"""What a client shows of a session whose connection is cut and whose gateway dies and starts again."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from xclaw.cli.unbroken import Piece, Place, StartedAgain, Unbroken
from xclaw.contracts.agents import Limits
from xclaw.contracts.events import (
    Address,
    AttemptFailed,
    Entry,
    Event,
    ModelAnswered,
    RunEnded,
    RunResumed,
    RunStarted,
    TextDelta,
    TurnStarted,
    Warned,
)
from xclaw.contracts.messages import AssistantMessage
from xclaw.contracts.results import Result
from xclaw.contracts.usage import Usage

ROOT = Address("r1", "r1", "", "cli")
STARTED = RunStarted("coder", "hi", "user", 0, "", (), (), "native", Limits())


def turn_started(turn: int) -> TurnStarted:
    return TurnStarted(turn, "m", 0, None)


def answered(turn: int, text: str) -> ModelAnswered:
    return ModelAnswered(turn, AssistantMessage(text), Usage(), None, "m", "stop", 0.0)


def failed(turn: int) -> AttemptFailed:
    return AttemptFailed(turn, "m", "outage", None, Usage(), None, "", "m")


@dataclass
class Screen:
    """Shows pieces like a terminal does: a turn that is taken back is erased."""

    turn: str = ""
    turns: list[str] = field(default_factory=list[str])
    again: int = 0
    ids: list[int] = field(default_factory=list[int])

    def show(self, pieces: Sequence[Piece]) -> None:
        for piece in pieces:
            if isinstance(piece, StartedAgain):
                self.turn, self.again = "", self.again + 1
                continue
            if piece.id:
                self.ids.append(piece.id)
            match piece.event:
                case TextDelta(text):
                    self.turn += text
                case ModelAnswered(message=message):
                    self.turns.append(self.turn or message.text)
                    self.turn = ""
                case AttemptFailed():
                    self.turn = ""
                case _:
                    pass


@dataclass
class Gateway:
    """What a gateway knows of one run: what is stored, and the text since then."""

    stored: list[Entry] = field(default_factory=list[Entry])
    streamed: str = ""

    def store(self, event: Event) -> Entry:
        entry = Entry(ROOT, len(self.stored) + 1, 0.0, event, len(self.stored) * 3 + 1)
        self.stored.append(entry)
        self.streamed = ""
        return entry

    def stream(self, text: str) -> tuple[Place, str]:
        place = Place("r1", self.stored[-1].id, len(self.streamed))
        self.streamed += text
        return place, text


@dataclass
class Line:
    """A gateway and a client with a connection that can be cut."""

    gateway: Gateway = field(default_factory=Gateway)
    client: Unbroken = field(default_factory=lambda: Unbroken(0))
    screen: Screen = field(default_factory=Screen)
    up: bool = True

    def store(self, event: Event) -> None:
        entry = self.gateway.store(event)
        if self.up:
            self.screen.show(self.client.event(entry))

    def stream(self, text: str) -> None:
        place, text = self.gateway.stream(text)
        if self.up:
            self.screen.show(self.client.text(place, text))

    def cut(self) -> None:
        self.up = False
        self.client.cut()

    def connect(self, back: int = 0) -> None:
        """Up again; the gateway sends `back` events more than it was asked for."""
        after = self.client.last_id or 0
        position = sum(entry.id <= after for entry in self.gateway.stored)
        for entry in self.gateway.stored[max(0, position - back) :]:
            self.screen.show(self.client.event(entry))
        if self.gateway.streamed:
            place = Place("r1", self.gateway.stored[-1].id, 0)
            self.screen.show(self.client.text(place, self.gateway.streamed))
        self.up = True


WORDS = st.text("ab \n", min_size=1, max_size=4)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), WORDS),
        st.tuples(st.just("warn"), st.just("")),
        st.tuples(st.just("cut"), st.just("")),
        st.tuples(st.just("connect"), st.sampled_from(["", "again"])),
        st.tuples(st.just("fail"), st.just("")),
        st.tuples(st.just("kill"), st.just("")),
        st.tuples(st.just("answer"), st.just("")),
    ),
    max_size=30,
)


@given(STEPS)
def test_whatever_happens_to_the_connection_each_turn_is_shown_once_and_whole(
    steps: list[tuple[str, str]],
) -> None:
    """SPEC A4, K6: random cuts, repeated events, failed attempts, restarts with other words."""
    line, turn, said, truth = Line(), 1, "", list[str]()
    line.store(STARTED)
    line.store(turn_started(turn))
    for step, argument in [*steps, ("answer", "")]:
        match step:
            case "say":
                said += argument
                line.stream(argument)
            case "warn":
                line.store(Warned("queued", "something"))
            case "cut":
                line.cut()
            case "connect":
                line.connect(3 if argument else 0)
            case "fail":
                said = ""
                line.store(failed(turn))
            case "kill":
                said = ""
                line.cut()
                line.gateway.streamed = ""
                line.store(RunResumed("p2"))
                line.store(turn_started(turn))
            case _:
                if not said:
                    said = "a"
                    line.stream(said)
                truth.append(said)
                line.store(answered(turn, said))
                turn, said = turn + 1, ""
                line.store(turn_started(turn))
    line.store(RunEnded(Result("success"), "success", turn))
    line.connect()
    assert [text.split() for text in line.screen.turns] == [text.split() for text in truth]
    assert line.screen.ids == [entry.id for entry in line.gateway.stored]


@given(st.text("ab", min_size=1, max_size=20), st.data())
def test_a_model_that_says_the_same_again_after_a_restart_is_not_heard_twice(
    text: str, data: st.DataObject
) -> None:
    """SPEC K6: the text goes on where it was; nothing is taken back."""
    line = Line()
    line.store(STARTED)
    line.store(turn_started(1))
    line.stream(text[: data.draw(st.integers(0, len(text)))])
    for _ in range(data.draw(st.integers(1, 3))):
        line.cut()
        line.gateway.store(RunResumed("p2"))
        line.connect()
        line.store(turn_started(1))
        line.stream(text[: data.draw(st.integers(0, len(text)))])
    rest = text[len(line.gateway.streamed) :]
    if rest:
        line.stream(rest)
    line.store(answered(1, text))
    assert line.screen.turns == [text]
    assert line.screen.again == 0


def test_a_model_that_says_otherwise_after_a_restart_is_shown_from_its_beginning() -> None:
    line = Line()
    line.store(STARTED)
    line.store(turn_started(1))
    line.stream("The answer is 41")
    line.cut()
    line.gateway.store(RunResumed("p2"))
    line.connect()
    line.store(turn_started(1))
    line.stream("The answer ")
    assert line.screen.again == 0
    line.stream("was 42")
    assert (line.screen.again, line.screen.turn) == (1, "The answer was 42")


def test_a_second_answer_that_is_shorter_replaces_the_first() -> None:
    line = Line()
    line.store(STARTED)
    line.store(turn_started(1))
    line.stream("Yes, it is")
    line.store(RunResumed("p2"))
    line.store(turn_started(1))
    line.stream("Yes")
    line.store(answered(1, "Yes"))
    assert line.screen.turns == ["Yes"]


def test_text_that_was_missed_is_filled_in_when_the_turn_is_complete() -> None:
    """The rest of the text was streamed while nobody listened, and an event came after it."""
    line = Line()
    line.store(STARTED)
    line.store(turn_started(1))
    line.stream("one ")
    line.cut()
    line.stream("two ")
    line.store(Warned("queued", "something"))
    line.stream("three")
    line.connect()
    assert line.screen.turn == "one "
    line.store(answered(1, "one two three"))
    assert line.screen.turns == ["one two three"]
    assert line.screen.again == 0


def test_text_that_a_slow_client_never_got_before_an_event_is_shown_with_the_whole() -> None:
    """The connection stayed; the gateway dropped what was not read and went on from the journal."""
    line = Line()
    line.store(STARTED)
    line.store(turn_started(1))
    line.stream("one ")
    line.gateway.stream("two ")
    line.store(Warned("queued", "something"))
    line.stream("three")
    line.store(answered(1, "one two three"))
    assert line.screen.turns == ["one two three"]


def test_text_before_an_event_that_came_while_nobody_listened_is_not_lost() -> None:
    """All of it was streamed after a restart, and before the client was back."""
    line = Line()
    line.store(STARTED)
    line.store(turn_started(1))
    line.cut()
    line.store(RunResumed("p2"))
    line.store(turn_started(1))
    line.stream("one ")
    line.store(Warned("queued", "something"))
    line.stream("two")
    line.connect()
    line.store(answered(1, "one two"))
    assert line.screen.turns == ["one two"]


def test_coalesced_text_that_overlaps_what_was_shown_adds_only_what_is_new() -> None:
    line = Line()
    line.store(STARTED)
    start = line.gateway.store(turn_started(1))
    line.screen.show(line.client.event(start))
    line.screen.show(line.client.text(Place("r1", start.id, 0), "abc"))
    line.screen.show(line.client.text(Place("r1", start.id, 1), "bcdef"))
    line.screen.show(line.client.text(Place("r1", start.id, 0), "abc"))
    assert line.screen.turn == "abcdef"


def test_text_of_a_run_that_nobody_knows_waits_for_the_end_of_its_turn() -> None:
    line = Line(client=Unbroken(50))
    line.screen.show(line.client.text(Place("r1", 49, 10), "middle"))
    line.screen.show(line.client.event(Entry(ROOT, 3, 0.0, answered(1, "begin middle end"), 51)))
    assert line.screen.turns == ["begin middle end"]
