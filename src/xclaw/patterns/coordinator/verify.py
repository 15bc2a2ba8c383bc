"""verify: real commands on what was delivered, run by a worker that made none of it (SPEC H1).

The verdict is read from exit codes: what the worker says of them is not looked at.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from xclaw.contracts.agents import Limits
from xclaw.contracts.coordination import Coordination
from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.ids import child_run_id
from xclaw.contracts.models import ToolSpec
from xclaw.contracts.plans import Check, CheckRun, Phase, Verdict
from xclaw.contracts.tasks import Task
from xclaw.contracts.tools import ToolContext, ToolOutput
from xclaw.contracts.unicode_forms import is_unicode
from xclaw.patterns.arguments import as_list, as_mapping, first_of, parsed_value, shown
from xclaw.patterns.children import attempt
from xclaw.patterns.coordinator.files import newest
from xclaw.patterns.coordinator.phases import PhaseCall
from xclaw.patterns.coordinator.reports import KeepNote, encoded, share
from xclaw.patterns.coordinator.settings import CoordinatorSettings
from xclaw.patterns.coordinator.workers import VERIFIER
from xclaw.patterns.parameters import list_of
from xclaw.patterns.render import failure_reason

ATTEMPTS = 2
"""Verifiers that may begin, where one ends before it has run everything."""
COMMAND_CHARACTERS = 4_000
SPARE_S = 900.0
"""Of a verifier's time, beside its commands: for its model."""
_EXAMPLE = '[{"command": "python3 -m unittest -v", "why": "the tests pass"}]'
_RECEIPT = re.compile(r"\[exit code -?[0-9]{1,6}\]\Z")
"""As `shell` shows it. A small model takes it for a part of the command that it repeats."""
_WITH_PROJECT = ": the user's project with all changes is in `project` there, other files beside it"


class VerifyTool:
    """Runs the checks through one worker. Cancelling ends it, with the command that it runs."""

    replayable: bool = True
    """The same call finds the worker that it had started."""
    timeout_s: float | None = None

    def __init__(self, settings: CoordinatorSettings, keep: KeepNote) -> None:
        self._settings = settings
        self._keep = keep
        check: dict[str, object] = {
            "type": "object",
            "properties": {
                "command": {
                    "type": "string",
                    "description": "A shell command; exit code 0 means that it passed",
                },
                "why": {"type": "string", "description": "What it shows"},
                "replaces": {
                    "type": "string",
                    "description": "The command that failed before, if it was wrong and this one stands for it",
                },
            },
            "required": ["command", "why"],
        }
        self.spec = ToolSpec(
            "verify",
            "The fourth phase: a worker that made nothing of it runs these commands, in order, in a directory "
            "that holds every delivered file under its name. Their exit codes are the verdict. What failed "
            "before is run again.",
            {
                "type": "object",
                "properties": {"checks": list_of(check, f"Each command once, e.g. {_EXAMPLE}")},
                "required": ["checks"],
            },
            effect="reads",
        )

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        call = PhaseCall("verify", context, self._settings)
        checks = self._checked(arguments.get("checks"))
        if not call.is_replayed:
            _refuse_dropped(checks, call.state)
        call.begin("verification", len(checks))
        runs, trouble = await self._run(checks, call, context)
        verdict = verdict_of(checks, runs)
        phase, round_ = self._after(verdict, call)
        call.end(phase, round_, verdict=verdict, checks=tuple(runs))
        record: dict[str, object] = {
            "phase": "verification",
            "round": f"{call.round} of {call.rounds}",
            "verdict": verdict,
            "next": context.coordination().next_step,
        }
        if trouble and verdict == "incomplete":
            record["reason"] = trouble
        record["checks"] = [
            _shown(check, runs, share(self._settings.report_chars, len(checks))) for check in checks
        ]
        await self._keep(context, f"verification-{call.round}.md", encoded(record), VERIFIER)
        return ToolOutput(encoded(record), ok=verdict == "passed")

    async def _run(
        self, checks: tuple[Check, ...], call: PhaseCall, context: ToolContext
    ) -> tuple[list[CheckRun], str]:
        """The receipts, and why there are not more of them. A worker that ends early is followed by another."""
        runs: list[CheckRun] = []
        trouble = ""
        for number in range(1, ATTEMPTS + 1):
            task = self._task(checks, number, call.state, with_project=context.project is not None)
            result = await attempt(context.spawn, task)
            run_id = child_run_id(context.run_id, context.call_id, task.key)
            runs = [replace(run, run_id=run_id) for run in result.checks]
            trouble = "the verifier ended without running every command"
            if not result.succeeded:
                trouble = f"{trouble}: {failure_reason(result)}"
            if len(runs) == len(checks):
                break
        for number, check in enumerate(checks, 1):
            call.part_ended(str(number), VERIFIER, _became(_run_of(check, runs)))
        return runs, trouble

    def _task(
        self, checks: tuple[Check, ...], number: int, state: Coordination, *, with_project: bool
    ) -> Task:
        return Task(
            VERIFIER,
            _instructions(checks, with_project=with_project),
            "delegate",
            key=f"verify:{number}",
            inputs=newest(state.delivered),
            checks=checks,
            limits=Limits(
                max_turns=len(checks) + 10, timeout_s=sum(check.timeout_s for check in checks) + SPARE_S
            ),
        )

    def _after(self, verdict: Verdict, call: PhaseCall) -> tuple[Phase, int]:
        """Where the work goes on, and in which round."""
        verifications = call.state.verifications + 1
        match verdict:
            case "failed" if call.round < call.rounds:
                return "implementation", call.round + 1
            case "incomplete" if verifications < call.rounds:
                return "verification", call.round
            case "passed" | "failed" | "incomplete" | "not_permitted":
                return "finished", call.round

    def _checked(self, value: object) -> tuple[Check, ...]:
        items = _items(value)
        most = self._settings.max_checks
        if len(items) > most:
            raise ToolFailed(f"`checks` has {len(items)} commands; at most {most} can be run")
        checks: dict[str, Check] = {}
        for index, item in enumerate(items):
            fields = as_mapping(item) or {"command": item}
            command = first_of(fields, ("command", "cmd", "shell"))
            place = f"checks[{index}].command"
            if not isinstance(command, str) or not command.strip():
                raise ToolFailed(f"{place} must be a command line, not {shown(command)}, e.g. {_EXAMPLE}")
            command, is_copy = _without_receipt(command.strip())
            if is_copy and command in checks:
                continue
            if len(command) > COMMAND_CHARACTERS or "\0" in command or not is_unicode(command):
                raise ToolFailed(
                    f"{place} must have at most {COMMAND_CHARACTERS} characters, no NUL and no half of one"
                )
            if command in checks:
                raise ToolFailed(f"{place}: {shown(command)} stands twice; each command is run once")
            why, replaces = fields.get("why"), fields.get("replaces")
            checks[command] = Check(
                command,
                str(why)[:500] if why else "",
                self._settings.check_timeout_s,
                _without_receipt(str(replaces).strip())[0] if replaces else "",
            )
        return tuple(checks.values())


