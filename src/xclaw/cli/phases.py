"""The phases of a coordinator as lines of text."""

from xclaw.cli.text import one_line
from xclaw.contracts.events import PhaseChanged
from xclaw.contracts.plans import CheckRun

COMMAND_CHARACTERS = 120
ROUNDS = ("implementation", "verification")
"""Phases that may come again."""


def phase_text(event: PhaseChanged) -> str:
    """A phase that began or was left, or a part of one that has ended."""
    where = f"phase {event.phase}{_round(event)}"
    if event.part:
        return f"{where}: {event.done}/{event.total}, {one_line(event.agent, 40)} {_ended(event)}"
    if event.verdict is not None:
        return f"verification {event.verdict.replace('_', ' ')}; {_next(event)}"
    if event.plan:
        return f"{where}: a plan of {event.total} tasks was accepted"
    parts = {"research": "workers", "implementation": "tasks", "verification": "checks"}.get(event.phase)
    return f"{where}: {event.total} {parts}" if parts and event.total else where


def phase_short(event: PhaseChanged) -> str:
    """The same for a place where one line is all there is."""
    return f"{event.phase}{_round(event)} {event.done}/{event.total}" if event.total else event.phase


def check_text(run: CheckRun) -> str:
    """A command and what became of it."""
    if not run.ran:
        became = "not permitted"
    elif run.exit_code is None:
        became = "stopped, its time was over"
    else:
        became = f"exit code {run.exit_code}"
    return f"{one_line(run.command, COMMAND_CHARACTERS)}: {became}"


def _round(event: PhaseChanged) -> str:
    return f" (round {event.round} of {event.rounds})" if event.phase in ROUNDS else ""


def _ended(event: PhaseChanged) -> str:
    kind = {"research": "question ", "verification": "check "}.get(event.phase, "")
    return f"{kind}{one_line(event.part, 60)}: {event.outcome.replace('_', ' ')}"


def _next(event: PhaseChanged) -> str:
    return "the work is over" if event.phase == "finished" else f"on to {event.phase}{_round(event)}"
