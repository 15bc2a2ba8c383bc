"""Lines for a person about what the agents are doing: few, short, and of one line each."""

from xclaw.contracts.events import ApprovalAsked, AttemptFailed, Entry, RunEnded, RunStarted, ToolCallStarted

MAX_LINES = 200
LINE_CHARACTERS = 200
_LAST = "... (the rest of the work is not shown)"


class WorkLines:
    """Of one tree. What runs, tools and models are called comes from outside: it is made printable."""

    def __init__(self, root_id: str, *, wanted: bool) -> None:
        self.lines: list[str] = []
        self._root_id = root_id
        self._wanted = wanted
        self._agents: dict[str, str] = {}

    def line_of(self, entry: Entry) -> str:
        """The new line that an entry makes; empty for none."""
        run_id = entry.address.run_id
        if isinstance(entry.event, RunStarted):
            self._agents[run_id] = entry.event.agent
        what = _told(entry, is_root=run_id == self._root_id)
        return self.line(f"[{self._agents.get(run_id, 'agent')}] {what}") if what else ""

    def line(self, text: str) -> str:
        """The new line of a text; empty for none."""
        line = _one_line(text)
        if not self._wanted or not line or len(self.lines) >= MAX_LINES:
            return ""
        if len(self.lines) == MAX_LINES - 1:
            line = _LAST
        self.lines.append(line)
        return line


def _told(entry: Entry, *, is_root: bool) -> str:
    match entry.event:
        case RunStarted() if not is_root:
            return "working..."
        case RunEnded(outcome=outcome) if not is_root:
            return "done" if outcome == "success" else outcome
        case ToolCallStarted(name=name):
            return name
        case AttemptFailed(model=model, next_model=str() as following):
            return f"{model} failed; trying {'it again' if following == model else following}"
        case ApprovalAsked(tool=tool, approval_id=approval_id):
            return f"waits until somebody allows {tool} or denies it (approval {approval_id})"
        case _:
            return ""


def _one_line(text: str) -> str:
    words = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return words if len(words) <= LINE_CHARACTERS else f"{words[: LINE_CHARACTERS - 3]}..."
