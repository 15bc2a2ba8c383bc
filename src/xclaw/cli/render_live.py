"""Shows a tree of runs on a terminal: streamed text above, a live tree of the workers below."""

import time
from collections.abc import Callable, Iterable
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from xclaw.cli.phases import check_text, phase_short, phase_text
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
from xclaw.cli.text import money, one_line, printable, seconds, tokens
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

FRAMES_PER_SECOND = 8
LEAST_ROWS = 4


class LiveRenderer:
    """Owns the lower part of the terminal from the first event until `close`.

    The text of the turn that goes on is drawn in the live part, and printed for good once the turn
    is complete: a retracted text simply vanishes.
    """

    def __init__(self, stream: TextIO, typed: Callable[[], str] = str) -> None:
        """`typed`: what the user is typing meanwhile; shown below."""
        self._typed = typed
        self._console = Console(file=stream, highlight=False, markup=False, emoji=False)
        self._speakers = Speakers()
        self._text: list[str] = []
        """The root's text of the turn that goes on."""
        self._shown = ""
        self._said_scripted = False
        self._said_sandbox = ""
        self._spinner = Spinner("dots")
        self._live = Live(
            console=self._console,
            get_renderable=self._view,
            refresh_per_second=FRAMES_PER_SECOND,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()

    @property
    def closed(self) -> bool:
        """A terminal that goes away says so with a signal instead."""
        return False

    def learn(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self._speakers.of(entry)

    def receive(self, entry: Entry) -> None:
        speaker = self._speakers.of(entry)
        event = entry.event
        match event:
            case TextDelta():
                self._add(speaker, event.text)
            case ModelAnswered():
                self._answered(speaker, event)
            case AttemptFailed():
                self._retract(speaker, event)
            case ToolCallStarted() if event.name not in COORDINATION:
                speaker.doing = f"{event.name} {one_line(event.arguments, 60)}"
            case ToolCallEnded():
                self._call_ended(speaker, event)
            case PhaseChanged():
                self._phase(speaker, event)
            case WorkflowNoted() | ProjectMerged():
                self._print(Text(f"{speaker.label} {noted_text(event)}".strip(), style="dim"))
            case RunStarted() | RunEnded() | ArtifactDelivered() | Warned():
                self._milestone(speaker, event, entry.at)
            case ApprovalAsked() | ApprovalAnswered():
                self._print(Text(f"{speaker.label} {approval_line(event)}".strip(), style="yellow"))
            case _:
                pass

    def note(self, text: str) -> None:
        """Print something above what is drawn."""
        self._print(Text(text, style="yellow"))

    def start_again(self, address: Address) -> None:
        """What was drawn vanishes."""
        speaker = self._speakers.get(address.run_id)
        if speaker is not None:
            speaker.streamed.clear()
            if speaker.is_root:
                self._text.clear()

    def finish(self, result: Result) -> None:
        self.close()
        self._keep("".join(self._text))
        if result.text.strip() and result.text.strip() != self._shown.strip():
            self._keep(result.text)
        spend = result.spend
        parts = [
            result.outcome,
            seconds(result.duration_s),
            f"{tokens(spend.usage.total_tokens, estimated=spend.usage.estimated)} tokens",
            money(spend.cost_usd),
        ]
        self._print(Text(" · ".join(parts), style="dim"))

    def close(self) -> None:
        self._live.stop()

    def reopen(self) -> None:
        self._live.start()

    def _call_ended(self, speaker: Speaker, event: ToolCallEnded) -> None:
        speaker.doing = ""
        if refused := refused_text(speaker, event):
            self._print(Text(f"{speaker.label} {refused}".strip(), style="yellow"))

    def _phase(self, speaker: Speaker, event: PhaseChanged) -> None:
        """Beside the run's name how far it is; above, each phase once and how each check ended."""
        speaker.phase = phase_short(event)
        for run in event.checks:
            self._print(Text(f"  {check_text(run)}", style="green" if run.passed else "red"))
        if not event.part:
            self._print(Text(f"{speaker.label} {phase_text(event)}".strip(), style="cyan"))

    def _milestone(
        self, speaker: Speaker, event: RunStarted | RunEnded | ArtifactDelivered | Warned, at: float
    ) -> None:
        match event:
            case RunStarted():
                if event.scripted and not self._said_scripted:
                    self._said_scripted = True
                    self._print(Text("[scripted model] replies come from a script", style="yellow"))
                if (kept_in := sandbox_text(event)) and kept_in != self._said_sandbox:
                    self._said_sandbox = kept_in
                    self._print(Text(kept_in, style="yellow" if event.sandbox == "host" else "dim"))
                if speaker.is_root and (chosen := chosen_text(event)):
                    self._print(Text(chosen, style="dim"))
            case ArtifactDelivered():
                self._print(
                    Text(f"{speaker.label} delivered {printable(event.pointer.path)}".strip(), "green")
                )
            case Warned():
                self._print(Text(f"{speaker.label} warning: {one_line(event.text, 300)}".strip(), "yellow"))
            case RunEnded() if not speaker.is_root:
                self._print(self._summary(speaker, event, at))
            case _:
                pass

    def _summary(self, speaker: Speaker, event: RunEnded, at: float) -> Text:
        good = event.outcome in SUCCESSFUL
        line = Text(f"{'  ' * (speaker.depth - 1)}{'✓' if good else '✗'} {speaker.label} ")
        line.stylize("green" if good else "red")
        line.append(self._figures(speaker, at), "dim")
        if event.outcome != "success":
            line.append(
                f" {event.outcome}: {one_line(event.result.reason, 200)}", "yellow" if good else "red"
            )
        return line

    def _add(self, speaker: Speaker, text: str) -> None:
        speaker.streamed.append(text)
        if speaker.is_root:
            self._text.append(text)

    def _answered(self, speaker: Speaker, event: ModelAnswered) -> None:
        speaker.streamed.clear()
        if speaker.is_root:
            text = "".join(self._text) or event.message.text
            self._text.clear()
            self._keep(text)

    def _retract(self, speaker: Speaker, event: AttemptFailed) -> None:
        speaker.streamed.clear()
        if speaker.is_root:
            self._text.clear()
        who = f"{speaker.label}: " if speaker.label else ""
        self._print(Text(who + failure_text(event), style="yellow"))

    def _keep(self, text: str) -> None:
        """Print a finished text for good."""
        if text.strip():
            self._shown = text
            self._print(Text(printable(text).strip("\n")))

    def _print(self, text: Text) -> None:
        self._console.print(text)

    def _figures(self, speaker: Speaker, now: float) -> str:
        usage = speaker.spend.usage
        return (
            f"{seconds(max(0.0, now - speaker.started_at))} · "
            f"{tokens(usage.total_tokens, estimated=usage.estimated)} tokens · {money(speaker.spend.cost_usd)}"
        )

    def _view(self) -> RenderableType:
        """What the live part shows now; called by the refreshing thread."""
        now = time.time()
        speakers = [speaker for speaker in self._speakers if speaker.working]
        text = printable("".join(list(self._text)))
        parts: list[RenderableType] = []
        if text.strip():
            rows = max(LEAST_ROWS, self._console.height - len(speakers) - 4)
            tail = Text("\n".join(text.split("\n")[-rows:]))
            tail.truncate(self._console.width * rows)
            parts.append(tail)
        parts.append(self._tree(speakers, now))
        if typed := printable(self._typed()):
            parts.append(Text(f"you> {typed[-(self._console.width - 7) :]}▏", no_wrap=True))
        return Group(*parts) if len(parts) > 1 else parts[0]

    def _tree(self, speakers: list[Speaker], now: float) -> RenderableType:
        """The run itself and the workers below it, each with its figures."""
        if not speakers:
            return self._spinner
        table = Table.grid(padding=(0, 1))
        for speaker in speakers:
            last = "".join(speaker.streamed[-40:]).rstrip().rpartition("\n")[2]
            doing = speaker.phase or speaker.doing or ("" if speaker.is_root else last)
            table.add_row(
                self._spinner,
                Text("  " * speaker.depth + speaker.name, style="bold", no_wrap=True),
                Text(self._figures(speaker, now), style="dim", no_wrap=True),
                Text(one_line(doing, 60), style="dim italic", no_wrap=True, overflow="ellipsis"),
            )
        return table
