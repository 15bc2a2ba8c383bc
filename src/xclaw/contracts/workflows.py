"""What a workflow script tells whoever watches."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class WorkflowNoted:
    """In the stream of the run whose call runs the script."""

    call_id: str
    what: Literal["phase", "log", "reused", "refused"]
    """A phase began; the script said something; the result of an earlier run was taken instead of starting
    an agent; an agent was not started."""
    text: str
    phase: str = ""
    """The phase that it was in."""
    kind: Literal["workflow_noted"] = "workflow_noted"