def _without_receipt(command: str) -> tuple[str, bool]:
    """The command, and whether a receipt that was shown behind an earlier one had been copied along with it."""
    found = _RECEIPT.search(command)
    return (command[: found.start()].rstrip(), True) if found else (command, False)


def verdict_of(checks: Sequence[Check], runs: Sequence[CheckRun]) -> Verdict:
    """From exit codes alone. A program that is not there proves nothing about the work."""
    ran = [run for run in runs if run.ran]
    if any(not run.passed and not run.is_missing for run in ran):
        return "failed"
    if len(ran) < len(runs):
        return "not_permitted"
    if len(runs) < len(checks) or any(run.is_missing for run in ran):
        return "incomplete"
    return "passed"


def _items(value: object) -> list[object]:
    parsed = parsed_value(value) if isinstance(value, str) else value
    mapping = as_mapping(parsed)
    if mapping is not None:
        parsed = mapping.get("checks", [mapping])
    items = as_list(parsed)
    if items is None and isinstance(value, str) and value.strip()[:1] not in ("", "[", "{"):
        return [value]
    if not items:
        raise ToolFailed(f"`checks` must be a list of {{command, why}}, not {shown(value)}, e.g. {_EXAMPLE}")
    return items


def _refuse_dropped(checks: Sequence[Check], state: Coordination) -> None:
    """What failed is run again, or something stands in its place by name; and something was mended."""
    failed = {run.command for run in state.failed_checks if not run.is_missing}
    replaced = {check.replaces for check in checks if check.replaces in failed}
    dropped = failed - {check.command for check in checks} - replaced
    if dropped:
        listed = "; ".join(shown(command) for command in sorted(dropped))
        raise ToolFailed(
            f"these failed in the last verification and are not among the checks: {listed}. Run them again, or "
            "name each in `replaces` of the check that stands in its place"
        )
    if state.phase == "implementation" and not replaced:
        raise ToolFailed(f"nothing was mended since the last verification. Next: {state.next_step}")


def _instructions(checks: Sequence[Check], *, with_project: bool) -> str:
    lines = [f"{number}. {check.command}" for number, check in enumerate(checks, 1)]
    return (
        f"Check what others made; it lies in your task workspace{_WITH_PROJECT if with_project else ', read-only'}. Run each of these commands with the "
        "shell tool, exactly as written, in this order, each once, and nothing else:\n\n"
        + "\n".join(lines)
        + "\n\nGo on after one that fails. Then end with the result; in summary_data say of each which exit code "
        "it had."
    )


def _run_of(check: Check, runs: Sequence[CheckRun]) -> CheckRun | None:
    return next((run for run in runs if run.command == check.command), None)


def _became(run: CheckRun | None) -> str:
    if run is None:
        return "not run"
    if not run.ran:
        return "not permitted"
    return "passed" if run.passed else "failed"


def _shown(check: Check, runs: Sequence[CheckRun], characters: int) -> dict[str, object]:
    run = _run_of(check, runs)
    about: dict[str, object] = {"command": check.command, "why": check.why, "result": _became(run)}
    if run is None:
        return about
    if not run.ran:
        return {**about, "output_end": run.output[-characters:]}
    if run.edited:
        about["ran_instead"] = run.edited
    shown_end = 200 if run.passed else characters
    about |= {"exit_code": run.exit_code, "tool_call": run.call_id}
    return {**about, "output_end": run.output[-shown_end:]}
