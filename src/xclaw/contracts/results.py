"""How a run ended and what it hands up."""

from dataclasses import dataclass, field
from typing import Literal

from xclaw.contracts.artifacts import Pointer
from xclaw.contracts.plans import CheckRun
from xclaw.contracts.usage import Spend

Outcome = Literal[
    "success",
    "completed_unverified",
    "error",
    "cancelled",
    "timeout",
    "exhausted",
    "stuck",
    "over_budget",
    "interrupted",
]
"""How a run ended. "completed_unverified": the agent says it is done, and the runtime has no evidence
for a task that asked for effects. "exhausted": the turn limit. "stuck": the loop detector.
"interrupted": it was closed after a crash instead of being resumed."""

SUCCESSFUL: frozenset[Outcome] = frozenset({"success", "completed_unverified"})
STOPPED_BY_LIMIT: frozenset[Outcome] = frozenset({"timeout", "exhausted", "stuck", "over_budget"})


def _no_pointers() -> dict[str, Pointer]:
    return {}


@dataclass(frozen=True, slots=True)
class Result:
    """What a run hands to whoever started it. The runtime sets `outcome`; a model only proposes."""

    outcome: Outcome
    text: str = ""
    """The final text; for a run that was stopped, what it had so far."""
    summary_data: object = None
    """Decisions and metadata (SPEC E1): JSON values. Not None on success of a structured result."""
    pointers: dict[str, Pointer] = field(default_factory=_no_pointers)
    """Verified artifacts by the name the worker gave them."""
    reason: str = ""
    """Why the outcome is what it is; empty only on plain success."""
    structured: bool = True
    """False when the worker kept missing the result form and its text was passed on (SPEC E1)."""
    spend: Spend = Spend()
    """Of the run and everything below it."""
    duration_s: float = 0.0
    checks: tuple[CheckRun, ...] = ()
    """What became of the commands that its task had to run: receipts, not claims."""
    branch: str = ""
    """Of a user's project: the branch that holds its changes, or those of its workers put together. Of a root,
    the one in the user's repository."""

    @property
    def succeeded(self) -> bool:
        return self.outcome in SUCCESSFUL
