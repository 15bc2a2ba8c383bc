"""Shows a tree of runs as plain lines: for pipes, files, and terminals without colour."""

from collections.abc import Iterable, Iterator

from xclaw.cli.output import Lines
from xclaw.cli.phases import check_text, phase_text
from xclaw.cli.project_lines import noted_text
from xclaw.cli.questions import approval_line
from xclaw.cli.speakers import (
    COORDINATION,
    Speaker,
    Speakers,
    chosen_text,
    failure_text,
    refused_text,
    sandbox_text,
)
from xclaw.cli.text import one_line, printable, unfinished_sequence
from xclaw.contracts.events import (
    Address,
    ApprovalAnswered,
    ApprovalAsked,
    ArtifactDelivered,
    AttemptFailed,
    Entry,
    ModelAnswered,
    PhaseChanged,
    RunEnded,
    RunStarted,
    TextDelta,
    ToolCallEnded,
    ToolCallStarted,
    Warned,
)
from xclaw.contracts.projects import ProjectMerged
from xclaw.contracts.results import SUCCESSFUL, Result
from xclaw.contracts.workflows import WorkflowNoted

STARTED_AGAIN = "[started again]"
SCRIPTED = "[scripted model] the replies come from a script, not from a language model"


class PlainRenderer:
    """Writes a worker's text line by line, each line with its name, so parallel workers never mix.

    The root's text is written as it comes while no worker is at work. Progress and the root's text
    may go to two streams.
    """

    def __init__(self, progress: Lines, answer: Lines | None) -> None:
        """`answer` gets the root's text; None: no text is shown, neither the root's nor a worker's."""
        self._progress = progress
        self._answer = answer
        self._speakers = Speakers()
        self._unfinished: dict[str, str] = {}
        """The last, incomplete line of each run that writes by line, by label."""
        self._shown = ""
        """The root's text of its last turn, as it was shown."""
        self._said_scripted = False
        self._said_sandbox = ""
        self._cut = ""
        """The beginning of an escape sequence that a piece of the root's text ended in."""
        self._visible: set[str] = set()
        """Labels of runs of which some text of this turn has been written."""

    @property
    def closed(self) -> bool:
        return self._answer is not None and self._answer.closed

    def learn(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self._speakers.of(entry)

    def receive(self, entry: Entry) -> None:
        speaker = self._speakers.of(entry)
        event = entry.event
        match event:
            case TextDelta():
                self._text(speaker, event.text)
            case RunStarted():
                self._started(speaker, event)
            case ModelAnswered():
                self._answered(speaker, event)
            case AttemptFailed():
                self._retract(speaker, event)
            case ToolCallStarted() if event.name not in COORDINATION:
                self._note(speaker, f"> {event.name} {one_line(event.arguments)}")
            case WorkflowNoted() | ProjectMerged():
                self._note(speaker, noted_text(event))
            case (
                ToolCallEnded()
                | ArtifactDelivered()
                | ApprovalAsked()
                | ApprovalAnswered()
                | PhaseChanged()
                | Warned()
            ):
                for line in _remarks(speaker, event):
                    self._note(speaker, line)
            case RunEnded():
                self._ended(speaker, event)
            case _:
                pass

    def start_again(self, address: Address) -> None:
        speaker = self._speakers.get(address.run_id)
        if speaker is None:
            return
        self._unfinished.pop(speaker.label, None)
        shown = speaker.label in self._visible
        self._visible.discard(speaker.label)
        speaker.streamed.clear()
        if speaker.is_root:
            self._shown = self._cut = ""
        if shown and self._answer is not None:
            self._answer.end_line()
            self._progress.line(f"[{speaker.label}] {STARTED_AGAIN}" if speaker.label else STARTED_AGAIN)

    def finish(self, result: Result) -> None:
        """Show the answer if it was not streamed, so that it always ends what was written."""
        for speaker in self._speakers:
            self._flush(speaker)
        answer = self._answer
        if answer is not None:
            if result.text.strip() and result.text.strip() != self._shown.strip():
                answer.line(printable(result.text).rstrip("\n"))
            answer.end_line()

    def close(self) -> None:
        return

    def reopen(self) -> None:
        return

    def _started(self, speaker: Speaker, event: RunStarted) -> None:
        if event.scripted and not self._said_scripted:
            self._said_scripted = True
            self._progress.line(SCRIPTED)
        if (kept_in := sandbox_text(event)) and kept_in != self._said_sandbox:
            self._said_sandbox = kept_in
            self._progress.line(kept_in)
        if not speaker.is_root:
            self._note(speaker, "working...")
        elif chosen := chosen_text(event):
            self._progress.line(chosen)

    def _ended(self, speaker: Speaker, event: RunEnded) -> None:
        self._flush(speaker)
        if speaker.is_root:
            return
        reason = one_line(event.result.reason, 300)
        how = "" if event.outcome in SUCCESSFUL else f" ({event.outcome}{': ' if reason else ''}{reason})"
        self._note(speaker, f"done{how}")

    def _text(self, speaker: Speaker, text: str) -> None:
        speaker.streamed.append(text)
        if self._answer is None:
            return
        if speaker.is_root and not self._speakers.working() and not self._unfinished.get(""):
            whole = self._cut + text
            self._cut = unfinished_sequence(whole)
            self._answer.piece(printable(whole.removesuffix(self._cut)))
            self._visible.add("")
            return
        whole, newline, rest = (self._unfinished.get(speaker.label, "") + text).rpartition("\n")
        if newline:
            self._lines(speaker, whole)
        self._unfinished[speaker.label] = rest

    def _answered(self, speaker: Speaker, event: ModelAnswered) -> None:
        streamed = "".join(speaker.streamed)
        speaker.streamed.clear()
        if not streamed and event.message.text.strip() and self._answer is not None:
            self._lines(speaker, event.message.text.strip("\n"))
            streamed = event.message.text
        self._flush(speaker)
        self._visible.discard(speaker.label)
        if speaker.is_root:
            self._shown = streamed

    def _retract(self, speaker: Speaker, event: AttemptFailed) -> None:
        self._unfinished.pop(speaker.label, None)
        shown = speaker.label in self._visible
        self._visible.discard(speaker.label)
        speaker.streamed.clear()
        if speaker.is_root:
            self._shown = self._cut = ""
        what = "withdrawn: what it said above does not count; " if shown else ""
        self._note(speaker, what + failure_text(event))

    def _flush(self, speaker: Speaker) -> None:
        """Write the incomplete line of a run that has said all it had to say."""
        rest = self._unfinished.pop(speaker.label, "")
        if rest.strip():
            self._lines(speaker, rest)
        elif speaker.is_root and self._answer is not None:
            self._answer.end_line()

    def _lines(self, speaker: Speaker, text: str) -> None:
        answer = self._answer
        if answer is None:
            return
        self._visible.add(speaker.label)
        for line in printable(text).split("\n"):
            if speaker.is_root:
                answer.line(line)
            else:
                self._progress.line(f"[{speaker.label}] {line}")

    def _note(self, speaker: Speaker, text: str) -> None:
        if self._answer is not None and self._answer is not self._progress:
            self._answer.end_line()
        self._progress.line(f"[{speaker.label}] {text}" if speaker.label else f"[xclaw] {text}")


def _remarks(
    speaker: Speaker,
    event: ToolCallEnded | ArtifactDelivered | ApprovalAsked | ApprovalAnswered | PhaseChanged | Warned,
) -> Iterator[str]:
    match event:
        case ToolCallEnded():
            if refused := refused_text(speaker, event):
                yield refused
        case ArtifactDelivered():
            yield f"delivered: {printable(event.pointer.path)}"
        case ApprovalAsked() | ApprovalAnswered():
            yield approval_line(event)
        case PhaseChanged():
            yield from map(check_text, event.checks)
            yield phase_text(event)
        case Warned():
            yield f"warning: {one_line(event.text, 300)}"
