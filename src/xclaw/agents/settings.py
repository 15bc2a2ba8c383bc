"""What the agents room is told from outside."""

from dataclasses import dataclass

from xclaw.contracts.coordination import PHASE_TOOLS
from xclaw.contracts.tool_names import COORDINATION_TOOLS, MEMORY_TOOLS, SCRATCHPAD_TOOLS, WORKER_TOOLS


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """Where definitions are, and what they may name."""

    directories: tuple[str, ...] = ()
    """Folders of users' agent files; one that does not exist is skipped, a later one wins."""
    known_tools: tuple[str, ...] = (
        *WORKER_TOOLS,
        "shell",
        "web_fetch",
        *COORDINATION_TOOLS,
        *PHASE_TOOLS,
        *SCRATCHPAD_TOOLS,
        *MEMORY_TOOLS,
    )
    """Tools that exist here; a file that names another gets a warning and goes without it."""
    default_tools: tuple[str, ...] = WORKER_TOOLS
    """What `disallowedTools` is taken from in a file that names no `tools`."""
    script_directories: tuple[str, ...] = ()
    """Folders whose files may name a program that is run as an agent: the user's own, never a project's."""
    max_files: int = 500
    """Over all directories; more is an error."""
    max_file_bytes: int = 256_000
