"""The tool that runs commands: in the run's sandbox where there is one (SPEC F3), else on this machine, where
rules or a person allow it. There they are bounded, silent and never outlive their call, but nothing keeps
them in."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.permissions import Effect
from xclaw.contracts.sandbox import Sandbox, SandboxCommand, SandboxPolicy
from xclaw.contracts.tools import ToolContext, ToolOutput
from xclaw.contracts.workspaces import Workspace
from xclaw.tools.bounded_output import HeadAndTail
from xclaw.tools.functions import FunctionTool, tool
from xclaw.tools.processes import Command, Finished, run_command

_QUIET: Mapping[str, str] = {
    "LANG": "C.UTF-8",
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "EDITOR": "false",
    "VISUAL": "false",
    "GIT_EDITOR": "false",
    "GIT_TERMINAL_PROMPT": "0",
    "DEBIAN_FRONTEND": "noninteractive",
}
"""Programs that would ask, page or edit fail at once instead."""
_MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class ShellSettings:
    path: str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    """Where commands are looked for."""
    environment: tuple[tuple[str, str], ...] = ()
    """Further variables. Nothing else of the caller's environment gets in: it may hold keys."""
    timeout_s: float = 60.0
    """When the call does not say."""
    max_timeout_s: float = 600.0
    grace_s: float = 0.5
    """Seconds between asking a command that is out of time to end and killing it."""
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
        wanted = min(wanted, settings.max_timeout_s)
        if context.sandbox is None:
            finished = await _on_this_machine(context.workspace, command, wanted, settings)
        else:
            finished = await _in_sandbox(context.sandbox, command, wanted, settings)
        return ToolOutput(_shown(finished, settings.policy), finished.exit_code == 0, finished.exit_code)

    return shell


async def _on_this_machine(
    workspace: Workspace, command: str, timeout_s: float, settings: ShellSettings
) -> Finished:
    await asyncio.to_thread(workspace.prepare)
    directory = workspace.private_dir
    return await run_command(
        Command(
            text=command,
            shell="/bin/bash" if Path("/bin/bash").exists() else "/bin/sh",
            directory=directory,
            environment={
                **_QUIET,
                "PATH": settings.path,
                "HOME": directory,
                **dict(settings.environment),
            },
            timeout_s=timeout_s,
            grace_s=settings.grace_s,
            output_bytes=settings.output_bytes,
        )
    )


async def _in_sandbox(
    sandbox: Callable[[], Awaitable[Sandbox]], command: str, timeout_s: float, settings: ShellSettings
) -> Finished:
    if "\0" in command or any("\ud800" <= letter <= "\udfff" for letter in command):
        raise ToolFailed("the command holds characters that no command can hold, such as NUL")
    opened = await sandbox()
    output = HeadAndTail(settings.output_bytes)
    ended = await opened.exec(
        SandboxCommand(("/bin/sh", "-c", _BASH_IF_THERE, command), timeout_s), output.add
    )
    limit = "" if ended.ended in ("exited", "timeout") else ended.ended
    return Finished(
        output.text(), ended.code, ended.left_behind, ended.duration_s, limit, ended.dropped_bytes
    )


_BASH_IF_THERE = 'if [ -x /bin/bash ]; then exec /bin/bash -c "$0"; else exec /bin/sh -c "$0"; fi'
"""What a sandbox has is seen inside only."""


def _shown(finished: Finished, policy: SandboxPolicy) -> str:
    """The output, and the receipt behind it."""
    lines = [finished.output.rstrip("\n")] if finished.output.strip("\n") else []
    if finished.dropped_bytes:
        lines.append(f"[{finished.dropped_bytes} further bytes of output were dropped]")
    if finished.exit_code is None:
        lines.append(f"[{_why_killed(finished, policy)}: killed, with everything it had started]")
        return "\n".join(lines)
    if finished.left_behind:
        lines.append(f"[{finished.left_behind} processes it left in the background were ended]")
    lines.append(f"[exit code {finished.exit_code}]")
    return "\n".join(lines)


def _why_killed(finished: Finished, policy: SandboxPolicy) -> str:
    match finished.limit:
        case "memory":
            return f"over {policy.memory_bytes // _MEGABYTE:,} MB of memory"
        case "disk":
            return f"over {policy.disk_bytes // _MEGABYTE:,} MB on disk, or too many files, in /workspace and /tmp"
        case _:
            return f"timed out after {finished.duration_s:.1f} s"
