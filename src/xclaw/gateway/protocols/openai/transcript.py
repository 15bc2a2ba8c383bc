"""What a client is shown of a run: the answer's text, and lines about the work.

A wire of this kind cannot take back what it sent, and whether a turn's text is the answer is known only
when the turn is over. So the text of a turn is held until it is longer than what models say before
they call a tool. The same events make the same text whether it is streamed or not.
"""

from dataclasses import dataclass

from xclaw.contracts.events import (
    ApprovalAsked,
    ArtifactDelivered,
    AttemptFailed,
    Entry,
    ModelAnswered,
    RunStarted,
    TextDelta,
    ToolCallStarted,
    TurnStarted,
)
from xclaw.contracts.tokens import TOKENS_PER_CHARACTER, TOKENS_PER_EXTRA_BYTE
from xclaw.gateway.protocols.openai.work_lines import WorkLines

HELD_CHARACTERS = 240
"""Text of a turn up to this length is shown only once it is known to belong to the answer."""
SEPARATOR = "\n\n"
"""Between the texts of two turns that both belong to the answer."""


@dataclass(frozen=True, slots=True)
class Content:
    """Text of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Progress:
    """One line about the work."""

    line: str


Piece = Content | Progress


@dataclass(frozen=True, slots=True)
class Showing:
    """How a client wants to be shown a run."""

    is_streamed: bool
    whole: bool = False
    """Show no text before the end: it has to be checked first."""
    max_tokens: int | None = None
    with_progress: bool = True


class Transcript:
    """Folds the entries of one tree. Never raises; memory is bounded by the answer's length."""

    def __init__(self, root_id: str, showing: Showing) -> None:
        self.agent = ""
        """Who answers."""
        self.last: ModelAnswered | None = None
        """The root's last reply."""
        self.deliveries: list[Entry] = []
        """Entries that name delivered files."""
        self.is_broken = False
        """A model took back what the client has, and the next one said something else."""
        self.is_full = False
        """The client's limit was reached: what comes now is not shown."""
        self._root_id = root_id
        self._showing = showing
        self._limit = HELD_CHARACTERS
        self._work = WorkLines(root_id, wanted=showing.with_progress)
        self._content: list[str] = []
        self._pending: list[Piece] = []
        self._said: list[str] = []
        """Text of the current turn, of its current attempt."""
        self._shown = 0
        """How many of its characters are in `_content`."""
        self._owed = ""
        """What a failed attempt of this turn has shown: the next one has to begin with it."""
        self._mark = 0
        """How much of `_content` came before this turn."""
        self._tokens_left = float("inf") if showing.max_tokens is None else float(showing.max_tokens)

    @property
    def content(self) -> str:
        return "".join(self._content)

    @property
    def progress(self) -> str:
        return "\n".join(self._work.lines)

    @property
    def must_stop(self) -> bool:
        """Nothing that the run still says can be shown."""
        return self.is_broken or self.is_full

    @property
    def has_news(self) -> bool:
        return bool(self._pending) or self.must_stop

    def take(self) -> list[Piece]:
        """What came since the last time; neighbouring text as one piece."""
        pending, self._pending = self._pending, []
        taken: list[Piece] = []
        for piece in pending:
            last = taken[-1] if taken else None
            if isinstance(piece, Content) and isinstance(last, Content):
                taken[-1] = Content(last.text + piece.text)
            else:
                taken.append(piece)
        return taken

    def feed(self, entry: Entry) -> None:
        if self.must_stop:
            return
        if isinstance(entry.event, ArtifactDelivered):
            self.deliveries.append(entry)
        if entry.address.run_id == self._root_id:
            self._feed_root(entry)
        self._show_line(self._work.line_of(entry))

    def conclude(self, text: str) -> None:
        """The run has ended well, and `text` is what its last turn said: it belongs to the answer."""
        if self.must_stop:
            return
        self._say_whole(text)
        self._show_turn()
        self.is_broken = self.is_broken or bool(self._owed)

    # --- the root

    def _feed_root(self, entry: Entry) -> None:
        match entry.event:
            case RunStarted() as started:
                self.agent = started.agent
                if not started.tools:
                    self._limit = 0  # whatever it says is the answer
            case TurnStarted():
                self._begin_turn()
            case TextDelta(text=text):
                self._hear(text)
            case AttemptFailed():
                self._take_back()
            case ModelAnswered() as answered:
                self.last = answered
                self._say_whole(answered.message.text)
                self._show_long()
            case ToolCallStarted() | ApprovalAsked():
                self._set_aside()
            case _:
                pass

    def _set_aside(self) -> None:
        """What the turn has said and did not show is no answer."""
        if not self._shown and not self._owed:
            self._show_line(self._work.line("".join(self._said)))
            self._said = []

    def _show_line(self, line: str) -> None:
        if line:
            self._pending.append(Progress(line))

    def _begin_turn(self) -> None:
        self._set_aside()
        self._said, self._shown, self._mark = [], 0, len(self._content)

    def _hear(self, text: str) -> None:
        self._said.append(text)
        if self._shown and not self._owed:
            self._shown += len(text)
            self._add(text)
        else:
            self._show_long()

    def _say_whole(self, whole: str) -> None:
        """The turn is over, and this is all that it said; what is shown already stays."""
        said = "".join(self._said)
        if whole.startswith(said[: self._shown]):
            self._said = [whole]

    def _take_back(self) -> None:
        """A model failed in the middle of what it said."""
        if not self._showing.is_streamed:
            self._tokens_left += sum(_tokens(text) for text in self._content[self._mark :])
            del self._content[self._mark :]
        elif self._shown:
            self._owed = "".join(self._said)[: self._shown]
        self._said, self._shown = [], 0

    def _show_long(self) -> None:
        if self._showing.whole:
            return
        if self._shown or self._owed or sum(map(len, self._said)) > self._limit:
            self._show_turn()

    def _show_turn(self) -> None:
        said = "".join(self._said)
        if self._owed:
            known = min(len(self._owed), len(said))
            self.is_broken = said[:known] != self._owed[:known]
            if self.is_broken or known < len(self._owed):
                return
            self._shown, self._owed = known, ""
        rest = said[self._shown :]
        if not rest or (not self._shown and not rest.strip()):
            return
        begins = not self._shown and bool(self._content)
        self._shown = len(said)
        self._add(SEPARATOR + rest if begins else rest)

    def _add(self, text: str) -> None:
        kept = text if self._tokens_left >= _tokens(text) else _within(text, self._tokens_left)
        self.is_full = len(kept) < len(text)
        self._tokens_left -= _tokens(kept)
        if kept:
            self._content.append(kept)
            self._pending.append(Content(kept))


def _tokens(text: str) -> float:
    """As `estimate_tokens`, but exact for texts that are added up."""
    extra_bytes = 0 if text.isascii() else len(text.encode("utf-8", "replace")) - len(text)
    return len(text) * TOKENS_PER_CHARACTER + extra_bytes * TOKENS_PER_EXTRA_BYTE


def _within(text: str, tokens: float) -> str:
    """As much of `text` as fits."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if _tokens(text[:middle]) <= tokens:
            low = middle
        else:
            high = middle - 1
    return text[:low]
