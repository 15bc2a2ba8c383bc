"""The tool that runs commands, in the run's sandbox (SPEC F3). In host mode that is this machine, where rules or
a person allow it: bounded, silent and never outliving their call, but nothing keeps them in."""

from dataclasses import dataclass

from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.permissions import Effect
from xclaw.contracts.sandbox import SandboxCommand, SandboxExit, SandboxPolicy
from xclaw.contracts.tools import ToolContext, ToolOutput
from xclaw.contracts.unicode_forms import is_unicode
from xclaw.tools.bounded_output import HeadAndTail
from xclaw.tools.functions import FunctionTool, tool

_MEGABYTE = 1_000_000
_BASH_IF_THERE = 'if [ -x /bin/bash ]; then exec /bin/bash -c "$0"; else exec /bin/sh -c "$0"; fi'
"""What a sandbox has is seen inside only."""


@dataclass(frozen=True, slots=True)
class ShellSettings:
    timeout_s: float = 60.0
    """When the call does not say."""
    max_timeout_s: float = 600.0
    output_bytes: int = 1_000_000
    """How much output is kept: half from its beginning, half from its end."""
    policy: SandboxPolicy = SandboxPolicy()
    """What bounds a command in a sandbox, to tell of it."""
    effect: Effect = "acts"
    """"writes" where every command is kept in: what it changes is the run's own."""


def shell_tool(settings: ShellSettings) -> FunctionTool:
    """The shell tool, bounded by `settings`. Not replayable: a command may have effects."""

    @tool(effect=settings.effect)
    async def shell(context: ToolContext, command: str, timeout_s: float | None = None) -> ToolOutput:
        """Run a shell command in your task workspace. There is no input and no terminal. Processes
        put into the background are ended with the command.

        Args:
            command: The command line.
            timeout_s: Seconds after which it is killed.
        """
        wanted = settings.timeout_s if timeout_s is None else timeout_s
        if not wanted > 0:
            raise ToolFailed(f"timeout_s must be more than 0, not {wanted}")
        if "\0" in command or not is_unicode(command):
            raise ToolFailed("the command holds characters that no command can hold, such as NUL")
        order = SandboxCommand(
            ("/bin/sh", "-c", _BASH_IF_THERE, command), min(wanted, settings.max_timeout_s)
        )
        sandbox = await context.sandbox()
        output = HeadAndTail(settings.output_bytes)
        ended = await sandbox.exec(order, output.add)
        return ToolOutput(_shown(output.text(), ended, settings.policy), ended.code == 0, ended.code)

    return shell


def _shown(output: str, ended: SandboxExit, policy: SandboxPolicy) -> str:
    """The output, and the receipt behind it."""
    lines = [output.rstrip("\n")] if output.strip("\n") else []
    if ended.dropped_bytes:
        lines.append(f"[{ended.dropped_bytes} further bytes of output were dropped]")
    if ended.code is None:
        lines.append(f"[{_why_killed(ended, policy)}: killed, with everything it had started]")
        return "\n".join(lines)
    if ended.left_behind:
        lines.append(f"[{ended.left_behind} processes it left in the background were ended]")
    lines.append(f"[exit code {ended.code}]")
    return "\n".join(lines)


def _why_killed(ended: SandboxExit, policy: SandboxPolicy) -> str:
    match ended.ended:
        case "memory":
            return f"over {policy.memory_bytes // _MEGABYTE:,} MB of memory"
        case "disk":
            return f"over {policy.disk_bytes // _MEGABYTE:,} MB on disk, or too many files, in /workspace and /tmp"
        case "timeout" | "exited":
            return f"timed out after {ended.duration_s:.1f} s"
