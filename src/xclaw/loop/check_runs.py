"""The receipts of a run that was given commands to run: a part of its state."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from xclaw.contracts.events import ToolCallEnded, ToolCallStarted
from xclaw.contracts.messages import ToolCall
from xclaw.contracts.plans import Check, CheckRun
from xclaw.loop.json_blocks import decode_json

COMMAND_TOOL = "shell"
OUTPUT_CHARACTERS = 2_000
"""Of a command's output, from its end: errors come last."""


@dataclass(slots=True)
class CheckRuns:
    """What became of each check so far."""

    checks: tuple[Check, ...] = ()
    runs: list[CheckRun] = field(default_factory=list[CheckRun])
    begun: bool = False
    """A command has been started: the files may not be as they were."""
    is_broken: bool = False
    """A crash came in the middle of a command."""
    _started: dict[str, str] = field(default_factory=dict[str, str])

    def left(self) -> Sequence[Check]:
        """Those that were neither run nor refused, in order."""
        known = {run.command for run in self.runs}
        return [check for check in self.checks if check.command not in known]

    def asked_for(self, command: str) -> Check | None:
        return next((check for check in self.checks if check.command == command), None)

    def start(self, event: ToolCallStarted) -> None:
        if self.checks and event.name == COMMAND_TOOL:
            self.begun = True
            self._started[event.call_id] = command_of(event.arguments)

    def end(self, call: ToolCall, event: ToolCallEnded, *, interrupted: bool) -> None:
        """Keep the receipt of a check, one each. A call that was never let in for its form leaves none."""
        command = command_of(call.arguments) if self.checks else ""
        ran = self._started.get(event.call_id)
        if interrupted and ran is not None:
            self.is_broken = True
            return
        known = any(run.command == command for run in self.runs)
        if known or self.asked_for(command) is None or (ran is None and not event.refused):
            return
        edited = ran if ran is not None and ran != command else ""
        output = event.content[-OUTPUT_CHARACTERS:]
        self.runs.append(CheckRun(command, event.call_id, ran is not None, event.exit_code, output, edited))


def command_of(arguments: str) -> str:
    """The command line in a call's arguments; empty when there is none."""
    try:
        value = decode_json(arguments)
    except ValueError:
        return ""
    command = cast("dict[str, object]", value).get("command") if isinstance(value, dict) else None
    return command.strip() if isinstance(command, str) else ""
