"""Who speaks in a tree: a short label for each run, and what it has spent so far."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from xclaw.cli.text import one_line
from xclaw.contracts.coordination import PHASE_TOOLS
from xclaw.contracts.events import (
    ApprovalAsked,
    AttemptFailed,
    ChildSpawned,
    Entry,
    RunEnded,
    RunStarted,
    ToolCallEnded,
)
from xclaw.contracts.usage import Spend
from xclaw.traces.spending import spend_of_event

LABEL_CHARACTERS = 40
COORDINATION = frozenset({"delegate", "debate", "pipeline", "spawn", "wait", "workflow", *PHASE_TOOLS})
"""Tools whose effect shows as runs, so that the calls themselves need not be shown."""


def failure_text(event: AttemptFailed) -> str:
    """What failed, why, and what is done about it; of a call that was cancelled, only that."""
    if event.error == "cancelled":
        return f"the call to {one_line(event.model)} was cancelled"
    if event.next_model is None:
        follow = "no other model is left"
    elif event.next_model == event.model:
        follow = "trying again"
    else:
        follow = f"trying {one_line(event.next_model)}"
    error = one_line(event.error.removeprefix(f"{event.model}: "), 200)
    return f"{one_line(event.model)} failed ({error}); {follow}"


def chosen_text(event: RunStarted) -> str:
    """Which expert answers and why, where the router or a mention chose one; else empty."""
    route = event.route
    if route is None or route.by in ("default", "client"):
        return ""
    return f"[{one_line(event.agent, LABEL_CHARACTERS)}] answers: {one_line(route.reason, 200)}"


def sandbox_text(event: RunStarted) -> str:
    """What commands of a root's tree are kept in by; empty in host mode."""
    match event.sandbox:
        case "":
            return ""
        case "host":
            return "[sandbox: host] commands run on this machine, and nothing keeps them in"
        case name:
            return f"[sandbox: {one_line(name, 20)}] commands of agents run in it"


@dataclass(slots=True)
class Speaker:
    """One run as it is shown."""

    name: str
    """Its agent."""
    label: str
    """What it is called beside others; empty for the root."""
    depth: int
    started_at: float
    is_root: bool
    working: bool = True
    spend: Spend = Spend()
    streamed: list[str] = field(default_factory=list[str])
    """Text of the turn that goes on, as it came."""
    doing: str = ""
    """The tool call that goes on."""
    asked: set[str] = field(default_factory=set[str])
    """Calls that a person was asked about, who knows what became of them."""
    phase: str = ""
    """Of a coordinator, and how far it is."""


def refused_text(speaker: Speaker, event: ToolCallEnded) -> str:
    """A call that was not permitted, which nobody saw begin, and why; empty where a person was asked about it."""
    if not event.refused or event.call_id in speaker.asked:
        return ""
    return f"not permitted: {one_line(event.content.removeprefix('error: '), 300)}"


class Speakers:
    """All runs of one tree that have been heard of."""

    def __init__(self) -> None:
        self._known: dict[str, Speaker] = {}

    def __iter__(self) -> Iterator[Speaker]:
        return iter(list(self._known.values()))

    def working(self) -> list[Speaker]:
        """Workers that have started and not ended, in the order they started."""
        return [speaker for speaker in self if speaker.working and not speaker.is_root]

    def get(self, run_id: str) -> Speaker | None:
        return self._known.get(run_id)

    def of(self, entry: Entry) -> Speaker:
        """The run that an entry belongs to, brought up to date with it."""
        run_id, event = entry.address.run_id, entry.event
        speaker = self._known.get(run_id)
        if speaker is None or isinstance(event, RunStarted):
            name = one_line(event.agent, LABEL_CHARACTERS) if isinstance(event, RunStarted) else ""
            depth = event.depth if isinstance(event, RunStarted) else 1
            is_root = not entry.address.parent_id
            label = "" if is_root else self._label(name or "worker")
            speaker = Speaker(label or name, label, depth, entry.at, is_root)
            self._known[run_id] = speaker
        speaker.spend += spend_of_event(event)
        if isinstance(event, RunEnded):
            speaker.working = False
        if isinstance(event, ChildSpawned):
            speaker.doing = ""
        if isinstance(event, ApprovalAsked):
            speaker.asked.add(event.call_id)
        return speaker

    def _label(self, name: str) -> str:
        """The agent's name, numbered when a run of that name is at work already."""
        taken = {speaker.label for speaker in self.working()}
        label, number = name, 1
        while label in taken:
            number += 1
            label = f"{name}#{number}"
        return label
