"""What a coordinator plans and has checked (SPEC H1, H5)."""

from dataclasses import dataclass
from typing import Literal

Phase = Literal["research", "synthesis", "implementation", "verification", "finished"]
Verdict = Literal["passed", "failed", "not_permitted", "incomplete"]
"""Of a verification, from exit codes alone. "incomplete": some command could not be run at all, which
says nothing of the work."""


@dataclass(frozen=True, slots=True)
class PlannedTask:
    """One node of a plan."""

    id: str
    agent: str
    task: str
    inputs: tuple[str, ...] = ()
    """Paths of artifacts that are handed on, beside the results of what it depends on."""
    writes: tuple[str, ...] = ()
    """Files and directories that it alone writes while it runs; normalised."""
    depends_on: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """A command whose exit code decides."""

    command: str
    why: str = ""
    timeout_s: float = 600.0
    replaces: str = ""
    """The command of the verification before, which failed, in whose place it stands."""


@dataclass(frozen=True, slots=True)
class CheckRun:
    """The receipt of a check: what became of the tool call that ran it."""

    command: str
    """As it was asked for."""
    call_id: str
    ran: bool
    """False: it was not permitted."""
    exit_code: int | None
    """None of a command that was not run, or was killed when its time was over."""
    output: str
    """The end of it."""
    edited: str = ""
    """What ran instead, where the user changed it."""
    run_id: str = ""
    """The run that the call belongs to."""

    @property
    def passed(self) -> bool:
        return self.ran and self.exit_code == 0

    @property
    def is_missing(self) -> bool:
        """The shell found no such program, or could not start it."""
        return self.ran and self.exit_code in (126, 127)
