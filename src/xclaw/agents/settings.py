"""What the agents room is told from outside."""

from dataclasses import dataclass

WORKER_TOOLS = ("view_file", "list_dir", "write_file", "deliver")
COORDINATION_TOOLS = (
    "delegate",
    "debate",
    "pipeline",
    "create_team",
    "spawn",
    "wait",
    "send_message",
    "stop",
    "list_agents",
)


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """Where definitions are, and what they may name."""

    directories: tuple[str, ...] = ()
    """Folders of users' agent files; one that does not exist is skipped, a later one wins."""
    known_tools: tuple[str, ...] = (*WORKER_TOOLS, "shell", *COORDINATION_TOOLS)
    """Tools that exist here; a file that names another gets a warning and goes without it."""
    default_tools: tuple[str, ...] = WORKER_TOOLS
    """What `disallowedTools` is taken from in a file that names no `tools`."""
    max_files: int = 500
    """Over all directories; more is an error."""
    max_file_bytes: int = 256_000
