"""Names of the built-in tools, by what they are for: one list for whoever hands them out or names them."""

WORKER_TOOLS = ("view_file", "list_dir", "search", "write_file", "edit_file", "deliver")
"""Of every agent: files of its own, and delivery."""
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
    "workflow",
)
"""Of an orchestrator: they hand work out."""
SCRATCHPAD_TOOLS = (
    "scratchpad_write",
    "scratchpad_append",
    "scratchpad_read",
    "scratchpad_list",
    "scratchpad_search",
)
COMMIT_TOOL = "commit"
"""Of an agent that has a private tree of the user's project."""
MERGE_TOOL = "merge_branches"
"""Of an agent that hands work on a project out."""
MEMORY_TOOLS = ("remember", "recall", "forget", "kb_search")
