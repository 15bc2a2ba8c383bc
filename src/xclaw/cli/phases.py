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
        return f"{where}: a plan of {_counted(event.total, 'task')} was accepted"
    part = {"research": "worker", "implementation": "task", "verification": "check"}.get(event.phase)
    return f"{where}: {_counted(event.total, part)}" if part and event.total else where


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


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _round(event: PhaseChanged) -> str:
    return f" (round {event.round} of {event.rounds})" if event.phase in ROUNDS else ""


def _ended(event: PhaseChanged) -> str:
    kind = {"research": "question ", "verification": "check "}.get(event.phase, "")
    return f"{kind}{one_line(event.part, 60)}: {event.outcome.replace('_', ' ')}"


def _next(event: PhaseChanged) -> str:
    return "the work is over" if event.phase == "finished" else f"on to {event.phase}{_round(event)}"
