"""What a parent hands a child."""

from dataclasses import dataclass
from typing import Literal

from xclaw.contracts.agents import Isolation, Limits
from xclaw.contracts.artifacts import Pointer
from xclaw.contracts.plans import Check
from xclaw.contracts.teams import Seat

Mode = Literal["delegate", "debate", "pipeline", "spawn", "team", "workflow"]

Context = Literal["none", "brief", "files", "fork"]
"""What a child is given beside its task: nothing, a digest of its parent's conversation, artifacts to
read, or a copy of the conversation."""


@dataclass(frozen=True, slots=True)
class Task:
    """One piece of work for one worker. `text` must stand alone: the child sees nothing else."""

    agent: str
    text: str
    mode: Mode
    key: str
    """Tells the children of one tool call apart; stable across replays."""
    inputs: tuple[Pointer, ...] = ()
    """Artifacts the child may read; nothing else of its siblings is visible to it."""
    output_schema: dict[str, object] | None = None
    """JSON Schema that replaces the shape of summary_data (SPEC E4)."""
    structured: bool = True
    """The child must end with the result form (SPEC E1); debaters and pipeline steps need not."""
    limits: Limits = Limits()
    step: int = 0
    """Position in a pipeline, from 0."""
    isolation: Isolation | None = None
    """The kind of sub-agent; None: what its agent's definition says."""
    context: Context = "none"
    checks: tuple[Check, ...] = ()
    """Commands that the child has to run, in order, each once, and no others. Its `inputs` then lie in its
    private directory as files, under the names they were delivered by."""
    seat: Seat | None = None
    """Its place in a team; its `key` is then its name there."""
    onto: str = ""
    """The commit of the user's project that it sees and begins at; empty: what its parent saw or merged last."""
