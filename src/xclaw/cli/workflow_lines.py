"""What a workflow script notes, as lines of text."""

from xclaw.cli.text import one_line
from xclaw.contracts.workflows import WorkflowNoted


def workflow_text(event: WorkflowNoted) -> str:
    """One line for whoever watches the run."""
    text = one_line(event.text, 300)
    match event.what:
        case "phase":
            return f"workflow phase: {text}"
        case "log":
            return f"workflow: {text}"
        case "reused":
            return f"workflow: answered before, taken from the earlier run: {text}"
        case "refused":
            return f"workflow: an agent was refused: {text}"
