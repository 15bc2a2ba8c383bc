"""Runs that were given commands to run: those, in order, each once, and no others."""

from collections.abc import Sequence

from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.messages import ToolCall
from xclaw.contracts.plans import Check
from xclaw.contracts.tools import Tool
from xclaw.loop.check_runs import COMMAND_TOOL
from xclaw.loop.parts import Admitted, Gate
from xclaw.loop.state import RunState


class CheckGate:
    """Stands in front of another gate: whoever checks cannot mend what it checks, nor try until it passes."""

    def __init__(self, gate: Gate, state: RunState) -> None:
        self._gate = gate
        self._state = state

    async def admit(self, tool: Tool, call: ToolCall, arguments: dict[str, object]) -> Admitted:
        if tool.spec.name != COMMAND_TOOL:
            return await self._gate.admit(tool, call, arguments)
        command = str(arguments.get("command", "")).strip()
        runs = self._state.check_runs
        check = runs.asked_for(command)
        left = runs.left()
        if runs.is_broken:
            raise ToolFailed(
                "a crash came in the middle of a check; end with the result, another run begins anew"
            )
        if check is None:
            raise ToolFailed(f"this task runs only its own commands, exactly as written. {_next(left)}")
        if check not in left:
            raise ToolFailed(f"this check has been run, and its exit code stands. {_next(left)}")
        if check != left[0]:
            raise ToolFailed(f"checks run in their order. {_next(left)}")
        admitted = await self._gate.admit(tool, call, {"command": command, "timeout_s": check.timeout_s})
        timeout_s = {"timeout_s": check.timeout_s}
        return Admitted({**admitted.arguments, **timeout_s}, admitted.written, admitted.note)


def _next(left: Sequence[Check]) -> str:
    return f"Next: {left[0].command}" if left else "All have been run: end with the result"
