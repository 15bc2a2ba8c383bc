"""What coordinator mode can be told."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CoordinatorSettings:
    mode: bool = False
    """The coordinator answers in the orchestrator's place."""
    max_rounds: int = 3
    """Plans, each with its implementation and verification."""
    max_questions: int = 12
    """Of one research."""
    max_tasks: int = 40
    """Of one plan."""
    max_checks: int = 20
    """Of one verification."""
    check_timeout_s: float = 600.0
    """Of one command of a verification."""
    report_chars: int = 6_000
    """What the coordinator is shown of all reports of a phase together; the rest by pointer."""
