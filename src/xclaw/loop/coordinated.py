"""The end of a coordinator's run: its outcome is what the last verification says (SPEC H1)."""

from dataclasses import replace

from xclaw.contracts.coordination import Coordination, is_coordinator
from xclaw.contracts.events import MessageAdded, Warned
from xclaw.contracts.plans import CheckRun
from xclaw.loop.parts import Ending, Parts

MAX_REMINDERS = 1
"""How often in a row a coordinator that stops in the middle is told what is left."""


def settled(parts: Parts, ending: Ending) -> Ending | None:
    """The ending as the runtime's record has it; None when the coordinator stops in the middle of its work
    and has been told so. Endings of other agents, and those that are no success, stay as they are."""
    if not is_coordinator(parts.tools) or ending.outcome not in ("success", "completed_unverified"):
        return ending
    state = parts.state.coordination
    if state.begun and state.offered and parts.state.corrections < MAX_REMINDERS and _has_turns(parts):
        parts.log.record(MessageAdded(_reminder(state), "runtime"))
        return None
    reason = _doubt(state)
    if state.verdict == "failed":
        parts.log.record(Warned("unverified", reason))
        return replace(ending, outcome="error", reason=reason)
    if reason:
        parts.log.record(Warned("unverified", reason))
        return replace(ending, outcome="completed_unverified", reason=reason)
    return ending


def _has_turns(parts: Parts) -> bool:
    return parts.state.turn < parts.bounds.max_turns


def _reminder(state: Coordination) -> str:
    return (
        f"The work is not done: it is in the phase {state.phase}, round {state.round} of {state.rounds}. Next: "
        f"{state.next_step}. If it cannot go on, answer once more and say why."
    )


def _doubt(state: Coordination) -> str:
    """Why this is no success; empty when it is one."""
    failed = ", ".join(_shown(run) for run in state.failed_checks)
    match state.verdict:
        case None if not state.begun:
            return "nothing was verified: the coordinator answered without any phase"
        case None:
            return f"nothing was verified: the run ended in the phase {state.phase}"
        case "failed":
            return f"the verification of round {_round_of(state)} failed: {failed}"
        case "not_permitted":
            refused = next((run for run in state.checks if not run.ran), None)
            why = f": {refused.output}" if refused else ""
            return f"commands are not permitted, so nothing was verified{why}"[:1_000]
        case "incomplete":
            return f"the verification could not be carried out{': ' + failed if failed else ''}"
        case "passed" if state.is_stale:
            return "files were delivered after the last verification"
        case "passed" if state.undone:
            return f"the checks passed, but tasks of the plan were not done: {', '.join(state.undone)}"
        case "passed":
            return ""


def _round_of(state: Coordination) -> str:
    """The round that the verdict belongs to: once it has failed, the next one has begun."""
    begun = state.phase == "implementation" or (state.phase == "verification" and state.verdict == "failed")
    return f"{state.round - 1 if begun else state.round} of {state.rounds}"


def _shown(run: CheckRun) -> str:
    code = "was stopped" if run.exit_code is None else f"ended with exit code {run.exit_code}"
    return f"`{run.command[:200]}` {code}"
