"""The tool that runs commands on this machine, where rules or a person allow it. No sandbox: SPEC F3's full
mode is where commands are contained. Here they are bounded, silent and never outlive their call."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.tools import ToolContext, ToolOutput
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


def shell_tool(settings: ShellSettings) -> FunctionTool:
    """The shell tool, bounded by `settings`. Not replayable: a command may have effects."""
    interpreter = "/bin/bash" if Path("/bin/bash").exists() else "/bin/sh"

    @tool(effect="acts")
    async def shell(context: ToolContext, command: str, timeout_s: float | None = None) -> ToolOutput:
        """Run a shell command in your task workspace. There is no input and no terminal. Processes
        put into the background are ended with the command.

        Args:
            command: The command line.
            timeout_s: Seconds after which it is killed.
        """
        await asyncio.to_thread(context.workspace.prepare)
        directory = context.workspace.private_dir
        wanted = settings.timeout_s if timeout_s is None else timeout_s
        if not wanted > 0:
            raise ToolFailed(f"timeout_s must be more than 0, not {wanted}")
        finished = await run_command(
            Command(
                text=command,
                shell=interpreter,
                directory=directory,
                environment={
                    **_QUIET,
                    "PATH": settings.path,
                    "HOME": directory,
                    **dict(settings.environment),
                },
                timeout_s=min(wanted, settings.max_timeout_s),
                grace_s=settings.grace_s,
                output_bytes=settings.output_bytes,
            )
        )
        return ToolOutput(_shown(finished), finished.exit_code == 0, finished.exit_code)

    return shell


def _shown(finished: Finished) -> str:
    """The output, and the receipt behind it."""
    lines = [finished.output.rstrip("\n")] if finished.output.strip("\n") else []
    if finished.exit_code is None:
        lines.append(f"[timed out after {finished.duration_s:.1f} s: killed, with everything it had started]")
        return "\n".join(lines)
    if finished.left_behind:
        lines.append(f"[{finished.left_behind} processes it left in the background were ended]")
    lines.append(f"[exit code {finished.exit_code}]")
    return "\n".join(lines)
